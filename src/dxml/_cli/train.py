"""``dxml train``."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dxml._cli._options import DATA, MEMORY, MODEL, QUIET, RAY, SPLIT, parse_assignments
from dxml._cli._tables import (
    ENCODING,
    GROUP,
    ID,
    LABEL_INFO,
    LABELS,
    LANGUAGE,
    LEARN_DESCRIPTIONS,
    PANEL,
    SEPARATOR,
    SKIP,
    STRICT,
    TEXT,
    LabelTable,
    Reading,
    outside,
)
from dxml._cli._target import Target
from dxml._cli.versions import KEEP
from dxml._core.counted import counted
from dxml.exceptions import ParameterError

if TYPE_CHECKING:
    from dxml.joint._held_out import HeldOut

__all__ = ["train"]

TEXT_BYTES = 3  # of memory that a byte of a table takes, about


def train(
    data: str = DATA,
    model: Path = MODEL,
    text: list[str] = TEXT,
    labels: str | None = LABELS,
    id: str | None = ID,
    group: str | None = GROUP,
    method: str | None = typer.Option(
        None, "--method", metavar="NAME", help="One of [bold]dxml methods[/bold]; joint by default."
    ),
    split: int | None = SPLIT,
    settings: list[str] = typer.Option(
        [], "--set", metavar="NAME=VALUE", help="A parameter of the method; repeatable."
    ),
    seed: int = typer.Option(
        0, "--seed", metavar="N", min=0, help="Same seed, same cores: same model."
    ),
    device: str = typer.Option("auto", "--device", metavar="NAME", help="auto, cpu or cuda."),
    encoder: str | None = typer.Option(
        None,
        "--encoder",
        metavar="NAME",
        help="Text encoder to fine-tune: name or folder, none, auto.",
        rich_help_panel=PANEL,
    ),
    vectors: str | None = typer.Option(
        None,
        "--vectors",
        metavar="NAME",
        help="Word vectors, or an encoder as it is: name or folder, none, auto.",
        rich_help_panel=PANEL,
    ),
    checkpoint: Path | None = typer.Option(
        None,
        "--checkpoint",
        metavar="DIR",
        help="Where training stores what is done; MODEL.partial by default.",
    ),
    resume: bool = typer.Option(False, "--resume", help="Go on with a training that broke off."),
    label_info: Path | None = LABEL_INFO,
    language: str | None = LANGUAGE,
    strict: bool = STRICT,
    learn_descriptions: bool = LEARN_DESCRIPTIONS,
    label_separator: str | None = SEPARATOR,
    encoding: str = ENCODING,
    skip_bad_rows: bool = SKIP,
    ray: str | None = RAY,
    memory: str | None = MEMORY,
    keep: int = KEEP,
    quiet: bool = QUIET,
) -> None:
    """Train a model on DATA and save it.

    A named data set means its training part. With --text, DATA is a table of
    texts (JSON, CSV, TSV, Excel or Parquet) and the model a tagger, which gives
    labels by name: dxml train docs.jsonl --text title --labels tags -m m

    A model that is in the folder already is kept: dxml versions, dxml restore.
    """
    from dxml._core.cluster import open_cluster
    from dxml._core.memory import open_limit

    given = {"random_state": str(seed), "device": device} | parse_assignments(settings)
    for name, value in {"encoder": encoder, "vectors": vectors}.items():
        if value is not None:
            if name in given:
                raise ParameterError(f"{name} is given twice: leave --set {name}=… out.")
            given[name] = value
    reading = Reading(text, labels, id, label_separator, encoding, skip_bad_rows, group=group)
    target = Target(model, keep)
    state = _State(checkpoint or model.with_name(f"{model.name}.partial"), resume)
    if reading.asked:
        info = LabelTable(label_info, learn_descriptions, language, strict)
        with open_limit(memory), open_cluster(ray):
            _train_tagger(data, target, method, split, given, reading, info, state, quiet)
        return
    of_tables = {
        "--group": group is not None,
        "--encoder": encoder is not None,
        "--vectors": vectors is not None,
        "--label-info": label_info is not None,
        "--language": language is not None,
        "--strict": strict,
        "--learn-descriptions": learn_descriptions,
        "--skip-bad-rows": skip_bad_rows,
    }
    if stray := [option for option, is_given in of_tables.items() if is_given]:
        raise ParameterError(f"{stray[0]} goes with a table of texts: say --text and --labels.")
    with open_limit(memory), open_cluster(ray):
        _train_method(data, target, method or "joint", split, given, state, quiet)


@dataclass(frozen=True)
class _State:
    """Where a training stores its state, and whether it goes on from there."""

    folder: Path
    resume: bool

    def check(self, quiet: bool) -> None:
        """Refuse a folder that takes no files; say where there is nothing to go on from."""
        from dxml._cli._output import check_folder

        check_folder(self.folder)
        if self.resume and not quiet and not self.there():
            typer.echo(f"{self.folder}: no state to go on from; training begins", err=True)

    def there(self) -> bool:
        """Whether anything is stored."""
        from dxml._core.stages import has_stages

        return has_stages(self.folder) or any(self.folder.glob("*/step-*"))

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Inside is the training and the saving; after both the state is removed."""
        from dxml._core.stages import remove_stages
        from dxml._deep.resuming import remove_run

        try:
            yield
        except BaseException:
            if self.there():
                typer.echo(f"the state is in {self.folder}: go on with --resume", err=True)
            raise
        remove_stages(self.folder)
        remove_run(self.folder)


