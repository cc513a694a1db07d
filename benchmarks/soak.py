"""A service that is taught, swapped, restarted and killed loses nothing that it acknowledged.

    python benchmarks/soak.py                    # make soak: one hour, four workers
    python benchmarks/soak.py --short            # make soak-short: half a minute, two workers
    python benchmarks/soak.py --minutes 20 --store

Clients predict, teach, take labels off, forget and undo. Meanwhile a worker or the whole service is
killed or restarted, the model is reloaded, swapped for another one, or takes its lessons up. What a
client was answered is kept in a ledger; a change that was not answered is asked for again. At the
end each text of the ledger must be known with its labels, or not at all. Lost or wrong texts,
errors that no kill explains, and memory, handles or disk that grow are failures.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import tempfile
import threading
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import quote

from dxml._core.locking import folder_lock
from dxml.bench._machine import circumstances
from dxml.service._engine import Engine
from dxml.service._settling import apply_journal, compact_journal, undo_lesson
from dxml.tagging._journal import JOURNAL, Journal
from soaked_service import LABELS, SoakedService, levels, peaks, small_tagger, text_of
from stored_results import add_result

STORED = "soak.json"
IDS = 25  # texts of each teacher
GROWING = ("megabytes", "handles", "disk")
GROWTH = 1.25  # of the last quarter against the second
AT_LEAST = 2  # upheavals, however little time there is
QUIET = 3.0  # seconds after a kill or restart in which connections may still break


@dataclass
class Ledger:
    """What happened."""

    known: dict[str, set[str] | None] = field(default_factory=dict)  # id → labels; None: forgotten
    answered: Counter[str] = field(default_factory=Counter)
    told_to_wait: Counter[str] = field(default_factory=Counter)
    refused: list[tuple[float, str, str]] = field(default_factory=list)
    upheavals: list[tuple[float, float, str]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, what: str, trouble: str | None = None) -> None:
        """One request."""
        with self.lock:
            self.answered[what] += trouble is None
            if trouble is not None:
                self.refused.append((time.monotonic(), what, trouble))

    def unexplained(self) -> list[str]:
        """Requests that failed while nothing was killed or restarted."""
        rough = [(a, b) for a, b, kind in self.upheavals if kind.startswith(("kill", "restart"))]
        return [
            f"{what}: {trouble}"
            for at, what, trouble in self.refused
            if not any(start - QUIET <= at <= end + QUIET for start, end in rough)
        ]


class Client(threading.Thread):
    """Asks until told to stop; `act` is one thing that it does."""

    def __init__(self, service: SoakedService, ledger: Ledger, seed: int, pause: float) -> None:
        super().__init__(daemon=True)
        self.service, self.ledger, self.pause = service, ledger, pause
        self.rng = random.Random(seed)
        self.mark = f"{type(self).__name__.lower()}{seed}"
        self.ended = threading.Event()
        self.trouble: BaseException | None = None

    def run(self) -> None:
        """Until the end."""
        try:
            while not self.ended.is_set():
                self.act()
                time.sleep(self.pause)
        except BaseException as error:
            self.trouble = error
            raise

    def act(self) -> None:
        """One thing."""
        raise NotImplementedError

    def ask(self, method: str, path: str, body: object = None, *also: int) -> int:
        """Ask again and again until it is answered; `also` are statuses that are answers too."""
        what = f"{method} {path.split('/')[1]}"
        while True:
            try:
                status, content = self.service.ask(method, path, body)
            except OSError as error:
                self.ledger.count(what, type(error).__name__)
            else:
                if status < 300 or status in also:
                    self.ledger.count(what)
                    return status
                if status in (503, 504):  # a machine with other work; asked for again as any error
                    self.ledger.told_to_wait[what] += 1
                else:
                    self.ledger.count(what, f"{status} {content[:200]!r}")
                if status < 500:
                    raise SystemExit(f"{what} was refused: {content!r}")
            time.sleep(0.2)

    def learn(self, id: str) -> None:
        """Teach a text anew."""
        label = self.rng.randrange(LABELS)
        names = {f"label {label}", f"taught {label % 5}"}
        lesson = {"texts": [text_of(label, self.rng)], "labels": [sorted(names)], "ids": [id]}
        self.ask("POST", "/learn", lesson)
        self.ledger.known[id] = names


class Asker(Client):
    """Predicts; an answer must be the label whose signs the text has, in nearly all cases."""

    def act(self) -> None:
        """Ask for some texts."""
        labels = [self.rng.randrange(LABELS) for _ in range(3)]
        texts = [text_of(label, self.rng) for label in labels]
        self.ask("POST", "/predict", {"text": texts, "top": 3})


class Teacher(Client):
    """Teaches, takes labels off and forgets texts of its own."""

    def act(self) -> None:
        """One change."""
        id = f"{self.mark}/{self.rng.randrange(IDS)}"
        known = self.ledger.known.get(id)
        if not known or self.rng.random() < 0.6:
            self.learn(id)
        elif self.rng.random() < 0.5 or len(known) == 1:
            self.ask("DELETE", f"/points/{quote(id, safe='')}", None, 404)
            self.ledger.known[id] = None
        else:
            gone = self.rng.choice(sorted(known))
            self.ask("POST", "/unlabel", {"id": id, "label": gone}, 404)
            self.ledger.known[id] = known - {gone}


class Undoer(Client):
    """Teaches a text, and takes the lesson back as `dxml lessons undo` does."""

    def act(self) -> None:
        """A lesson there and back."""
        id = f"{self.mark}/{self.rng.randrange(10**9)}"
        self.learn(id)
        journal = Journal(self.service.model / JOURNAL)
        numbers = [e.number for e in journal.lessons() if e.content.get("ids") == [id]]
        journal.close()
        while True:
            try:
                undo_lesson(self.service.model, numbers[-1])
                break
            except TimeoutError:  # somebody writes the model for long
                self.ledger.told_to_wait["undo"] += 1
        self.ledger.known[id] = None
        self.ledger.count("undo")


class Breaker(Client):
    """Kills, restarts and swaps, one after the other; other clients go on meanwhile."""

    def act(self) -> None:
        """One upheaval."""
        kinds = ["kill service", "settle", "swap", "kill worker", "restart", "reload"]
        kind = kinds[len(self.ledger.upheavals) % len(kinds)]
        start = time.monotonic()
        self.ledger.upheavals.append((start, start + 1e9, kind))
        if kind == "kill worker":
            self.service.kill_worker(self.rng)
        elif kind in ("kill service", "restart"):
            self.service.stop(signal.SIGKILL if kind == "kill service" else signal.SIGTERM)
            self.service.start()
        elif kind == "reload":
            self.ask("POST", "/reload")
        elif kind == "swap":
            with folder_lock(self.service.model):
                small_tagger(self.rng.randrange(1000)).save(self.service.model)
            self.ask("POST", "/reload")
        else:
            with folder_lock(self.service.model):
                apply_journal(self.service.model).save(self.service.model)
                compact_journal(self.service.model)
        self.ledger.upheavals[-1] = (start, time.monotonic(), kind)


def wrong_texts(ledger: Ledger, model: Path) -> list[str]:
    """Texts of the ledger that a service which starts now would not know as they were taught."""
    engine = Engine(model)
    try:
        served = engine.served
        found = {}
        for id in ledger.known:
            found[id] = set(served.tagger.labels_of(id)) if served.knows(id) else None  # type: ignore[attr-defined]
    finally:
        engine.close()
    known = ledger.known.items()
    return [f"{id}: {found[id]} for {labels}" for id, labels in known if found[id] != labels]


def soak(minutes: float, workers: int, pause: float) -> dict[str, object]:
    """Run it; returns what happened."""
    ledger, end = Ledger(), time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory(prefix="dxml-soak-") as scratch:
        model = small_tagger().save(Path(scratch) / "m")
        service = SoakedService(model, workers, Path(scratch))
        service.start()
        clients = [
            *(Asker(service, ledger, seed, 0.05) for seed in range(3)),
            *(Teacher(service, ledger, seed, 0.1) for seed in range(2)),
            Undoer(service, ledger, 0, 5 * pause),
        ]
        breaker = Breaker(service, ledger, 0, pause)
        for client in (*clients, breaker):
            client.start()
        while not breaker.trouble and (time.monotonic() < end or len(ledger.upheavals) <= AT_LEAST):
            time.sleep(2)
            service.weigh()
        for client in (breaker, *clients):  # the breaker first: what it does needs no clients
            client.ended.set()
            client.join(300)
        log = (Path(scratch) / "log").read_text()
        service.stop()
        wrong = wrong_texts(ledger, model)
        left = [path.name for path in (Path(scratch) / "tmp").iterdir()]
    every = max(1, len(service.samples) // 60)
    return {
        "what": "soak",
        "minutes": minutes,
        "workers": workers,
        "answered": dict(ledger.answered),
        "upheavals": dict(Counter(kind for *_, kind in ledger.upheavals)),
        "told_to_wait": dict(ledger.told_to_wait),
        "broken_by_kills": len(ledger.refused) - len(ledger.unexplained()),
        "unexplained": ledger.unexplained(),
        "texts": len(ledger.known),
        "wrong_texts": wrong,
        "dead_clients": [client.mark for client in (*clients, breaker) if client.trouble],
        "left_over": left,
        "tracebacks": log.count("Traceback"),
        **{what: levels(service.samples, what, workers) for what in GROWING[:2]},
        "disk": peaks(service.samples, "disk"),  # lessons are taught, then settled
        "samples": [list(asdict(each).values()) for each in service.samples[::every]],
    }


def failures(found: dict[str, object], short: bool) -> list[str]:
    """What is not as it should be."""
    bad = [
        f"{name}: {found[name]}"
        for name in ("unexplained", "wrong_texts", "dead_clients", "left_over", "tracebacks")
        if found[name]
    ]
    for what in () if short else GROWING:
        level = found[what]
        assert isinstance(level, dict)
        if level.get("ratio", 0) > GROWTH:
            bad.append(f"{what} grew: {level}")
    return bad


def store(found: dict[str, object]) -> None:
    """Add a run to the stored ones, with where it ran."""
    run = {
        **circumstances(device="cpu", seed=0),
        "ended": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        **found,
    }
    add_result(STORED, run)


def main() -> None:
    """Soak, print, and store where asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--short", action="store_true", help="half a minute, two workers")
    parser.add_argument("--store", action="store_true", help=f"write {STORED}")
    asked = parser.parse_args()
    if asked.short:
        found = soak(0.35, 2, 0.2)
    else:
        found = soak(asked.minutes, asked.workers, 5.0)
    shown = {name: value for name, value in found.items() if name != "samples"}
    print(json.dumps(shown, indent=1), flush=True)
    if asked.store:
        store(found)
    if bad := failures(found, asked.short):
        raise SystemExit("; ".join(bad))


if __name__ == "__main__":
    main()
