"""What scripts store, where pages are made of it: read it, add to it, put a table into its page."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dxml._core.files import replace_text
from dxml.bench._markdown import replace_between

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"


def results_file(name: str | Path) -> Path:
    """Where a name of a stored file leads; a path is itself."""
    return RESULTS / name if isinstance(name, str) else name


def read_results(name: str | Path) -> Any:
    """A stored file: the value of JSON, the list of all lines of ``.jsonl``; none: an empty list.

    A text is the name of a file of benchmarks/results; a path may lead elsewhere.
    """
    path = results_file(name)
    if not path.is_file():
        return []
    text = path.read_text("utf-8")
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines()]
    return json.loads(text)


def write_results(name: str | Path, record: Any) -> None:
    """Put a value in the place of what is stored."""
    replace_text(results_file(name), json.dumps(record, indent=1) + "\n")


def add_result(name: str | Path, record: dict[str, Any]) -> None:
    """Add a run: to ``.jsonl`` a line, to JSON an entry of its list."""
    path = results_file(name)
    if path.suffix == ".jsonl":
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
    else:
        write_results(path, [*read_results(path), record])


def log_test(data: str, method: str, where: Mapping[str, Any], folder: Path = RESULTS) -> None:
    """Write down that test points of the data were scored, as `dxml bench run` does.

    `where` are the circumstances of the record.
    """
    run = f"{data} {method}"
    own = {"date": where["date"], "run": run, "id": f"{Path(sys.argv[0]).stem} {run}"}
    line = {**own, "version": where["versions"]["dxml"], "commit": where["commit"]}
    add_result(folder / "test-log.jsonl", {**line, "command": where["command"]})


@dataclass(frozen=True)
class MadePart:
    """What a script writes into a page, between two marks.

    Attributes
    ----------
    page : its path in the repository
    begin, end : the marks, comments that readers do not see
    apart : whether empty lines stand behind the one and before the other
    """

    page: str
    begin: str
    end: str
    apart: bool = False

    def write(self, made: str) -> None:
        """Put lines between the marks."""
        space = "\n\n" if self.apart else "\n"
        marks = self.begin, self.end
        replace_between(page_file(self.page), marks, f"{space}{made.rstrip()}{space}")


def part_of(page: str, name: str, script: str, apart: bool = False) -> MadePart:
    """The part `name` of a page with the usual marks."""
    begin = f"<!-- {name}: made by benchmarks/{script}.py -->"
    return MadePart(page, begin, f"<!-- end of {name} -->", apart)


def page_file(page: str) -> Path:
    """Where a page lies."""
    return ROOT / page
