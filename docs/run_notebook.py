"""Run docs/tutorial.ipynb from its first cell to its last and store what it shows."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).with_name("tutorial.ipynb")


def executed() -> Any:
    """The notebook with its outputs, without anything of the machine that ran it."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook.metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    for cell in notebook.cells:
        cell.metadata = {}
    return notebook


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=NOTEBOOK, help="where it is stored")
    target = parser.parse_args().output
    import nbformat

    nbformat.write(executed(), target)


if __name__ == "__main__":
    main()
