"""``dxml model``."""

from __future__ import annotations

from pathlib import Path

import typer

__all__ = ["app"]

app = typer.Typer(help="Folders of saved models: check them, export them.", no_args_is_help=True)


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


@app.command("export")
def export(
    folder: Path = typer.Argument(..., metavar="FOLDER", help="The model's folder."),
    output: Path = typer.Option(..., "--output", "-o", metavar="DIR", help="Where files go."),
    format: str = typer.Option("onnx", "--format", metavar="NAME", help="onnx."),
) -> None:
    """Write parts of a joint model or a tagger for other programs.

    onnx: linear.onnx takes features, deep.onnx takes token ids; each gives a
    score for every label. Their metadata has the labels' names.
    """
    from dxml._cli._output import check_folder
    from dxml.exceptions import ModelFormatError, ParameterError
    from dxml.joint import Joint
    from dxml.joint._exporting import export_onnx
    from dxml.methods import TAGGER, load_model, saved_method

    if format != "onnx":
        raise ParameterError(f"unknown format {format!r}; known: onnx")
    check_folder(output)
    if (method := saved_method(folder)) == TAGGER:
        from dxml.tagging._tagger import TextTagger

        tagger = TextTagger.load(folder)
        written = export_onnx(tagger.model, output, tagger.labels_)
    else:
        model = load_model(folder)
        if not isinstance(model, Joint):
            raise ModelFormatError(f"{folder}: only joint models are exported, this is {method!r}.")
        names = None if model.label_names_ is None else [str(n) for n in model.label_names_]
        written = export_onnx(model, output, names)
    for path in written:
        typer.echo(f"{path}: {path.stat().st_size / 1e6:,.1f} MB")
