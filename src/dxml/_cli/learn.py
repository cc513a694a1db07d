"""``dxml learn``."""

from __future__ import annotations

from pathlib import Path

import typer

from dxml._cli._options import MODEL, QUIET
from dxml._cli._tables import ENCODING, ID, LABELS, SEPARATOR, SKIP, TEXT, Reading, outside
from dxml._cli.versions import KEEP
from dxml._core.counted import counted

__all__ = ["learn"]


def learn(
    data: str | None = typer.Argument(
        None, metavar="DATA", help="A table of texts: JSON, CSV, TSV, Excel, Parquet."
    ),
    model: Path = MODEL,
    text: list[str] = TEXT,
    labels: str | None = LABELS,
    id: str | None = ID,
    forget: list[str] = typer.Option(
        [], "--forget", metavar="ID", help="Forget this text; repeatable."
    ),
    unlabel: tuple[str, str] | None = typer.Option(
        None, "--unlabel", metavar="ID LABEL", help="Take a wrong label off a text."
    ),
    journal: bool = typer.Option(False, "--journal", help="First apply what a service was taught."),
    catch_up: bool = typer.Option(
        False, "--catch-up", help="Then train the parts on, with all texts."
    ),
    refit: bool = typer.Option(False, "--refit", help="Then train all parts again."),
    label_separator: str | None = SEPARATOR,
    encoding: str = ENCODING,
    skip_bad_rows: bool = SKIP,
    keep: int = KEEP,
    timeout: float | None = typer.Option(
        None, "--timeout", metavar="S", min=0, help="Seconds to wait for others that write to it."
    ),
    quiet: bool = QUIET,
) -> None:
    """Teach a tagger more texts, without training it anew.

    New texts vote at once, and labels that are new are predicted from now on. A
    text whose id is known takes the place of the old one. Columns are those that
    the model was trained on, unless given. The model's folder is replaced in one
    step, when all went well; where there is nothing new to apply, it stays.
    Of several programs that teach one model each waits for the others, so that
    nothing is lost. The model before is kept: dxml versions, dxml restore.
    """
    import time

    from dxml._cli._model import load_tagger
    from dxml._cli._output import check_folder
    from dxml._core.locking import folder_lock
    from dxml._core.versions import keeping
    from dxml.exceptions import ParameterError
    from dxml.methods import saved_method
    from dxml.progress import open_progress
    from dxml.service._settling import apply_journal, compact_journal, has_new_lessons

    more_to_do = data is not None or forget or unlabel or catch_up or refit
    if not (more_to_do or journal):
        raise ParameterError(
            "give a table to learn from, --forget ID, --unlabel ID LABEL, --journal, --catch-up "
            "or --refit."
        )
    if catch_up and refit:
        raise ParameterError("--refit does all that --catch-up does. Give one of them.")
    saved_method(model)  # where there is no model, there is nothing to wait for
    check_folder(model)

    def waiting() -> None:
        typer.echo(f"waiting for another program that writes to {model}", err=True)

    with folder_lock(model, timeout=timeout, waiting=waiting):
        tagger = load_tagger(model)
        lessons = journal and has_new_lessons(model, tagger)
        if journal and not (lessons or more_to_do):
            if not quiet:
                typer.echo(f"the service was taught nothing new; {model} stays as it is")
            return
        said, warnings = list[str](), list[str]()
        if lessons:
            tagger = apply_journal(model)
            said.append("applied what the service was taught")
        elif journal:
            said.append("the service was taught nothing new")
        reading = Reading(text, labels, id, label_separator, encoding, skip_bad_rows)
        before, start = set(tagger.labels_), time.perf_counter()
        with open_progress(quiet) as progress:
            for known in forget:
                tagger.forget(known)
            if unlabel is not None:
                tagger.remove_label(*unlabel)
                said.append(f"took {unlabel[1]!r} off {unlabel[0]!r}")
            if data is not None:
                table = reading.read_labelled(data, reading.columns(tagger.columns), progress)
                with progress.stage("learn"):
                    tagger.learn(table.texts, table.labels or (), ids=table.ids)
                fresh = len(set(tagger.labels_) - before)
                said.append(f"learnt {counted(len(table), 'text')}, {_new_labels(fresh)}")
                warnings += outside(tagger.thesaurus, table.labels or (), "the vocabulary")
                if mute := len(tagger.without_words(table.texts)):
                    warnings.append(f"{counted(mute, 'text')} without a word changed nothing")
            if forget:
                said.append(f"forgot {len(forget):,}")
            if catch_up:
                tagger.catch_up(progress=progress)
                said.append("trained all parts on")
            if refit:
                tagger.refit(progress=progress)
                said.append("trained all parts again")
            with keeping(model, "; ".join(said), keep):
                tagger.save(model)
            if journal:
                compact_journal(model)
        for line in warnings:
            typer.echo(f"warning: {line}", err=True)
        if not quiet:
            seconds = time.perf_counter() - start
            typer.echo(
                f"{'; '.join(said)}: {counted(len(tagger.ids_), 'text')} known, in {seconds:.1f} s"
            )


def _new_labels(n: int) -> str:
    return "1 label is new" if n == 1 else f"{n:,} labels are new"
