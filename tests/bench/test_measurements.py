"""``dxml bench run`` of what scripts measure, by a table of made-up commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dxml._cli.bench import app
from dxml.bench._measurements import (
    Measurement,
    Outcome,
    carry_out,
    lacking,
    read_measurements,
    summed_up,
)
from dxml.exceptions import ParameterError

TABLE = """
[good]
what = "A command that succeeds."
pages = ["docs/page.md"]
stores = ["good.json"]
commands = ["A=7 python write.py good.json *.txt", "python write.py two.json"]

[bad]
what = "A command that fails."
pages = ["docs/page.md"]
stores = ["bad.json"]
commands = ["python fail.py", "python write.py never.json"]

[elsewhere]
what = "A command that needs what is not here."
pages = ["docs/page.md"]
stores = ["elsewhere.jsonl"]
commands = ["python write.py elsewhere.jsonl"]
packages = ["a_package_that_nobody_has", "json", "scikit-learn"]
files = ["lists/*.xz", "write.py"]
programs = ["a-program-that-nobody-has"]
memory_gb = 1e6
get = "from the shop"
minutes = 90
"""
WRITE = """
import json, os, sys
from pathlib import Path
Path(sys.argv[1]).write_text(json.dumps([os.environ.get("A"), *sys.argv[2:]]))
print("wrote", sys.argv[1])
"""
FAIL = """
import sys
print(*range(100), sep="\\n")
print("it broke", file=sys.stderr)
sys.exit(3)
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a table and its programs."""
    (tmp_path / "benchmarks" / "results").mkdir(parents=True)
    (tmp_path / "benchmarks" / "measurements.toml").write_text(TABLE)
    for name, text in {"write.py": WRITE, "fail.py": FAIL, "a.txt": "", "b.txt": ""}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dxml.bench._spec.shipped", dict)
    return tmp_path


@pytest.fixture
def entries(checkout: Path) -> dict[str, Measurement]:
    return read_measurements(checkout / "benchmarks" / "measurements.toml")


def test_commands_run_in_the_checkout_one_after_the_other(
    checkout: Path, entries: dict[str, Measurement]
) -> None:
    heard: list[str] = []
    assert carry_out(entries["good"], say=heard.append) == Outcome("good", "done")
    assert json.loads((checkout / "good.json").read_text()) == ["7", "a.txt", "b.txt"]
    assert (checkout / "two.json").is_file()
    assert heard[:2] == ["good: A=7 python write.py good.json *.txt", "wrote good.json"]


def test_the_end_of_a_failure_is_told_and_nothing_comes_after_it(
    checkout: Path, entries: dict[str, Measurement]
) -> None:
    found = carry_out(entries["bad"], say=lambda line: None)
    assert found.status == "failed" and not (checkout / "never.json").exists()
    lines = found.why.splitlines()
    assert lines[0] == "python fail.py: ended with 3" and lines[-1] == "it broke"
    assert "99" in lines and len(lines) == 16


def test_what_cannot_run_here_is_skipped_and_says_why(entries: dict[str, Measurement]) -> None:
    why = (
        "no package a_package_that_nobody_has; no program a-program-that-nobody-has; "
        "no file lists/*.xz; less than 1e+06 GB of memory (from the shop)"
    )
    assert lacking(entries["elsewhere"]) == why and lacking(entries["good"]) == ""
    found = carry_out(entries["elsewhere"], say=lambda line: None)
    assert found == Outcome("elsewhere", "skipped", why)


def test_data_and_a_gpu_may_be_lacking(
    entries: dict[str, Measurement], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from dataclasses import replace

    monkeypatch.setenv("DXML_DATA", str(tmp_path))
    monkeypatch.setenv("DXML_CACHE", str(tmp_path))
    monkeypatch.setattr("dxml._core.device.resolve_device", lambda asked: "cpu")
    needy = replace(entries["good"], gpu=True, data=("bibtex",), disk_gb=1e9)
    said = "no GPU; no data bibtex (dxml data get); less than 1e+09 GB of disk are free"
    assert lacking(needy) == said
    assert needy.needs == "bibtex, a GPU, 1e+09 GB of disk"


def test_what_takes_too_long_is_ended(checkout: Path, entries: dict[str, Measurement]) -> None:
    (checkout / "fail.py").write_text("import time; print('begun', flush=True); time.sleep(60)")
    found = carry_out(entries["bad"], say=lambda line: None, limit=2)
    assert found.why.splitlines() == ["python fail.py: took longer than 2 s", "begun"]


def test_a_command_that_this_commit_has_stored_is_not_run_again(
    checkout: Path, entries: dict[str, Measurement], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DXML_COMMIT", "abc")
    first, second = entries["good"].commands
    path = checkout / "benchmarks" / "results" / "good.json"
    path.write_text(json.dumps({"runs": [{"command": first, "commit": "abc"}]}))
    heard: list[str] = []
    assert carry_out(entries["good"], say=heard.append).status == "done"
    assert heard[0] == f"good: {second}" and not (checkout / "good.json").exists()
    path.write_text(json.dumps([{"command": c, "commit": "abc"} for c in (first, second)]))
    assert carry_out(entries["good"], say=heard.append) == Outcome("good", "stored", "commit abc")
    assert carry_out(entries["good"], say=heard.append, again=True).status == "done"
    for at in ("xyz", "abc+"):
        monkeypatch.setenv("DXML_COMMIT", at)
        assert carry_out(entries["good"], say=heard.append).status == "done"


def ask(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, list(arguments), catch_exceptions=False, env={"COLUMNS": "200"})
    return done.exit_code, done.output


def test_all_runs_them_in_turn_and_sums_up(checkout: Path) -> None:
    code, said = ask("run", "all")
    assert code == 1
    assert said.index("wrote good.json") < said.index("it broke") < said.rindex("done     good")
    end = said[said.rindex("done     good") :].splitlines()
    assert end[1].startswith("skipped  elsewhere: no package a_package_that_nobody_has")
    assert end[2] == "failed   bad: python fail.py: ended with 3" and end[-1].strip() == "it broke"
    assert ask("run", "all", "-q", "--only", "goo") == (0, "done     good\n")


def test_one_runs_by_its_name(checkout: Path) -> None:
    assert ask("run", "good", "-q") == (0, "done     good\n")
    assert ask("run", "bad", "-q")[0] == 1
    code, said = ask("run", "elsewhere", "-q")
    assert code == 1 and said.startswith("skipped  elsewhere: no package")
    with pytest.raises(ParameterError, match="unknown experiment 'godo'; did you mean 'good'"):
        ask("run", "godo")


def test_a_dry_run_shows_the_commands_and_runs_none(checkout: Path) -> None:
    code, said = ask("run", "all", "--dry-run")
    assert code == 0 and not (checkout / "good.json").exists()
    assert said.splitlines()[:5] == [
        "# good stores good.json, shown by docs/page.md.",
        "A=7 python write.py good.json *.txt",
        "python write.py two.json",
        "# bad stores bad.json, shown by docs/page.md.",
        "python fail.py",
    ]
    *_, stores, why, skipped = said.splitlines()
    assert stores == "# elsewhere stores elsewhere.jsonl, shown by docs/page.md."
    assert why.startswith("# elsewhere is skipped: no package a_package_that_nobody_has; no")
    assert skipped == "# python write.py elsewhere.jsonl"


def test_a_dry_run_says_what_is_stored_already(
    checkout: Path, entries: dict[str, Measurement], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DXML_COMMIT", "abc")
    first, second = entries["good"].commands
    path = checkout / "benchmarks" / "results" / "good.json"
    path.write_text(json.dumps({"command": first, "commit": "abc"}))
    *_, stored, left = ask("run", "good", "--dry-run")[1].splitlines()
    assert (stored, left) == (f"# {first}  # is stored, with commit abc", second)
    assert ask("run", "good", "--dry-run", "--rerun")[1].splitlines()[1:] == [first, second]


def test_a_dry_run_of_ones_own_shows_a_command_that_there_is(checkout: Path) -> None:
    asked = ["--method", "knn", "--data", "planted:n_samples=60,n_features=40,n_labels=5"]
    code, said = ask("run", *asked, "--name", "mine", "--dry-run")
    assert code == 0 and said.splitlines() == [
        "# mine stores mine.json. 1 of 1 runs are to do.",
        f"dxml bench run {' '.join(asked)} --name mine",
    ]


def test_results_elsewhere_are_not_for_scripts(checkout: Path) -> None:
    code, said = ask("run", "all", "-q", "--results", "other")
    assert code == 0 and "skipped  good: scripts store in benchmarks/results, not in other" in said
    assert not (checkout / "good.json").exists()


def test_options_of_experiments_are_not_for_scripts(checkout: Path) -> None:
    with pytest.raises(ParameterError, match="good is measured by its own commands: no --jobs"):
        ask("run", "good", "--jobs", "2")


def test_the_list_shows_them_with_what_they_need(checkout: Path) -> None:
    code, said = ask("list")
    assert code == 0 and "A command that succeeds." in said and "1 h 30 min" in said
    assert "lists/*.xz" in said


def test_outside_a_checkout_there_are_none(tmp_path: Path) -> None:
    assert read_measurements(tmp_path / "measurements.toml") == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[a]\nwhat = 'x'", "a lacks pages, stores"),
        ("[a]\nhwat = 'x'", "a has no 'hwat'; did you mean 'what'"),
        ("[a]\npages = 'x'", "pages of a must be a list of texts, got 'x'"),
        ("[a]\nminutes = true", "minutes of a must be a number, got True"),
        ("[a]\ngpu = 1", "gpu of a must be true or false, got 1"),
        ("a = 1", "a must be a table"),
        ("[a", "no valid TOML"),
    ],
)
def test_mistakes_in_the_table_are_named(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "measurements.toml"
    path.write_text(text)
    with pytest.raises(ParameterError, match=f"^measurements.toml: {said}"):
        read_measurements(path)


def test_failures_stand_last() -> None:
    outcomes = [Outcome("a", "failed", "x\ny"), Outcome("b", "skipped", "z"), Outcome("c", "done")]
    assert summed_up(outcomes).splitlines() == [
        "done     c",
        "skipped  b: z",
        "failed   a: x",
        "         y",
    ]


def test_a_method_of_ones_own_takes_no_name_of_the_table(checkout: Path) -> None:
    taken = ("good", "joint", "elsewhere")
    said = {name: f"--name {name} would replace what {name} measured" for name in taken}
    bad = ("../good", ".hidden", "a/b", "")
    said |= dict.fromkeys(
        bad, "--name must be letters, digits, '_', and, not first, '-' and '.', got"
    )
    for name, why in said.items():
        asked = ["run", "--method", "knn", "--data", "bibtex", "--name", name]
        done = CliRunner().invoke(app, asked)
        assert isinstance(done.exception, ParameterError) and why in str(done.exception), name
    assert not any((checkout / "benchmarks" / "results").iterdir())
