"""A service that is asked, killed and weighed: what `soak.py` and `steady.py` have in common."""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dxml import TextTagger

LABELS, WORDS = 40, 7  # labels of the small tagger, and words that are signs of each
PATIENCE = 300  # seconds to start or stop; a machine with other work takes long
FILLING = [f"filling{i}" for i in range(60)]


def text_of(label: int, rng: random.Random) -> str:
    """A text with some signs of its label."""
    signs = [f"sign{label}x{i}" for i in range(WORDS)]
    return " ".join(rng.sample(signs, 4) + rng.sample(FILLING, 4))


def small_tagger(seed: int = 0, texts: int = 600) -> TextTagger:
    """A tagger that is trained in seconds and knows the labels of `text_of`."""
    rng = random.Random(seed)
    labels = [rng.randrange(LABELS) for _ in range(texts)]
    tagger = TextTagger(device="cpu", candidates="nearest", width=0)
    ids = [f"trained-{i}" for i in range(texts)]
    return tagger.fit([text_of(i, rng) for i in labels], [[f"label {i}"] for i in labels], ids=ids)


@dataclass
class Sample:
    """What a service held at a moment."""

    seconds: float
    workers: int
    megabytes: float  # of all its processes, what they share counted once
    handles: int
    disk: float  # MB of its folder and of its temporary files


@dataclass
class SoakedService:
    """`dxml serve` in a process group of its own.

    Parameters
    ----------
    model : Path
    workers : int
    scratch : Path
        For its temporary files and its log.
    token : str
        Of role admin; everything is asked with it.
    """

    model: Path
    workers: int
    scratch: Path
    token: str = "soak"
    port: int = field(default_factory=lambda: free_port())
    process: subprocess.Popen[bytes] | None = None
    samples: list[Sample] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        (self.scratch / "tmp").mkdir(exist_ok=True)
        environment = {
            **os.environ,
            "DXML_TOKEN": self.token,
            "TMPDIR": str(self.scratch / "tmp"),
            "OMP_NUM_THREADS": "1",
            "NUMBA_NUM_THREADS": "1",
        }
        command = [sys.executable, "-m", "dxml", "serve", "--quiet", "--model", str(self.model)]
        options = ["--port", str(self.port), "--workers", str(self.workers)]
        with open(self.scratch / "log", "ab") as log:
            self.process = subprocess.Popen(
                [*command, *options], env=environment, start_new_session=True, stderr=log
            )
        processes = self.workers + 1 if self.workers > 1 else 1  # a worker alone has no parent
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                if self.ask("GET", "/health")[0] == 200 and len(self.pids()) >= processes:
                    return
            except OSError:
                pass
            if self.process.poll() is not None or time.monotonic() > deadline:
                log_tail = (self.scratch / "log").read_text()[-2000:]
                raise SystemExit(f"the service did not start\n{log_tail}")
            time.sleep(0.1)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End it: its parent alone is told or killed, and the workers must follow."""
        assert self.process is not None
        workers = self.pids()
        self.process.send_signal(how)
        self.process.wait(PATIENCE)
        deadline = time.monotonic() + PATIENCE
        while any(map(is_running, workers)):
            if time.monotonic() > deadline:
                raise SystemExit("workers have outlived their service")
            time.sleep(0.05)

    def kill_worker(self, rng: random.Random) -> None:
        """Kill one of several, and wait until there are as many as before."""
        assert self.process is not None
        os.kill(rng.choice([pid for pid in self.pids() if pid != self.process.pid]), signal.SIGKILL)
        deadline = time.monotonic() + PATIENCE
        time.sleep(0.5)
        while len(self.pids()) <= self.workers and time.monotonic() < deadline:
            time.sleep(0.1)

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        """Status and content of an answer, by a connection of its own."""
        head = {"Authorization": f"Bearer {self.token}", "Connection": "close"}
        content = None
        if body is not None:
            content, head["Content-Type"] = json.dumps(body).encode(), "application/json"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, content, head)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except http.client.HTTPException as error:
            raise ConnectionError(str(error)) from error
        finally:
            connection.close()

    def pids(self) -> list[int]:
        """The parent and its workers."""
        assert self.process is not None
        parent = self.process.pid
        try:
            found = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
            commands = {int(pid): Path(f"/proc/{pid}/cmdline").read_text() for pid in found}
        except (FileNotFoundError, ProcessLookupError):
            return [parent]
        return [parent, *(pid for pid, words in commands.items() if "spawn_main" in words)]

    def weigh(self) -> None:
        """Take a sample, unless a process ends meanwhile."""
        try:
            pids = self.pids()
            held = [Path(f"/proc/{pid}/smaps_rollup").read_text() for pid in pids]
            handles = sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in pids)
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            return
        shares = [int(text.partition("\nPss:")[2].split()[0]) for text in held if "\nPss:" in text]
        if len(shares) < len(pids):
            return
        disk = folder_bytes(self.model) + folder_bytes(self.scratch / "tmp")
        at = round(time.monotonic() - self.began, 1)
        megabytes = round(sum(shares) / 1024, 1)
        workers = max(1, len(pids) - 1)
        self.samples.append(Sample(at, workers, megabytes, handles, round(disk / 1e6, 2)))


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def is_running(pid: int) -> bool:
    """Whether a process is there and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def folder_bytes(folder: Path) -> int:
    """Size of all files below a folder; what disappears meanwhile is left out."""
    size = 0
    for path in folder.rglob("*"):
        try:
            size += path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:
            continue
    return size


def levels(samples: list[Sample], what: str, workers: int) -> dict[str, float]:
    """Medians of the second and of the last quarter, of samples with all workers."""
    values = [getattr(each, what) for each in samples if each.workers == workers]
    if len(values) < 4:
        return {}
    quarter = len(values) // 4
    early, late = sorted(values[quarter : 2 * quarter]), sorted(values[-quarter:])
    before, after = early[len(early) // 2], late[len(late) // 2]
    return {"early": before, "late": after, "most": max(values), "ratio": round(after / before, 3)}


def peaks(samples: list[Sample], what: str) -> dict[str, float]:
    """The most of the second and of the last quarter: for what rises and falls all the time."""
    values = [getattr(each, what) for each in samples]
    if len(values) < 4:
        return {}
    quarter = len(values) // 4
    before, after = max(values[quarter : 2 * quarter]), max(values[-quarter:])
    return {"early": before, "late": after, "most": max(values), "ratio": round(after / before, 3)}
