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
    from ._deep.planting import write_encoder

    return write_encoder(tmp_path_factory.mktemp("tiny-encoder"))


@pytest.fixture(scope="session")
def static_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of static word vectors as model2vec writes it: 24 wide, drawn at random."""
    from ._deep.planting import write_static

    return write_static(tmp_path_factory.mktemp("tiny-static"))
