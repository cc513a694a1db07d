"""A Ray cluster that cannot be had; tests/_ray has the clusters that can."""

from __future__ import annotations

import sys

import pytest

from dxml._core.blocks import spread
from dxml._core.cluster import open_cluster
from dxml.exceptions import ClusterError


def test_without_an_address_nothing_is_opened() -> None:
    with open_cluster(None):
        assert not spread()


def test_without_ray_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    message = r"^Ray is not installed. Install it: pip install 'dxml\[ray\]'.$"
    with pytest.raises(ClusterError, match=message), open_cluster("local"):
        pass
