"""What is said of dependencies: their lower bounds, and audits that found nothing out."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from .audit import judged
from .versions import ROOT, circumstances, constraints, counted, lower_bounds, name_of, store


def test_lower_bounds_are_those_of_dxml_and_its_extras() -> None:
    project = {
        "dependencies": ["numpy>=1.26", "Some_Package[extra]>=2"],
        "optional-dependencies": {"serve": ["fastapi>=0.115"], "dev": ["pytest>=8"]},
    }
    found = {"numpy": "1.26", "some-package": "2", "fastapi": "0.115"}
    assert lower_bounds(project) == found
    with pytest.raises(SystemExit, match="rich: has no lower bound"):
        lower_bounds(project | {"dependencies": ["rich"]})


def test_bounds_of_users_and_of_the_tests_agree() -> None:
    """The dev extra repeats packages of other extras; a bound that is raised is raised in both."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    bounds = lower_bounds(project)
    dev = {
        name_of(each): each.partition(">=")[2] for each in project["optional-dependencies"]["dev"]
    }
    assert {name: dev[name] for name in dev if name in bounds} == {
        name: bounds[name] for name in dev if name in bounds
    }


def test_torch_is_the_tested_build_in_every_environment() -> None:
    [pinned] = constraints("newest")
    assert pinned.startswith("torch==")
    oldest = constraints("oldest")
    assert [line for line in oldest if name_of(line) == "torch"] == [pinned]
    assert "numba==0.60" in oldest


def package(name: str, *ids: str) -> dict[str, Any]:
    return {
        "name": name,
        "version": "1.0",
        "vulns": [{"id": each, "fix_versions": ["1.1"]} for each in ids],
    }


UNKNOWN = {"name": "b", "skip_reason": "Dependency not found on PyPI"}


@pytest.mark.parametrize(
    ("packages", "code", "said"),
    [
        ([package("a")], 0, "1 packages audited, 0 with known vulnerabilities"),
        ([package("a"), UNKNOWN], 0, "the service does not know: b\n1 packages audited"),
        ([package("a", "CVE-1")], 1, "a 1.0: CVE-1, mended in 1.1\n1 packages audited, 1 with"),
        ([UNKNOWN, UNKNOWN], 2, "not audited"),  # pip-audit calls this "no vulnerabilities"
        ([], 2, "not audited"),
    ],
)
def test_an_audit_that_knows_nothing_is_none(
    packages: list[dict[str, Any]], code: int, said: str
) -> None:
    found = judged({"dependencies": packages})
    assert found[0] == code and found[1].startswith(said)
    assert judged(None)[0] == 2


def test_a_run_of_the_suite_is_stored(tmp_path: Path) -> None:
    report, output = tmp_path / "report.xml", tmp_path / "versions.json"
    report.write_text(
        '<testsuites><testsuite tests="9" failures="1" errors="1" skipped="2"/></testsuites>'
    )
    assert counted(report) == {"passed": 5, "failed": 2, "skipped": 2}
    about = circumstances(Path(sys.executable), 2)
    for which in ("oldest", "newest"):
        store(output, which, counted(report), "numpy==1.26.0\nother==2\n", about)
    runs = json.loads(output.read_text("utf-8"))
    assert [run["which"] for run in runs] == ["oldest", "newest"]
    assert runs[0]["command"].startswith("python tests/versions.py") and runs[0]["threads"] == 2
    assert runs[0]["commit"] and runs[0]["machine"] and runs[0]["seed"] is None
    assert runs[0]["passed"] == 5 and runs[0]["versions"] == {"numpy": "1.26.0"}
