"""An encoder whose work on a full batch is recorded once for each length, and played back.

A step of a small encoder is hundreds of short pieces of work, and a GPU waits longer for each to
be asked for than it takes. What was recorded as a CUDA graph is asked for as one.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from dxml._deep.applying import out_of_memory
from dxml._deep.encoder import TextEncoder

__all__ = ["RecordedEncoder"]

WORTH = 4  # batches of one length before it is recorded
Run = Callable[[Tensor, Tensor], Any]
_log = logging.getLogger(__name__)


class RecordedEncoder:
    """Reads texts and names in training as the encoder does, in fewer launches.

    Parameters
    ----------
    encoder : TextEncoder
        On its device, in training.
    size : int
        Texts of a full batch; other batches are read piece by piece.

    Notes
    -----
    It records when `record` is called: between two steps, when nothing is left to go back through.
    """

    def __init__(self, encoder: TextEncoder, size: int) -> None:
        self._encoder, self._size = encoder, size
        self._plain: dict[str, nn.Module] = {"texts": encoder, "names": _Embedding(encoder)}
        self._recorded: dict[tuple[str, int], Run] = {}
        self._seen: Counter[tuple[str, int]] = Counter()
        self._due: dict[tuple[str, int], tuple[Tensor, Tensor]] = {}
        self._pools: dict[str, Any] = {}
        device = next(encoder.parameters()).device
        self.on = device.type == "cuda" and encoder.no_waiting

    @property
    def lengths(self) -> list[tuple[str, int]]:
        """What was recorded: texts or names, and how many tokens of each."""
        return sorted(self._recorded)

    def __call__(self, ids: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
        """As `TextEncoder.forward`."""
        if len(ids) != self._size:
            return self._encoder(ids, real)
        hidden, embedded = self._run("texts", ids, real)
        return hidden, embedded

    def embed(self, ids: Tensor, real: Tensor) -> Tensor:
        """As `TextEncoder.embed`; fewer names than a batch has texts are filled up to as many."""
        n = len(ids)
        if not self.on or n > self._size:
            return self._encoder.embed(ids, real)
        fill = torch.zeros(self._size - n, dtype=torch.int64, device=ids.device)
        rows = torch.cat([torch.arange(n, device=ids.device), fill])
        vectors: Tensor = self._run("names", ids[rows], real[rows])
        return vectors[:n]

    def record(self) -> None:
        """The lengths that came often enough; what chance decides goes on as if there were none."""
        while self._due:
            key, batch = self._due.popitem()
            self._record(key, *batch)

    def stop(self) -> None:
        """Record nothing more, and forget what was."""
        self.on = False
        self._recorded.clear()
        self._due.clear()
        self._pools.clear()

    def _run(self, kind: str, ids: Tensor, real: Tensor) -> Any:
        key = kind, ids.shape[1]
        if self.on and key not in self._recorded:
            self._seen[key] += 1
            if self._seen[key] >= WORTH:
                self._due[key] = ids.clone(), real.clone()
        return self._recorded.get(key, self._plain[kind])(ids, real)

    def _record(self, key: tuple[str, int], ids: Tensor, real: Tensor) -> None:
        kind = key[0]
        _mean_other_streams()
        if kind not in self._pools:  # one for each: texts and names are at work at once
            self._pools[kind] = torch.cuda.graph_pool_handle()
        module = _Recordable(self._plain[kind])
        try:
            with (
                torch.random.fork_rng(devices=[ids.device]),
                torch.autocast("cuda", torch.bfloat16, cache_enabled=False),
            ):
                self._recorded[key] = torch.cuda.make_graphed_callables(
                    module,
                    (ids, real),
                    allow_unused_input=True,
                    pool=self._pools[kind],
                )
        except out_of_memory:
            _log.info("too little GPU memory to record the encoder's steps; they go on one by one")
            self.stop()
            torch.cuda.empty_cache()


def _mean_other_streams() -> None:
    """Slopes are added up on another stream than what is recorded: newer torch warns of that."""
    tell = getattr(torch.autograd.graph, "set_warn_on_accumulate_grad_stream_mismatch", None)
    if tell is not None:
        tell(False)


class _Embedding(nn.Module):
    """The encoder as names are read."""

    def __init__(self, encoder: TextEncoder) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, ids: Tensor, real: Tensor) -> Tensor:
        return self.encoder.embed(ids, real)


class _Recordable(nn.Module):
    """A recording takes the place of a module's ``forward``: each has a module of its own."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, ids: Tensor, real: Tensor) -> Any:
        return self.module(ids, real)
