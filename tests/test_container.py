"""The Containerfile: what it says, and its steps run on this machine."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dxml import TextTagger
from dxml._cli import app

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "Containerfile").read_text("utf-8")


def steps() -> list[tuple[str, str]]:
    """(instruction, its arguments) in order; lines that go on are joined."""
    lines = [line for line in TEXT.splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in joined.splitlines() if line]


def last(instruction: str) -> str:
    return [arguments for name, arguments in steps() if name == instruction][-1]


def health_check() -> list[str]:
    words: list[str] = json.loads(last("HEALTHCHECK").split("CMD ")[1])
    return words


def test_both_stages_have_one_pinned_base_of_a_python_that_is_supported() -> None:
    bases = [arguments.split()[0] for name, arguments in steps() if name == "FROM"]
    assert len(bases) == 2 and len(set(bases)) == 1
    version = re.fullmatch(r"python:(3\.\d+)\.\d+-slim-\w+", bases[0])
    assert version, bases[0]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert f"Programming Language :: Python :: {version[1]}" in project["classifiers"]


def test_the_service_does_not_run_as_root() -> None:
    names = [name for name, _ in steps()]
    assert last("USER") == "10001" and "--uid 10001" in last("RUN")
    assert max(i for i, name in enumerate(names) if name == "RUN") < names.index("USER")


def test_what_is_copied_is_there_and_not_ignored() -> None:
    kept = [line[1:] for line in (ROOT / ".dockerignore").read_text().split() if line[0] == "!"]
    copied = [
        source
        for name, arguments in steps()
        if name == "COPY" and not arguments.startswith("--from")
        for source in arguments.split()[:-1]
    ]
    assert sorted(copied) == sorted(kept)
    assert all((ROOT / source).exists() for source in copied)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert {project["readme"], *project["license-files"]} <= set(copied)


def test_the_command_is_one_that_dxml_knows() -> None:
    assert json.loads(last("ENTRYPOINT")) == ["dxml"]
    found = CliRunner().invoke(app, json.loads(last("CMD")))
    assert found.exit_code != 0
    assert "token" in str(found.exception) + found.output, "others can reach it, so it needs one"


def test_the_health_check_fails_where_nothing_answers() -> None:
    program = health_check()[2].replace(":8000/", f":{free_port()}/")
    assert subprocess.run([sys.executable, "-c", program], capture_output=True).returncode != 0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.container
def test_a_linter_finds_nothing() -> None:
    found = subprocess.run(
        [Path(sys.executable).with_name("hadolint"), ROOT / "Containerfile"],
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stdout


@pytest.mark.container
def test_its_steps_make_a_service_that_is_healthy(tmp_path: Path) -> None:
    """The build stage in folders of its own; then the command and the check of the second."""
    build, home, model = tmp_path / "build", tmp_path / "dxml", tmp_path / "model"
    build.mkdir()
    for source in ("pyproject.toml", "constraints.txt", "README.md", "LICENSE"):
        shutil.copy(ROOT / source, build)
    shutil.copytree(ROOT / "src", build / "src", ignore=shutil.ignore_patterns("__pycache__"))
    install = next(arguments for name, arguments in steps() if name == "RUN")
    assert "/opt/dxml" in install
    place = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(tmp_path)}
    subprocess.run(
        ["bash", "-c", install.replace("/opt/dxml", str(home))], cwd=build, env=place, check=True
    )
    TextTagger().fit(["sea fish", "fish", "soup", "salt soup"], [["a"], ["a"], ["b"], ["b"]]).save(
        model
    )
    port = free_port()
    arguments = [str(model) if word == "/model" else word for word in json.loads(last("CMD"))]
    place |= {"PATH": f"{home}/bin:/usr/bin:/bin", "DXML_TOKEN": "t" * 32}
    service = subprocess.Popen(
        [home / "bin" / "dxml", *arguments, "--port", str(port)], cwd=tmp_path, env=place
    )
    program, option, code = health_check()
    check = [home / "bin" / program, option, code.replace(":8000/", f":{port}/")]
    try:
        for _ in range(120):
            if subprocess.run(check, env=place, capture_output=True).returncode == 0:
                break
            assert service.poll() is None, "the service ended"
            time.sleep(0.5)
        else:
            raise AssertionError("the service is not healthy")
    finally:
        service.terminate()
        service.wait(30)
