"""``dxml model``."""

from __future__ import annotations

from pathlib import Path

import typer

__all__ = ["app"]

app = typer.Typer(help="Folders of saved models: are they what was written?", no_args_is_help=True)


@app.callback()
def _group() -> None:
    pass


@app.command("check")
def check(
    folder: Path = typer.Argument(..., metavar="FOLDER", help="The model's folder."),
) -> None:
    """Look through a model's folder: a line a file, then one for the model.

    The checksums of both files are compared, every array is checked, and the
    model is opened. A folder that is damaged is one sentence and exit code 2.
    """
    from dxml._core.storage import verify_folder
    from dxml.base import Classifier
    from dxml.methods import TAGGER, load_model, saved_method

    for file in verify_folder(folder):
        typer.echo(f"{file.name}: {file.size:,} bytes, {file.said}")
    if (method := saved_method(folder)) == TAGGER:
        from dxml.tagging._tagger import TextTagger

        model: Classifier = TextTagger.load(folder).model
    else:
        model = load_model(folder)
    typer.echo(
        f"{method}: opens; {model.n_samples_:,} points, {model.n_features_in_:,} features, "
        f"{model.n_labels_:,} labels"
    )
