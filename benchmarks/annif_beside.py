"""Annif's backends and dxml on the same texts and subjects, and an ensemble of both in Annif.

    pip install annif[omikuji]                         # into an environment of its own
    python benchmarks/annif_beside.py --annif VENV/bin/annif --work build/annif
    python benchmarks/annif_beside.py --page           # the table of docs/guide/annif.md alone

PubMed-MeSH, as `dxml.data` finds it: titles and abstracts, subjects by URI, and a vocabulary in
SKOS of their names. Annif trains and evaluates its backends by its own commands; dxml is trained on
the same corpus with the same vocabulary, is served, and is evaluated by Annif too, as a project of
its backend ``http``. So all numbers are Annif's: F1@5 and nDCG of ten subjects. Annif's analysers
need NLTK's punkt_tab, which they fetch, or find where NLTK_DATA says.

The result goes to benchmarks/results/annif-beside.json, and from there into docs/guide/annif.md.
What was measured so far is in found.json of the folder, and a second run there goes on from it.
`--few` is a short form on 1,500 texts that shows that all of it runs, and stores nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dxml._core.device import resolve_device
from dxml.bench._machine import circumstances
from dxml.data import load_texts
from soaked_service import free_port
from stored_results import MadePart, log_test, read_results, write_results

ROOT = Path(__file__).parents[1]
STORED = "annif-beside.json"
PART = MadePart("docs/guide/annif.md", "<!-- annif-beside -->", "<!-- /annif-beside -->")
PORT = free_port()
URI = "http://example.org/mesh/"
METRICS = ("F1@5", "NDCG")
SETTINGS = {
    "tfidf": {},
    "mllm": {},
    "omikuji": {"limit": 100},  # Parabel, its default
    "bonsai": {"backend": "omikuji", "cluster_balanced": False, "cluster_k": 100, "max_depth": 3},
}


def write_corpus(path: Path, texts: list[str], labels: list[list[str]]) -> None:
    """A text and its subjects' URIs a line."""
    with path.open("w", encoding="utf-8") as file:
        for text, own in zip(texts, labels, strict=True):
            subjects = " ".join(f"<{uri}>" for uri in own)
            file.write(f"{' '.join(text.split())}\t{subjects}\n")


def write_table(path: Path, texts: list[str], labels: list[list[str]]) -> None:
    """The same for dxml; it knows the subjects by their URIs."""
    with path.open("w", encoding="utf-8") as file:
        for text, own in zip(texts, labels, strict=True):
            row = {"text": text, "labels": own}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def write_vocabulary(path: Path, uris: dict[str, str]) -> None:
    """SKOS, with preferred names alone."""
    with path.open("w", encoding="utf-8") as file:
        file.write("@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n")
        for name, uri in uris.items():
            quoted = json.dumps(name, ensure_ascii=False)
            file.write(f"<{uri}> a skos:Concept ; skos:prefLabel {quoted}@en .\n")


def write_projects(path: Path, backends: list[str]) -> None:
    """Annif's configuration: its backends, dxml behind HTTP, and ensembles of dxml and each."""
    lines = []
    for name in backends:
        lines += [f"[{name}]", f"name={name}", "language=en", "vocab=mesh"]
        settings = {"backend": name, "analyzer": "snowball(english)"} | SETTINGS[name]
        lines += [f"{key}={value}" for key, value in settings.items()] + [""]
    endpoint = f"http://127.0.0.1:{PORT}/v1/projects/dxml-model/suggest"
    lines += ["[dxml]", "name=dxml", "language=en", "vocab=mesh", "backend=http"]
    lines += [f"endpoint={endpoint}", "limit=100", ""]
    for name in backends:
        lines += [f"[dxml-{name}]", f"name=dxml and {name}", "language=en", "vocab=mesh"]
        lines += ["backend=ensemble", f"sources=dxml:1,{name}:1", "limit=100", ""]
    path.write_text("\n".join(lines), "utf-8")


class Annif:
    """Its commands, in a folder."""

    def __init__(self, program: Path, folder: Path) -> None:
        self.program, self.folder = program.absolute(), folder

    def run(self, *arguments: object) -> float:
        """Seconds that a command took."""
        command, start = [self.program, *map(str, arguments)], time.perf_counter()
        with (self.folder / "annif.log").open("ab") as log:
            subprocess.run(command, cwd=self.folder, check=True, stdout=log, stderr=log)
        return time.perf_counter() - start

    def evaluate(self, project: str, corpus: str) -> dict[str, float]:
        """Its scores of a project, and the seconds they took."""
        asked = [part for metric in METRICS for part in ("--metric", metric)]
        output = self.folder / f"{project}.json"
        seconds = self.run("eval", "--limit", 10, *asked, "--metrics-file", output, project, corpus)
        found = json.loads(output.read_text("utf-8"))
        return {metric: round(found[metric], 4) for metric in METRICS} | {"eval_s": seconds}


