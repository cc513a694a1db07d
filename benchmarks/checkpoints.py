"""What storing the steps of a training costs: seconds of checksums and writing, and of the rest.

python benchmarks/checkpoints.py bibtex eurlex-4k
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dxml._core import stages
from dxml.data import load_dataset
from dxml.methods import method_class


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--methods", nargs="+", default=["joint", "dxml"])
    given = parser.parse_args()
    spent = {"checksums": 0.0, "writing": 0.0}

    def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            start = time.process_time()
            try:
                return function(*arguments)
            finally:
                spent[name] += time.process_time() - start

        return call

    stages._checksum = timed("checksums", stages._checksum)
    stages.write_folder = timed("writing", stages.write_folder)  # type: ignore[attr-defined]
    for dataset in given.datasets:
        data = load_dataset(dataset, "train")
        for method in given.methods:
            spent.update(checksums=0.0, writing=0.0)
            with tempfile.TemporaryDirectory() as folder, stages.open_stages(Path(folder) / "run"):
                start = time.process_time()
                method_class(method)().fit(data.X, data.Y)
                whole = time.process_time() - start
                stored = len(list((Path(folder) / "run" / stages.FOLDER).glob("*")))
            cost = sum(spent.values())
            print(
                f"{dataset} {method}: {whole:.1f} s of a core, {stored} steps stored, "
                + ", ".join(f"{what} {seconds:.2f} s" for what, seconds in spent.items())
                + f": {100 * cost / (whole - cost):.2f} % more"
            )


if __name__ == "__main__":
    main()
