"""What workers side by side need, the rule for tests on real data, tiny encoders and vectors."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# Set before torch, numba and BLAS are loaded. Threads that spin while they wait slow all others.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # numba's threads are counted apart

# A busy machine is no failure.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


def pytest_configure() -> None:
    """Two workers that compile at once must not write one file of numba's cache."""
    from numba.core.caching import IndexDataCacheFile

    for name in ("load", "save"):
        setattr(IndexDataCacheFile, name, one_at_a_time(getattr(IndexDataCacheFile, name)))


@pytest.fixture(scope="session", autouse=True)
def no_vectors_by_chance() -> None:
    """What a test trains does not depend on whether the package of word vectors is installed."""
    from dxml.joint import _vectors

    _vectors.find_static = lambda name, length: None


def one_at_a_time(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method of numba's cache with a lock on the folder of the cache."""

    @wraps(method)
    def locked(self: Any, *args: Any) -> Any:
        folder = os.open(self._cache_path, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            return method(self, *args)
        finally:
            os.close(folder)

    return locked


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests marked `real` run where DXML_DATA names a folder, and are deselected elsewhere.

    They take longest and run first, so that no worker is left with one at the end.
    """
    real = [item for item in items if item.get_closest_marker("real")]
    others = [item for item in items if not item.get_closest_marker("real")]
    if os.environ.get("DXML_DATA"):
        items[:] = real + others
    elif real:
        config.hook.pytest_deselected(items=real)
        items[:] = others


@pytest.fixture(scope="session")
def encoder_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as transformers writes it: two layers, 32 wide, no dropout."""
    import torch
    from transformers import BertConfig, BertModel

    from ._deep.planting import make_tokenizer

    folder = tmp_path_factory.mktemp("tiny-encoder")
    tokenizer = make_tokenizer()
    config = BertConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        BertModel(config).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


@pytest.fixture(scope="session")
def static_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of static word vectors as model2vec writes it: 24 wide, drawn at random."""
    import numpy as np
    from safetensors.numpy import save_file

    from ._deep.planting import make_tokenizer

    folder = tmp_path_factory.mktemp("tiny-static")
    tokenizer = make_tokenizer()
    shape = (tokenizer.get_vocab_size(), 24)
    table = np.random.default_rng(0).normal(size=shape).astype(np.float16)
    save_file({"embeddings": table}, folder / "model.safetensors")
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text("{}")
    return folder
