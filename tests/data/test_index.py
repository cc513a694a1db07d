"""Which package index is asked, and how."""

from __future__ import annotations

from pathlib import Path

import pytest

from dxml.data._index import index_url, request


def test_the_index_is_the_one_pip_uses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    settings = tmp_path / "pip" / "pip.conf"
    settings.parent.mkdir()
    settings.write_text("[global]\nindex-url = http://127.0.0.1/from-settings\n")
    for name in ("PIP_INDEX_URL", "PIP_CONFIG_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert index_url() == "http://127.0.0.1/from-settings/"
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1/from-environment/")
    assert index_url() == "http://127.0.0.1/from-environment/"
    monkeypatch.delenv("PIP_INDEX_URL")
    monkeypatch.setattr("dxml.data._index._output", lambda *_: "")
    with pytest.raises(LookupError, match=r"pip, which knows the index, is not installed"):
        index_url()


def test_a_password_goes_into_a_header() -> None:
    asked = request("http://me:p%40ss@127.0.0.1:8/packages/")
    assert asked.full_url == "http://127.0.0.1:8/packages/"
    assert asked.get_header("Authorization") == "Basic bWU6cEBzcw=="
