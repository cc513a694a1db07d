"""`dxml token`: a token is shown once."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from dxml._cli import app
from dxml.exceptions import ParameterError
from dxml.service._tokens import Tokens


def run(*arguments: object) -> tuple[str, str]:
    done = CliRunner().invoke(app, ["token", *map(str, arguments)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout, done.stderr


def test_new_list_revoke(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    out, err = run("new", "--tokens", file, "--role", "teach", "--name", "desk")
    found = Tokens(file=file).find(out)
    assert found is not None and (found.name, found.role) == ("desk", "teach")
    assert out.strip() not in err and "'desk', role teach" in err
    assert run("new", "--tokens", file, "--role", "read", "-q")[1] == ""
    listed, _ = run("list", "--tokens", file)
    assert listed.splitlines()[0].split()[1:] == ["teach", "desk"]
    assert out.strip() not in listed and "sha256" not in listed
    assert run("revoke", "desk", "--tokens", file)[0] == "revoked desk\n"
    assert Tokens(file=file).find(out) is None


def test_an_unknown_role(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="unknown role 'teacher'; did you mean 'teach'?"):
        run("new", "--tokens", tmp_path / "t", "--role", "teacher")
    assert list(tmp_path.iterdir()) == []
