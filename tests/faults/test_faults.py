"""The injector itself, a save that is disturbed at every call, and programs beside each other."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from .calls import ERRORS
from .scenario import sentence
from .scenarios import ANSWERED, SCENARIOS

ROOT = Path(__file__).parents[2]

PROGRAM = """
import sys
from pathlib import Path
from tests.faults.calls import Calls
from tests.faults.run import Disturbed, Tally, in_process
from tests.faults.scenarios import Scenario

{body}
"""

SAVES = """
import numpy as np
from dxml._core.storage import read_folder, write_folder
from tests.faults.calls import ERRORS

def write(folder, n):
    write_folder(folder / "model", {"n": n}, {"numbers": np.arange(1000) + n})

def state(folder):
    config, arrays = read_folder(folder / "model")
    assert arrays.unchecked()["numbers"][0] == config["n"]
    return {"n": config["n"]}

"""


def run(body: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """A program of its own: processes that compute are not forked from this one."""
    command = [sys.executable, "-c", PROGRAM.format(body=body), *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_calls_are_counted_and_a_write_is_cut_in_half(tmp_path: Path) -> None:
    body = """
path = Path(sys.argv[1]) / "file"
def act():
    with open(path, "w") as file:
        file.write("abcdef")
    path.rename(path.with_name("renamed"))
calls = Calls()
whole = in_process(act, calls)
for at in (1, 2, 3):
    path.with_name("renamed").unlink(missing_ok=True)
    path.unlink(missing_ok=True)
    ended = in_process(act, Calls(at))
    print(ended.code, path.read_text() if path.exists() else None)
refused = in_process(act, Calls(2, "full disk"))
print(whole.sent[1], refused.code, refused.sent[2], "No space left" in refused.sent[0])
"""
    done = run(body, tmp_path)
    kill = -signal.SIGKILL
    assert done.stdout.splitlines() == [
        f"{kill} None",
        f"{kill} abc",
        f"{kill} abcdef",
        "['open', 'write', 'rename'] 2 True True",
    ], done.stderr


def test_statements_of_a_database_are_calls(tmp_path: Path) -> None:
    body = """
import sqlite3
path = Path(sys.argv[1]) / "base"
def act():
    base = sqlite3.connect(path, isolation_level=None)
    base.execute("CREATE TABLE IF NOT EXISTS t (n INTEGER)")
    base.execute("BEGIN")
    base.execute("INSERT INTO t VALUES (1)")
    base.execute("COMMIT")
def rows():
    return sqlite3.connect(path).execute("SELECT count(*) FROM t").fetchone()[0]
print(in_process(act, Calls()).sent[1], rows())
print(in_process(act, Calls(4)).code, rows())
refused = in_process(act, Calls(3, "full disk"))
print(refused.code, "No space left" in refused.sent[0], rows())
"""
    done = run(body, tmp_path)
    assert done.stdout.splitlines() == [
        "['CREATE', 'BEGIN', 'INSERT', 'COMMIT'] 1",
        f"{-signal.SIGKILL} 1",
        "2 True 1",
    ], done.stderr


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["asked new"], None),
        (["asked new", "answered new"], "new was lost"),
        (["asked new", "answered new", "asked undo new"], None),
        (["answered t0", "asked undo t0"], None),
        (["answered t0", "asked undo t0", "answered undo t0"], "t0 came back"),
    ],
)
def test_what_a_service_answered_must_hold(
    tmp_path: Path, tagged: Path, lines: list[str], said: str | None
) -> None:
    shutil.copytree(tagged, tmp_path / "model")
    (tmp_path / ANSWERED).write_text("\n".join(lines))
    if said is None:
        assert SCENARIOS["service"].state(tmp_path) == {"first": False, "last": False}
    else:
        with pytest.raises(AssertionError, match=said):
            SCENARIOS["service"].state(tmp_path)


@pytest.fixture(scope="module")
def tagged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tagged")
    SCENARIOS["service"].begin(folder)
    return folder / "model"


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("folder.joinpath('x').write_text('new half')", "x is neither old nor new"),
        ("folder.joinpath('y.partial').touch()", "then left over: ['y.partial']"),
        ("folder.joinpath('new').mkdir(exist_ok=True)", "no OSError, but"),
    ],
)
def test_planted_mistakes_are_found(tmp_path: Path, what: str, said: str) -> None:
    body = f"""
def begin(folder):
    folder.joinpath("x").write_text("old")
def act(folder):
    try:
        {what}
    except OSError as error:
        raise KeyError("a traceback") from error
    folder.joinpath("x").unlink()
    folder.joinpath("x").write_text("new")
def state(folder):
    path = folder / "x"
    return {{"x": path.read_text()}} if path.exists() else {{"x": "nothing"}}