def _train_tagger(
    data: str,
    target: Target,
    method: str | None,
    split: int | None,
    settings: dict[str, str],
    reading: Reading,
    info: LabelTable,
    state: _State,
    quiet: bool,
) -> None:
    from dxml._core.params import present_names
    from dxml.exceptions import did_you_mean
    from dxml.joint import Joint
    from dxml.progress import StageTimer, open_progress
    from dxml.tagging._tagger import TextTagger
    from dxml.text import check_table

    if method not in (None, "joint"):
        raise ParameterError(f"texts are tagged by method 'joint', got {method!r}.")
    if split is not None:
        raise ParameterError("a table of texts has no splits: leave --split out.")
    known, settings = TextTagger.parameters(), present_names(Joint, settings)
    for name in settings:
        if name not in known:
            raise ParameterError(f"unknown option {name!r}{did_you_mean(name, known)}")
    tagger = TextTagger(**{name: known[name].parse(value) for name, value in settings.items()})
    tagger.columns = reading.columns(None)
    target.check()
    _reserve_texts(data)
    state.check(quiet)
    start = time.perf_counter()
    with open_progress(quiet) as progress, state.kept():
        timer = StageTimer(progress)
        table = reading.read_labelled(data, tagger.columns, timer)
        vocabulary = info.read(reading)
        found = check_table(table, near=False)
        strange = outside(vocabulary, table.labels or (), info.path)
        said = [*found.lines(), *info.remarks(vocabulary), *strange]
        if quiet:
            for line in (*found.warnings(), *strange):
                typer.echo(f"warning: {line}", err=True)
        tagger.fit(
            table.texts,
            table.labels or (),
            ids=[str(name) for name in table.names],
            groups=table.groups,
            label_info=vocabulary,
            learn_descriptions=info.learn,
            strict=info.strict,
            checkpoint=state.folder,
            resume=state.resume,
            progress=timer,
        )
        what = f"trained on {counted(len(table), 'text')}"
        with timer.stage("save"), target.replacing(what) as folder:
            tagger.save(folder)
    if not quiet:
        for line in (*said, *tagger.features.remarks()):
            typer.echo(line)
        _report(
            f"trained a tagger on {counted(len(table), 'text')}, "
            f"{counted(tagger.model.n_features_in_, 'word')}, "
            f"{counted(len(tagger.labels_), 'label')}",
            timer.seconds,
            time.perf_counter() - start,
            target,
            f"dxml explain 'a text' --model {folder}",
            tagger.model.held_out_,
        )


def _reserve_texts(data: str) -> None:
    """Where memory is limited: texts cannot lie in files."""
    from dxml._core.memory import promised_memory

    memory = promised_memory()
    if memory is not None and Path(data).is_file():
        size = TEXT_BYTES * Path(data).stat().st_size
        memory.reserve(size, "the texts of a table, which stay in memory,")


def _train_method(
    data: str,
    target: Target,
    method: str,
    split: int | None,
    settings: dict[str, str],
    state: _State,
    quiet: bool,
) -> None:
    from dxml._core.params import parameters_of, parse_settings
    from dxml._core.stages import open_stages
    from dxml.data import REGISTRY, open_data
    from dxml.methods import method_class
    from dxml.progress import StageTimer, open_progress

    cls = method_class(method)
    known = parameters_of(cls)
    accepted = {
        name: text for name, text in settings.items() if name in known or name not in _COMMON
    }
    estimator = cls(**parse_settings(cls, accepted))
    target.check()
    state.check(quiet)
    start = time.perf_counter()
    with open_progress(quiet) as progress, state.kept():
        timer = StageTimer(progress)
        with timer.stage("read"):
            points = open_data(data, "train", split)
        with open_stages(state.folder, state.resume):
            estimator.fit(points.X, points.Y, progress=timer)
        what = f"trained {method} on {counted(points.n_samples, 'point')}"
        with timer.stage("save"), target.replacing(what) as folder:
            estimator.save(folder)
    if not quiet:
        _report(
            f"{what}, {counted(points.n_features, 'feature')}, {counted(points.n_labels, 'label')}",
            timer.seconds,
            time.perf_counter() - start,
            target,
            f"dxml {'evaluate ' + data if data in REGISTRY else 'predict NEW'} --model {folder}",
            getattr(estimator, "held_out_", None),
        )


_COMMON = ("random_state", "device")


def _report(
    what: str,
    seconds: dict[str, float],
    total: float,
    target: Target,
    following: str,
    held_out: HeldOut | None,
) -> None:
    """What was trained and where it is; the seconds of the stages add up to the total."""
    model = target.folder
    stages = seconds | {"other": max(total - sum(seconds.values()), 0.0)}
    width = max(map(len, stages))
    spent = "\n".join(f"  {name:<{width}} {time:>8.1f}" for name, time in stages.items())
    size = sum(file.stat().st_size for file in model.iterdir()) / 1e6
    typer.echo(f"{what}\n{total:.1f} seconds:\n{spent}\nsaved to {model} ({size:.1f} MB)")
    if (number := target.replaced) is not None:
        typer.echo(f"the model before is version {number}: dxml restore {number} --model {model}")
    if held_out is not None:
        typer.echo(f"accuracy: {held_out}")
    _tell_of_lessons(model)
    typer.echo(f"next: {following}")


def _tell_of_lessons(model: Path) -> None:
    """Lessons of an earlier model in the folder stay, and are applied to the new one."""
    from dxml._cli._model import pending_lessons

    if kept := pending_lessons(model):
        typer.echo(
            f"{counted(kept, 'lesson')} of an earlier model in this folder will be applied to this "
            f"one by dxml serve and dxml learn --journal: dxml lessons list --model {model}"
        )
