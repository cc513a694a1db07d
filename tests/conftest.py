"""Fixtures and the rule for tests on real data."""

from __future__ import annotations

import os

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests marked `real` run where DXML_DATA names a folder, and are deselected elsewhere."""
    if os.environ.get("DXML_DATA"):
        return
    real = [item for item in items if item.get_closest_marker("real")]
    if real:
        config.hook.pytest_deselected(items=real)
        items[:] = [item for item in items if not item.get_closest_marker("real")]