tally = Tally()
disturbed = Disturbed("planted", Scenario(begin, act, state), Path(sys.argv[1]), tally)
for at in range(1, len(disturbed.names) + 1):
    disturbed.disturb(Calls(at))
disturbed.disturb(Calls(1, "full disk"))
"""
    done = run(body, tmp_path)
    assert said in done.stdout, done.stderr


def test_a_command_that_fails_says_one_sentence_last() -> None:
    said = "error: home/m: No space left on device"
    assert sentence(2, f"the state is in m.partial: go on with --resume\n{said}\n") == said
    for code, other in [(1, said), (2, ""), (2, f"{said}\n{said}"), (2, f"{said}\nand more")]:
        with pytest.raises(RuntimeError, match="not one sentence"):
            sentence(code, other)
    with pytest.raises(RuntimeError, match="not one sentence"):
        sentence(2, f"Traceback (most recent call last):\n{said}")
    with pytest.raises(RuntimeError, match="not said where"):
        sentence(2, "error: No space left on device")


def test_commands_whose_disk_fails(tmp_path: Path) -> None:
    """Some calls of a conversion and of a training with checkpoints; `make faults` has all."""
    body = """
import os
from tests.faults.calls import ERRORS
from tests.faults.run import ALONE
from tests.faults.scenarios import SCENARIOS
os.environ |= ALONE
tally = Tally()
for name in ("convert", "stages"):
    disturbed = Disturbed(name, SCENARIOS[name], Path(sys.argv[1]) / name, tally)
    for number in range(6):
        at = 1 + number * (len(disturbed.names) - 1) // 5
        disturbed.disturb(Calls(at, list(ERRORS)[number % 3]))
print(dict(tally.tried), len(tally.problems))
"""
    done = run(body, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"{dict.fromkeys(ERRORS, 4)} 0", done.stdout


def test_a_save_that_is_disturbed_at_every_call(tmp_path: Path) -> None:
    body = (
        SAVES
        + """
tally = Tally()
disturbed = Disturbed(
    "save",
    Scenario(lambda folder: write(folder, 1), lambda folder: write(folder, 2), state),
    Path(sys.argv[1]),
    tally,
)
for what in ("kill", *ERRORS):
    for at in range(1, len(disturbed.names) + 1):
        disturbed.disturb(Calls(at, what))
print(disturbed.names, dict(tally.tried), len(tally.problems))
"""
    )
    done = run(body, tmp_path)
    assert done.returncode == 0, done.stderr
    names, tried = done.stdout.strip().split("] ")
    calls = len(names.split(","))
    assert calls > 10 and "'replace'" in names and "'fsync'" in names
    expected = dict.fromkeys(("kill", *ERRORS), calls)
    assert tried == f"{expected} 0", done.stdout


def test_readers_beside_writers_meet_a_whole_model(tmp_path: Path) -> None:
    """Bounded by work and not by time: it holds however slow or unfair the machine is."""
    body = (
        SAVES
        + """
import json, os, time
folder = Path(sys.argv[1])
write(folder, 0)
def wait_for(names):
    while not all((folder / name).exists() for name in names):
        time.sleep(0.001)
def writer(start):
    wait_for(["began 2", "began 3"])
    for n in range(start + 1, start + 9):
        write(folder, n)
    return n
def reader(start):
    seen = [state(folder)["n"]]
    (folder / f"began {start}").touch()
    ends = [folder / "0", folder / "1"]
    while not all(end.exists() for end in ends):
        seen.append(state(folder)["n"])
    return [*seen, state(folder)["n"]]
children = []
for place, work in enumerate((writer, writer, reader, reader)):
    if (child := os.fork()) == 0:
        try:
            said = work(100 * place if work is writer else place)
            (folder / str(place)).write_text(json.dumps(said))
            os._exit(0)
        except BaseException as error:
            print(repr(error), flush=True)
            (folder / str(place)).touch()
            os._exit(1)
    children.append(child)
print([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children])
"""
    )
    done = run(body, tmp_path)
    assert done.stdout.splitlines()[-1] == "[0, 0, 0, 0]", done.stdout
    assert [json.loads((tmp_path / str(place)).read_text()) for place in range(2)] == [8, 108]
    written = {0, *range(1, 9), *range(101, 109)}
    for place in (2, 3):
        seen = json.loads((tmp_path / str(place)).read_text())
        assert seen[0] == 0 and seen[-1] in (8, 108) and set(seen) <= written
    left = {path.name for path in (tmp_path / "model").iterdir()}
    assert len(left) == 3 and {"config.json", ".lock"} < left, os.listdir(tmp_path / "model")