def train_dxml(folder: Path, settings: list[str]) -> float:
    """Seconds of ``dxml train``, with start and reading."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "dxml", "train", "train.jsonl", "--text", "text"]
    command += ["--labels", "labels", "--label-info", "mesh.ttl", "--model", "dxml-model", "-q"]
    command += [part for each in settings for part in ("--set", each)]
    subprocess.run(command, cwd=folder, check=True)
    return time.perf_counter() - start


@contextmanager
def served(folder: Path) -> Iterator[None]:
    """Inside, dxml answers as Annif does."""
    command = [sys.executable, "-m", "dxml", "serve", "--model", "dxml-model", "--port", str(PORT)]
    process = subprocess.Popen([*command, "--quiet"], cwd=folder)
    try:
        for _ in range(600):
            if process.poll() is not None:
                raise SystemExit("the service did not start")
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health") as answer:
                    if answer.status == 200:
                        break
            except OSError:
                time.sleep(0.2)
        yield
    finally:
        process.terminate()
        process.wait()


def measure(annif: Annif, backends: list[str], settings: list[str]) -> dict[str, Any]:
    """Every backend by itself, dxml, and each backend together with dxml."""
    path = annif.folder / "found.json"
    found: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}

    def keep(name: str, row: dict[str, float]) -> None:
        found[name] = row
        path.write_text(json.dumps(found), "utf-8")

    annif.run("load-vocab", "mesh", "mesh.ttl")
    for name in backends:
        if name not in found:
            corpus = ["--docs-limit", 2000] if name == "mllm" else []  # more take it hours
            seconds = annif.run("train", *corpus, name, "train.tsv")
            keep(name, {"train_s": seconds} | annif.evaluate(name, "test.tsv"))
    seconds = found.get("dxml", {}).get("train_s") or train_dxml(annif.folder, settings)
    with served(annif.folder):
        if "dxml" not in found:
            keep("dxml", {"train_s": seconds} | annif.evaluate("dxml", "test.tsv"))
        for name in backends:
            if f"dxml and {name}" not in found:
                keep(f"dxml and {name}", annif.evaluate(f"dxml-{name}", "test.tsv"))
    return found


def write_page() -> None:
    """The table of docs/guide/annif.md."""
    stored = read_results(STORED)
    lines = ["| | F1@5 | nDCG@10 | training, s | evaluating, s |", "|---|---|---|---|---|"]
    for name, row in stored["runs"].items():
        trained = f"{row['train_s']:.0f}" if "train_s" in row else ""
        scores = f"{row['F1@5']:.3f} | {row['NDCG']:.3f}"
        lines.append(f"| {name} | {scores} | {trained} | {row['eval_s']:.0f} |")
    others = ""
    if stored["load"][1] > 2 * stored["cores"]:
        others = ", which had other work meanwhile: read the seconds as a rough guide"
    lines += ["", f"{stored['train']:,} texts to train on (mllm 2,000), {stored['test']:,} to "]
    lines[-1] += f"evaluate. Annif {stored['annif']}, dxml at {stored['commit'][:7]}, on "
    lines[-1] += f"{stored['cores']} cores{others}. Annif asks dxml through HTTP."
    PART.write("\n".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--annif", type=Path, help="Annif's program")
    parser.add_argument("--page", action="store_true", help="only write the page's table")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "annif")
    parser.add_argument("--backends", nargs="+", default=list(SETTINGS), choices=list(SETTINGS))
    parser.add_argument("--few", action="store_true", help="1,500 texts; nothing is stored")
    asked = parser.parse_args()
    if asked.page:
        write_page()
        return
    if asked.annif is None:
        parser.error("--annif says where Annif's program is")
    asked.work.mkdir(parents=True, exist_ok=True)
    train, test = (load_texts("pubmed-mesh", part) for part in ("train", "test"))
    n_train, n_test = (1500, 200) if asked.few else (len(train.texts), len(test.texts))
    names = sorted(set().union(*train.labels or (), *test.labels or ()))
    uris = {name: f"{URI}{number}" for number, name in enumerate(names)}
    for part, table, n in (("train", train, n_train), ("test", test, n_test)):
        texts = list(table.texts[:n])
        labels = [[uris[name] for name in row] for row in (table.labels or ())[:n]]
        write_corpus(asked.work / f"{part}.tsv", texts, labels)
        write_table(asked.work / f"{part}.jsonl", texts, labels)
    write_vocabulary(asked.work / "mesh.ttl", uris)
    write_projects(asked.work / "projects.cfg", asked.backends)
    quick = ["candidates=nearest", "width=0", "C=1"] if asked.few else []
    found = measure(Annif(asked.annif, asked.work), asked.backends, quick)
    print(f"{'':>16} {'F1@5':>7} {'nDCG':>7} {'train s':>8} {'eval s':>8}")
    for name, row in found.items():
        numbers = f"{row['F1@5']:7.4f} {row['NDCG']:7.4f}"
        print(f"{name:>16} {numbers} {row.get('train_s', 0):8.0f} {row['eval_s']:8.0f}")
    if not asked.few:
        version = subprocess.check_output([asked.annif, "--version"], text=True).split()[-1]
        record = {
            **circumstances(device=resolve_device("auto"), seed=0),
            "cores": os.cpu_count(),
            "load": os.getloadavg(),
            "annif": version,
            "train": n_train,
            "test": n_test,
            "runs": found,
        }
        write_results(STORED, record)
        for name in found:
            log_test("pubmed-mesh", name, record)
        write_page()


if __name__ == "__main__":
    main()
