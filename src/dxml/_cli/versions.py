"""``dxml versions`` and ``dxml restore``: earlier models of a folder."""

from __future__ import annotations

from pathlib import Path

import typer

from dxml._cli._options import MODEL, QUIET

__all__ = ["KEEP", "restore", "versions"]

KEEP = typer.Option(5, "--keep", metavar="N", min=0, help="Earlier versions kept.")


def versions(
    model: Path = MODEL,
    as_json: bool = typer.Option(False, "--json", help="A line a version, a JSON object each."),
) -> None:
    """Earlier versions of a model, and what replaced each.

    dxml learn, dxml labels and dxml train keep the model that was there before.
    What it has in common with the one after it is on the disk once.
    """
    import json
    from dataclasses import asdict

    from dxml._core.versions import list_versions
    from dxml.methods import saved_method
    from dxml.tagging._lessons import when

    saved_method(model)
    found = list_versions(model)
    for each in found:
        if as_json:
            line = asdict(each) | {"time": when(each.time)}
            typer.echo(json.dumps(line, ensure_ascii=False))
        else:
            size = f"{each.size / 1e6:,.1f} MB"
            typer.echo(f"{each.number:>4}  until {when(each.time)}  {size:>10}  {each.note}")
    if not found:
        typer.echo("no earlier versions", err=as_json)


def restore(
    number: int | None = typer.Argument(
        None, metavar="N", help="Of dxml versions; the last without it."
    ),
    model: Path = MODEL,
    keep: int = KEEP,
    quiet: bool = QUIET,
) -> None:
    """Bring an earlier version of a model back.

    The model that is there now is kept as a version. A service that runs goes on
    with the restored one. Lessons that it does not have are applied to it again,
    by the service and dxml learn --journal; dxml lessons undo takes one back.
    """
    from dxml._cli._model import pending_lessons
    from dxml._core.counted import counted
    from dxml._core.locking import folder_lock
    from dxml._core.versions import list_versions, restore_version
    from dxml.exceptions import ParameterError
    from dxml.methods import saved_method
    from dxml.service._settling import compact_journal
    from dxml.tagging._journal import JOURNAL

    saved_method(model)
    with folder_lock(model):
        found = [each.number for each in list_versions(model)]
        if number is None:
            if not found:
                raise ParameterError(f"{model}: there are no earlier versions.")
            number = found[-1]
        restore_version(model, number, keep)
        if (model / JOURNAL).exists():
            compact_journal(model)
    if not quiet:
        typer.echo(f"restored version {number} of {model}")
        if pending := pending_lessons(model):
            typer.echo(
                f"{counted(pending, 'lesson')} of a service not part of this version, to be "
                "applied to it again by dxml serve, also one that runs, and dxml learn --journal.\n"
                f"List with dxml lessons list --model {model}, "
                f"take one back with dxml lessons undo N --model {model}"
            )
