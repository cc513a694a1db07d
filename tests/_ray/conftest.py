"""A Ray cluster of several nodes on this machine, and nothing beyond it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from dxml._core.blocks import running_on
from dxml._core.cluster import RayCluster, ray_cluster

from .nodes import Nodes

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # whatever its name: 127.0.0.1 only


@pytest.fixture(scope="session")
def nodes() -> Iterator[Nodes]:
    """A head without a core and one node of one core; tests may add and kill others."""
    with Nodes() as nodes:
        yield nodes


@pytest.fixture(scope="module")
def cluster(nodes: Nodes) -> Iterator[RayCluster]:
    """Connected for all tests of a file; a test says when blocks go there."""
    with ray_cluster(nodes.address) as cluster, running_on(None):
        yield cluster
