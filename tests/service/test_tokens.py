"""Tokens: their file, their hashes, and two who change them at once."""

from __future__ import annotations

import hashlib
import hmac
import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from dxml.exceptions import ParameterError
from dxml.service._tokens import Tokens, hashed, new_token, read_tokens, revoke_token


def test_the_file_has_hashes_alone(tmp_path: Path) -> None:
    file = tmp_path / "new" / "tokens.json"
    token, name = new_token(file, "teach", "desk")
    assert name == "desk" and len(token) >= 40
    assert token not in file.read_text()
    [kept] = json.loads(file.read_text())["tokens"]
    assert kept["hash"] == "sha256:" + hashlib.sha256(token.encode()).hexdigest()
    assert (kept["name"], kept["role"]) == ("desk", "teach")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in file.parent.iterdir()] == ["tokens.json"]  # nothing left over
    assert len({new_token(file, "read")[0] for _ in range(5)}) == 5


def test_who_brings_which_token(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    token, _ = new_token(file, "read", "desk")
    tokens = Tokens("own", file)
    found = tokens.find(token)
    assert found is not None and (found.name, found.role) == ("desk", "read")
    own = tokens.find(" own ")
    assert own is not None and (own.name, own.role) == ("token", "admin")
    kept = read_tokens(file)[0].hash
    for wrong in ("", token[:-1], kept, kept.removeprefix("sha256:"), hashed("own"), "ü"):
        assert tokens.find(wrong) is None


def test_tokens_are_compared_in_constant_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All hashes in full, by the function that takes as long for any; found or not."""
    file = tmp_path / "tokens.json"
    given = [new_token(file, "read")[0] for _ in range(3)]
    tokens, compared = Tokens("own", file), list[tuple[str, str]]()

    def digests_equal(one: str, other: str) -> bool:
        compared.append((one, other))
        return one == other

    monkeypatch.setattr(hmac, "compare_digest", digests_equal)
    kept = [hashed("own"), *(each.hash for each in read_tokens(file))]
    for token, known in [*((token, True) for token in given), ("own", True), ("other", False)]:
        compared.clear()
        assert (tokens.find(token) is not None) is known
        assert compared == [(each, hashed(token)) for each in kept]
    monkeypatch.setattr(hmac, "compare_digest", lambda *_: False)
    assert all(tokens.find(token) is None for token in (*given, "own"))


def test_a_hash_may_be_given_for_a_token() -> None:
    tokens = Tokens(hashed("secret"))
    assert tokens.find("secret") is not None and tokens.find(hashed("secret")) is None


def test_changes_of_the_file_count_at_once(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    first, _ = new_token(file, "admin", "first")
    tokens = Tokens(file=file)
    second, _ = new_token(file, "teach", "second")
    assert tokens.find(second) is not None
    revoke_token(file, "first")
    assert tokens.find(first) is None and tokens.find(second) is not None
    file.unlink()
    assert tokens.find(second) is None and tokens.needed


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        "[" * 100_000,
        '{"tokens": [{}]}',
        '{"tokens": [{"name": "a", "role": "king", "hash": "sha256:' + "0" * 64 + '"}]}',
        '{"tokens": [{"name": "a", "role": "read", "hash": "secret"}]}',
        '{"tokens": [{"name": "a\\n", "role": "read", "hash": "sha256:' + "0" * 64 + '"}]}',
    ],
)
def test_what_is_no_token_file(tmp_path: Path, content: str) -> None:
    (file := tmp_path / "tokens.json").write_text(content)
    with pytest.raises(ParameterError, match="this is no token file"):
        Tokens(file=file)
    with pytest.raises(ParameterError, match="this is no token file"):
        new_token(file, "read")
    assert file.read_text() == content


def test_names(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    with pytest.raises(ParameterError, match="there is no such token file. Make one"):
        Tokens(file=file)
    new_token(file, "read", "desk")
    with pytest.raises(ParameterError, match="there is a token called 'desk' already"):
        new_token(file, "read", "desk")
    with pytest.raises(ParameterError, match="a token's name has up to 100 letters"):
        new_token(file, "read", "a b")
    with pytest.raises(ParameterError, match="no token called 'none'; there are: desk"):
        revoke_token(file, "none")


def test_two_who_make_tokens_at_once_lose_none(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    program = (
        "import sys; from dxml.service._tokens import new_token\n"
        "for i in range(30): new_token(sys.argv[1], 'read')"
    )
    both = [subprocess.Popen([sys.executable, "-c", program, str(file)]) for _ in range(2)]
    assert [each.wait(300) for each in both] == [0, 0]
    assert len(read_tokens(file)) == 60
