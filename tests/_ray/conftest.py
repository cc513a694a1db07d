"""A Ray cluster of several nodes on this machine, and nothing beyond it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from .nodes import Nodes

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # whatever its name: 127.0.0.1 only


@pytest.fixture(scope="session")
def nodes() -> Iterator[Nodes]:
    """A head without a core and one node of one core; tests may add and kill others."""
    with Nodes() as nodes:
        yield nodes
