"""``dxml learn``."""

from __future__ import annotations

from pathlib import Path

import typer

from dxml.cli._options import MODEL, QUIET
from dxml.cli._tables import ENCODING, ID, LABELS, SEPARATOR, SKIP, TEXT, Reading

__all__ = ["learn"]


def learn(
    data: str | None = typer.Argument(
        None, metavar="[DATA]", help="A table of texts with labels: JSON lines, CSV, TSV, Parquet."
    ),
    model: Path = MODEL,
    text: list[str] = TEXT,
    labels: str | None = LABELS,
    id: str | None = ID,
    forget: list[str] = typer.Option(
        [], "--forget", metavar="ID", help="Forget the text of this id; may be repeated."
    ),
    refit: bool = typer.Option(
        False, "--refit", help="Then train all parts again on all the texts that are known."
    ),
    label_separator: str | None = SEPARATOR,
    encoding: str = ENCODING,
    skip_bad_rows: bool = SKIP,
    quiet: bool = QUIET,
) -> None:
    """Teach a tagger more texts, without training it anew.

    New texts vote at once, and labels that are new are predicted from now on. A text whose id is
    known takes the place of the old one. Columns are those that the model was trained on, unless
    given. The model's folder is replaced in one step, when all went well.
    """
    import time

    from dxml.cli._progress import open_progress
    from dxml.exceptions import ParameterError
    from dxml.tagger import TextTagger

    if data is None and not forget and not refit:
        raise ParameterError("give a table to learn from, --forget ID or --refit.")
    tagger = TextTagger.load(model)
    reading = Reading(text, labels, id, label_separator, encoding, skip_bad_rows)
    before, start = set(tagger.labels_), time.perf_counter()
    said = []
    with open_progress(quiet) as progress:
        for known in forget:
            tagger.forget(known)
        if data is not None:
            table = reading.read_labelled(data, reading.columns(tagger.columns), progress)
            with progress.stage("learn"):
                tagger.learn(table.texts, table.labels or (), ids=table.ids)
            fresh = len(set(tagger.labels_) - before)
            said.append(f"learnt {len(table):,} texts, {fresh:,} labels are new")
        if forget:
            said.append(f"forgot {len(forget):,}")
        if refit:
            tagger.refit(progress=progress)
            said.append("trained all parts again")
        tagger.save(model)
    if not quiet:
        seconds = time.perf_counter() - start
        typer.echo(f"{'; '.join(said)}: {len(tagger.ids_):,} texts known, in {seconds:.1f} s")
