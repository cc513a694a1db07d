"""The command line: parse, call the library, print.

Commands import what they need when they run, so that ``dxml --help`` is instant.
"""

from __future__ import annotations

import os
import sys
from functools import partial

import typer

from dxml._cli import (
    bench,
    data,
    evaluate,
    explain,
    labels,
    learn,
    lessons,
    methods,
    model,
    plot,
    predict,
    serve,
    suggest,
    token,
    train,
    versions,
    vocabulary,
)
from dxml._cli._compiling import CompilingNotice
from dxml._core.compiled import when_compiling
from dxml.exceptions import DxmlError, command_line_advice

__all__ = ["app", "main"]

INTERRUPTED = 130  # 128 and the number of SIGINT

app = typer.Typer(
    name="dxml",
    help="Extreme multi-label classification: the few right labels out of many.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _version(wanted: bool) -> None:
    if wanted:
        from dxml import __version__

        typer.echo(f"dxml {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version."
    ),
) -> None:
    context.with_resource(command_line_advice())


app.command("train")(train.train)
app.command("predict")(predict.predict)
app.command("evaluate")(evaluate.evaluate)
app.command("explain")(explain.explain)
app.command("learn")(learn.learn)
app.command("vocabulary")(vocabulary.vocabulary)
app.command("serve")(serve.serve)
app.command("methods")(methods.methods)
app.command("suggest-next")(suggest.suggest_next)
app.command("versions")(versions.versions)
app.command("restore")(versions.restore)
app.add_typer(labels.app, name="labels")
app.add_typer(lessons.app, name="lessons")
app.add_typer(model.app, name="model")
app.add_typer(token.app, name="token")
app.add_typer(plot.app, name="plot")
app.add_typer(data.app, name="data")
app.add_typer(bench.app, name="bench")


def main() -> None:
    """Entry point: a user's mistake is one sentence and exit code 2, never a traceback.

    Ctrl-C is one word and exit code 130.
    """
    # Threads that wait for work should sleep, not spin: other programs want the cores too.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    notice = CompilingNotice(partial(typer.echo, err=True))
    if not {"-q", "--quiet"} & set(sys.argv):
        when_compiling(notice.start, notice.end)
    try:
        app()
    except DxmlError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(2)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        typer.echo(f"error: {where}{error.strerror or error}", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        sys.exit(INTERRUPTED)
    except SystemExit as stop:
        if stop.code == INTERRUPTED:  # what typer makes of Ctrl-C inside a command
            typer.echo("interrupted", err=True)
        raise
    finally:
        notice.close()
