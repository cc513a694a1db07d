"""``dxml predict``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import typer

from dxml._cli._options import DATA, MEMORY, MODEL, PRECISION, QUIET, RAY, RECALL, SPLIT
from dxml._cli._tables import ENCODING, ID, LINES, SKIP, TEXT, Reading

__all__ = ["OutputFormat", "predict"]


class OutputFormat(StrEnum):
    """How predictions are written."""

    tsv = "tsv"
    csv = "csv"
    jsonl = "jsonl"
    npz = "npz"


def predict(
    data: str = DATA,
    model: Path = MODEL,
    top: int | None = typer.Option(
        None, "--top", metavar="N", min=1, help="Labels a point; 5, or 50 above a threshold."
    ),
    threshold: float | None = typer.Option(
        None, "--threshold", metavar="P", min=0, max=1, help="Only labels at least so probable."
    ),
    precision: float | None = PRECISION,
    recall: float | None = RECALL,
    output: Path | None = typer.Option(
        None, "--output", "-o", metavar="FILE", help="Where to write; by default standard output."
    ),
    format: OutputFormat = typer.Option(
        OutputFormat.tsv,
        "--format",
        metavar="KIND",
        help="tsv, csv: a row a point, jsonl, npz.",
    ),
    as_json: bool = typer.Option(False, "--json", help="The same as --format jsonl."),
    with_parents: bool = typer.Option(
        False,
        "--with-parents",
        help="Of a tagger with --label-info: add broader labels.",
    ),
    split: int | None = SPLIT,
    text: list[str] = TEXT,
    id: str | None = ID,
    lines: bool = LINES,
    encoding: str = ENCODING,
    skip_bad_rows: bool = SKIP,
    ray: str | None = RAY,
    memory: str | None = MEMORY,
    quiet: bool = QUIET,
) -> None:
    """Rank labels for the points of DATA.

    A named data set means its test part. Where the model is a tagger, DATA is a
    table of texts (JSON, CSV, TSV, Excel, Parquet) or a file or folder of plain
    text (.txt), and labels come by name with their probabilities. Features may
    come without labels: X.npz. DATA may be - for standard input: text or JSON, or
    the lines of libsvm where the model takes features.

    A file of any length is read in blocks, and what was ranked is written at
    once; only npz waits for the end.

    A pattern in quotes names several files, such as 'new/*.jsonl'. --output is
    then a folder, where each gets a file of its name; with --ray the machines of
    the cluster read and write them there.

    --precision 0.9 gives the labels above the threshold at which nine of ten are
    right, --recall 0.8 those above the one that finds eight of ten true labels.
    Points held out in training choose it, so that the promise is kept with 95 %
    confidence on points like those; where they do not allow it, it is refused.

    Points go by their ids, or else by their row in the table, from 0. Rows that
    --skip-bad-rows leaves out are counted, so the others keep their numbers; in
    npz they are empty rows.
    """
    from dxml._cli._files import files_of, outputs_of, refuse_text, write_files
    from dxml._cli._promise import Promise
    from dxml._cli._rankers import Job, open_ranker
    from dxml._cli._write import check_output
    from dxml._core.cluster import open_cluster
    from dxml._core.memory import open_limit
    from dxml.methods import TAGGER, saved_method
    from dxml.progress import open_progress

    if saved_method(model) == TAGGER:
        refuse_text(data, model)
    chosen = (OutputFormat.jsonl if as_json else format).value
    reading = Reading(text, None, id, None, encoding, skip_bad_rows, lines)
    promise = Promise(precision, recall)
    promise.check(top, threshold)
    job = Job(model, chosen, top, threshold, with_parents, split, reading, promise)
    files = files_of(data)
    if files is None:
        check_output(chosen, output)
    else:
        outputs = outputs_of(files, output, chosen)
    with open_limit(memory), open_cluster(ray), open_progress(quiet) as progress:
        if files is None:
            ranker = open_ranker(job)
            with progress.stage("predict", None, ranker.unit) as stage:
                tally = ranker.write(data, output, stage)
        else:
            with progress.stage("predict", len(files), "files") as stage:
                tally = write_files(job, files, outputs, stage)
    if tally.unknown:
        found = f"no word of {tally.unknown:,} of {tally.points:,} texts is known"
        typer.echo(f"{found}: their labels are only frequent ones", err=True)
