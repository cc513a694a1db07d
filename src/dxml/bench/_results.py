"""Stored results: one folder a run, written under another name and renamed when complete.

::

    RESULTS/NAME.json                  summary of an experiment: small, may be committed
    RESULTS/test-log.jsonl             a line for each time that test points were scored
    RESULTS/raw/RUN_ID/result.json     everything but the ranking; of a failed run, the error
    RESULTS/raw/RUN_ID/ranking.npz     indices int32, scores float32
    RESULTS/raw/RUN_ID/scores.json     computed from the ranking, and thrown away without loss
    RESULTS/peers/                     environments of peers
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dxml._core.files import naming, replace_folder, replace_text
from dxml.bench._machine import plain
from dxml.bench._own_files import checksums
from dxml.bench._spec import Run, known_parameters
from dxml.exceptions import DataFormatError
from dxml.topk import TopK

__all__ = ["FORMAT", "Store", "Stored", "write_json"]

FORMAT = 1

Status = Literal["done", "failed"]


def write_json(path: Path, values: Any) -> None:
    """JSON that a person can read, replaced in one step."""
    replace_text(path, json.dumps(values, indent=1, ensure_ascii=False) + "\n")


@dataclass(frozen=True)
class Stored:
    """One stored result."""

    run: Run
    folder: Path
    record: dict[str, Any]

    @property
    def status(self) -> Status:
        return "failed" if "error" in self.record else "done"

    @property
    def stale(self) -> bool:
        """It is no longer the run it was: a default has changed since, or a file of one's own."""
        if self.record.get("files", {}) != checksums(self.run.method, self.run.dataset):
            return True
        now = {name: p.default for name, p in known_parameters(self.run.method).items()}
        now |= dict(self.run.parameters)
        then = self.record.get("parameters", {})
        common = (now.keys() & then.keys()) - {"random_state", "device"}
        return any(now[name] != then[name] for name in common)

    def ranking(self) -> TopK:
        """The raw ranking of a run that did not fail."""
        with np.load(self.folder / "ranking.npz", allow_pickle=False) as arrays:
            return TopK(arrays["indices"], arrays["scores"])

    def ranking_hash(self) -> str:
        """Tells one ranking from another, whatever the file's date."""
        ranking = self.ranking()
        return hashlib.sha256(ranking.indices.tobytes() + ranking.scores.tobytes()).hexdigest()


class Store:
    """The results under one folder."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        self.raw = self.root / "raw"

    def folder(self, run: Run) -> Path:
        """Where the run's result is, or would be."""
        return self.raw / run.id

    def partial(self, run: Run) -> Path:
        """Where it is while it is being written."""
        return self.raw / f".{run.id}.partial"

    def get(self, run: Run) -> Stored | None:
        """The stored result of a run; None where there is none."""
        path = self.folder(run) / "result.json"
        if not path.is_file():
            return None
        record = json.loads(path.read_text("utf-8"))
        if record.get("format") != FORMAT:
            raise DataFormatError(
                f"{path}: format {record.get('format')!r} is not {FORMAT}. "
                "Remove the folder and run again."
            )
        return Stored(Run.from_dict(record["run"]), path.parent, record)

    def put(self, run: Run, record: dict[str, Any], ranking: TopK | None) -> Stored:
        """Store a result in one step, in place of any earlier one."""
        partial, folder = self.partial(run), self.folder(run)
        full = {"format": FORMAT, "run": run.as_dict(), **record}
        with naming(folder):
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            if ranking is not None:
                np.savez(partial / "ranking.npz", indices=ranking.indices, scores=ranking.scores)
            write_json(partial / "result.json", full)
            replace_folder(partial, folder)
            if run.part == "test" and ranking is not None:
                self._log_test(run, record)
        return Stored(run, folder, full)

    @property
    def test_log(self) -> Path:
        """Where it is written down that test points were scored."""
        return self.root / "test-log.jsonl"

    def _log_test(self, run: Run, record: dict[str, Any]) -> None:
        line = {
            "date": record.get("date"),
            "run": plain(str(run)),
            "id": run.id,
            "version": record.get("versions", {}).get("dxml"),
            "commit": record.get("commit"),
            "command": record.get("settings", {}).get("command"),
        }
        with self.test_log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")

    def scored_on_test(self, runs: Iterable[Run], version: str) -> int:
        """How many of these runs have scored test points with this version of dxml before."""
        if not self.test_log.is_file():
            return 0
        lines = map(json.loads, self.test_log.read_text("utf-8").splitlines())
        before = {line["id"] for line in lines if line["version"] == version}
        return sum(run.id in before for run in runs)

    def discard_partial(self, run: Run) -> None:
        """Remove what an interrupted run left behind."""
        shutil.rmtree(self.partial(run), ignore_errors=True)

    def __iter__(self) -> Iterator[Stored]:
        """Every stored result, by id."""
        for path in sorted(self.raw.glob("[!.]*/result.json")):
            stored = self.get(Run.from_dict(json.loads(path.read_text("utf-8"))["run"]))
            if stored is not None:
                yield stored
