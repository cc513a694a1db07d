"""What a run of a fuzzer tried and found, added to a file of such runs."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from dxml._core.files import replace_text
from dxml.bench._machine import circumstances


def started(seed: int | None, **known: Any) -> dict[str, Any]:
    """A run that begins now; its figures are filled in as it goes."""
    began = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return {**circumstances(device="cpu", seed=seed), "began": began, **known}


def add(path: Path | None, run: dict[str, Any]) -> None:
    """Put a run at the end of a file, or over the last one where that is the same run."""
    if path is None:
        return
    runs = json.loads(path.read_text("utf-8")) if path.exists() else []
    same = runs and all(runs[-1].get(key) == run[key] for key in ("command", "commit", "began"))
    replace_text(path, json.dumps([*(runs[:-1] if same else runs), run], indent=1) + "\n")
