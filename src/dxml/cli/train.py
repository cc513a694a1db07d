"""``dxml train``."""

from __future__ import annotations

from pathlib import Path

import typer

from dxml.cli._options import DATA, MODEL, QUIET, SPLIT, parse_assignments

__all__ = ["train"]


def train(
    data: str = DATA,
    model: Path = MODEL,
    method: str = typer.Option("dxml", "--method", help="See [bold]dxml methods[/bold]."),
    split: int | None = SPLIT,
    settings: list[str] = typer.Option(
        [], "--set", metavar="NAME=VALUE", help="A parameter of the method; may be repeated."
    ),
    seed: int = typer.Option(0, "--seed", min=0, help="Same seed, same model."),
    device: str = typer.Option("auto", "--device", help="auto, cpu or cuda."),
    quiet: bool = QUIET,
) -> None:
    """Train a model on DATA and save it.

    A named data set means its training part.
    """
    from dxml._params import parameters_of, parse_settings
    from dxml._progress import StageTimer
    from dxml.cli._progress import open_progress
    from dxml.data import open_data
    from dxml.exceptions import ModelFormatError
    from dxml.methods import method_class

    cls = method_class(method)
    known = parameters_of(cls)
    given = {"random_state": str(seed), "device": device} | parse_assignments(settings)
    accepted = {name: text for name, text in given.items() if name in known or name not in _COMMON}
    estimator = cls(**parse_settings(cls, accepted))
    if model.exists() and not (model.is_dir() and _may_overwrite(model)):
        raise ModelFormatError(
            f"{model}: exists and holds no dxml model, so nothing is written over it. "
            "Give another folder."
        )
    with open_progress(quiet) as progress:
        timer = StageTimer(progress)
        with timer.stage("read"):
            points = open_data(data, "train", split)
        estimator.fit(points.X, points.Y, progress=timer)
        with timer.stage("save"):
            estimator.save(model)
    if not quiet:
        spent = ", ".join(f"{name} {seconds:.1f}" for name, seconds in timer.seconds.items())
        size = sum(file.stat().st_size for file in model.iterdir()) / 1e6
        typer.echo(
            f"trained {method} on {points.n_samples:,} points, {points.n_features:,} features, "
            f"{points.n_labels:,} labels\nseconds: {spent}\nsaved to {model} ({size:.1f} MB)\n"
            f"next: dxml evaluate {data} --model {model}"
        )


_COMMON = ("random_state", "device")


def _may_overwrite(folder: Path) -> bool:
    return (folder / "config.json").is_file() or not any(folder.iterdir())
