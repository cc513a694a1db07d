"""Work on a GPU recorded once and replayed, where starting it costs more than its arithmetic."""

from __future__ import annotations

from collections.abc import Callable

import torch

__all__ = ["capture"]

WARM_UP = 3  # runs before a recording: the first ones allocate, and choose how to compute


def capture(run: Callable[[], None], put_back: Callable[[], None]) -> torch.cuda.CUDAGraph:
    """Record `run`, which reads and writes tensors that stay where they are.

    Parameters
    ----------
    run : callable
        It is run three times on a stream of its own, as CUDA asks, and then recorded.
    put_back : callable
        Called at the end to undo what those runs changed.
    """
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM_UP):
            run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    put_back()
    return graph
