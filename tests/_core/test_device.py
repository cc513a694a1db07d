"""Where to compute, and in how much memory."""

from __future__ import annotations

import pytest
import torch

from dxml._core.device import memory_for


def test_memory_where_nobody_says_how_much() -> None:
    assert memory_for("cpu") == 8e9


@pytest.mark.gpu
def test_memory_of_a_gpu() -> None:
    whole = torch.cuda.mem_get_info()[1]
    assert memory_for("cuda") == pytest.approx(max(8e9, whole / 4), rel=0.05)
