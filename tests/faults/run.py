"""Faults of the machine: programs that write are killed, and their writes fail, at every moment.

For each scenario: it is done once undisturbed and its calls that change files are counted. Then it
is done anew, disturbed, from the same state before

- at every call: the process is killed, or the disk is full, has an error or is read-only from then;
- at random: the same at a random call, or the process is killed after a random time.

A command that meets such a disk must end with exit code 2 and one sentence. Afterwards everything
must load and be what it was before or what it should become; what a program said to be done must
be there; and when it is done again, it must come out right and nothing that was left by the
disturbed one may be there. The exit code is 1 where one of these does not hold.

    python -m tests.faults.run --random 500 --output benchmarks/results/faults.json
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import itertools
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fuzz.record import add, started

from .calls import ERRORS, Calls
from .scenario import Scenario, left_over
from .scenarios import SCENARIOS

LIMIT = 300  # seconds that a process may take
ALONE = {  # so that a process that has computed may be forked
    "NUMBA_THREADING_LAYER": "workqueue",
    "NUMBA_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}


@dataclass
class Ended:
    """A process that has ended: its exit code or minus the signal, what it sent, and its time."""

    code: int
    sent: Any
    seconds: float


def in_process(
    work: Callable[[], Any], calls: Calls | None = None, kill_after: float | None = None
) -> Ended:
    """Do work in a process of its own, which sends the result back when all is done."""
    theirs, ours = os.pipe()
    start = time.monotonic()
    gc.freeze()  # a collection there would copy the pages of all that is here
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            _in_child(work, calls, ours)
        os._exit(1)
    os.close(ours)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    with open(theirs, "rb") as pipe:
        sent = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return Ended(status, json.loads(sent) if sent else None, time.monotonic() - start)


def _in_child(work: Callable[[], Any], calls: Calls | None, pipe: int) -> None:
    signal.alarm(LIMIT)
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    if calls is not None:
        calls.install()
    try:
        sent, code = [work(), calls.names if calls else []], 0
    except Exception as error:
        sent, code = ["".join(traceback.format_exception(error)[-3:]), []], 2
        sent.append(isinstance(error, OSError))
    os.write(pipe, json.dumps(sent).encode())
    os._exit(code)


@dataclass
class Tally:
    """What was tried and what did not hold."""

    tried: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def problem(self, text: str) -> None:
        self.problems.append(text)
        print(text, flush=True)


class Disturbed:
    """One scenario in a folder of its own."""

    def __init__(self, name: str, scenario: Scenario, folder: Path, tally: Tally) -> None:
        self.name, self.scenario, self.folder, self.tally = name, scenario, folder, tally
        self.sound, self.work = folder / "sound", folder / "work"
        self.sound.mkdir(parents=True)
        scenario.begin(self.sound)
        self._anew()
        scenario.act(self.work)  # here first: whatever is imported and compiled, all have then
        scenario.state(self.work)
        self.before = _must(in_process(lambda: scenario.state(self.sound)))[0]
        self._anew()
        calls = Calls()
        done = in_process(lambda: scenario.act(self.work), calls)
        self.names: list[str] = _must(done)[1]
        self.seconds = done.seconds
        self.after = _must(in_process(lambda: scenario.state(self.work)))[0]
        if self.after == self.before:
            raise RuntimeError(f"{name} changes nothing")

    def _anew(self) -> None:
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.copytree(self.sound, self.work)

    def _settled(self, state: dict[str, Any]) -> dict[str, Any]:
        names = self.scenario.settled
        return state if names is None else {name: state[name] for name in names}

    def disturb(self, calls: Calls | None, kill_after: float | None = None) -> None:
        """Do it, disturbed, and look at what is there then and after it is done again."""
        self._anew()
        at = f"call {calls.at} of {len(self.names)}" if calls else f"after {kill_after:.3f} s"
        how = f"{calls.what}, {at}" if calls else f"kill, {at}"
        self.tally.tried[calls.what if calls else "kill"] += 1
        done = in_process(lambda: self.scenario.act(self.work), calls, kill_after)
        if done.code == 2 and not done.sent[2]:
            self.tally.problem(f"{self.name}: {how}: no OSError, but\n{done.sent[0]}")
        found = in_process(self._look)
        if found.code:
            self.tally.problem(f"{self.name}: {how}: not whole: {found.sent}")
            return
        state, again = found.sent[0]
        for key in {*self.before, *self.after, *state}:
            allowed = [self.after.get(key)]
            if done.code != 0:  # else it said that all is done
                allowed.append(self.before.get(key))
            if state.get(key) not in allowed:
                self.tally.problem(f"{self.name}: {how}: {key} is neither old nor new")
        if isinstance(again, str):
            self.tally.problem(f"{self.name}: {how}: then fails: {again}")
        elif self._settled(again[0]) != self._settled(self.after):
            self.tally.problem(f"{self.name}: {how}: then gives something else")
        elif again[1]:
            self.tally.problem(f"{self.name}: {how}: then left over: {again[1]}")

    def _look(self) -> list[Any]:
        """What is there; and what is there and left over when it is done again, or why it fails."""
        state = self.scenario.state(self.work)
        try:
            self.scenario.act(self.work)
            return [state, [self.scenario.state(self.work), left_over(self.work)]]
        except Exception as error:
            return [state, "".join(traceback.format_exception(error)[-3:])]


def _must(ended: Ended) -> Any:
    if ended.code:
        raise RuntimeError(f"undisturbed it fails ({ended.code}): {ended.sent}")
    return ended.sent


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", action="append", choices=SCENARIOS, help="all without it")
    parser.add_argument(
        "--every", action="append", choices=(*SCENARIOS, "none"), help="at every call of these"
    )
    parser.add_argument(
        "--what", action="append", choices=("kill", *ERRORS), help="every kind without it"
    )
    parser.add_argument("--random", type=int, default=500, help="faults at random, in all")
    parser.add_argument("--seconds", type=float, default=3600, help="stop earlier, after so many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, help="a JSON file that the figures are added to")
    given = parser.parse_args()
    os.environ |= ALONE
    run = started(given.seed, scenarios={})
    end, start = time.monotonic() + given.seconds, time.monotonic()
    rng, tally, names = random.Random(given.seed), Tally(), given.only or list(SCENARIOS)
    kinds = given.what or ["kill", *ERRORS]

    def store() -> None:
        run["seconds"] = round(time.monotonic() - start)
        run["tried"], run["problems"] = dict(tally.tried), len(tally.problems)
        add(given.output, run)

    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # quicker than a disk
    with tempfile.TemporaryDirectory(prefix="dxml-faults-", dir=memory) as folder:
        made = [Disturbed(name, SCENARIOS[name], Path(folder) / name, tally) for name in names]
        for each in made:
            run["scenarios"][each.name] = {
                "calls": len(each.names),
                "at every call": 0,
                "random": 0,
            }
        every = [each for each in made if each.name in (given.every or SCENARIOS)]
        for what, each in itertools.product(kinds, every):  # all kills come first
            for at in range(1, len(each.names) + 1):
                if time.monotonic() < end:
                    each.disturb(Calls(at, what))
                    run["scenarios"][each.name]["at every call"] += 1
            store()
        for number in range(given.random):
            if time.monotonic() > end:
                break
            each = made[number % len(made)]
            what = rng.choice(kinds)
            if what != "kill" or rng.random() < 0.5:
                each.disturb(Calls(rng.randrange(1, len(each.names) + 1), what))
            else:
                each.disturb(None, rng.uniform(0, each.seconds))
            run["scenarios"][each.name]["random"] += 1
            store()
    store()
    for name, figures in run["scenarios"].items():
        print(f"{name:8} " + ", ".join(f"{figures[key]:,} {key}" for key in figures))
    tried = sum(tally.tried.values())
    print(f"{tried:,} faults: {len(tally.problems)} problems")
    return 1 if tally.problems else 0


if __name__ == "__main__":
    sys.exit(main())
