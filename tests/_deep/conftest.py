"""The tiny encoder, opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from dxml._deep import Pretrained, open_pretrained


@pytest.fixture
def pretrained(encoder_folder: Path) -> Pretrained:
    """The tiny encoder, opened afresh for each test."""
    return open_pretrained(encoder_folder, 32)
