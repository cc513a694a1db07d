"""The measured tables of docs/guide/deep.md, from what is stored.

    python benchmarks/deep_page.py

Scores of test points are those of ``dxml bench run deep`` and ``dxml bench run joint``, labels
without examples those of ``benchmarks/deep_names.py``, many labels those of ``deep_scale.py``,
the paper's method with an encoder that of ``dxml bench run deep-dxml``.
"""

from __future__ import annotations

from typing import Any

from dxml.bench._machine import machine_name
from stored_results import MadePart, read_results

PAGE = "docs/guide/deep.md"
NAMES = {"pubmed-mesh": "PubMed-MeSH", "tibkat-gnd": "TIBKAT-GND"}


def test_scores() -> str:
    """P, PSP and ECE of test points, with the encoder and without."""
    out = ["| data | method | P@1 / 3 / 5 | PSP@1 / 3 / 5 | ECE@1, ECE@5 | training | where |"]
    out.append("|---|---|---|---|---|---|---|")
    for experiment in ("joint", "deep"):
        summary = read_results(f"{experiment}.json")
        for row in summary["rows"]:
            on_gpu = row["devices"] == ["cuda"]
            if row["dataset"] not in NAMES or not row["runs"] or not on_gpu or row["study"]:
                continue
            scores = {name: value["mean"] for name, value in row["scores"].items()}
            cells = [
                NAMES[row["dataset"]],
                "with the encoder" if experiment == "deep" else "Joint",
                " / ".join(f"{scores[f'P@{k}']:.2f}" for k in (1, 3, 5)),
                " / ".join(f"{scores[f'PSP@{k}']:.2f}" for k in (1, 3, 5)),
                f"{scores['ECE@1']:.2f}, {scores['ECE@5']:.2f}",
                f"{row['seconds']['train']['mean']:.0f} s",
                f"{row['machines'][0]}, commit {summary['commits'][-1][:7]}",
            ]
            out.append("| " + " | ".join(cells) + " |")
    return "\n".join(out[:2] + sorted(out[2:])) + "\n"


def names() -> str:
    """Labels that no training text carried, by their names."""
    rows = {
        "of the hidden labels alone: names read by the encoder": "names read, among hidden labels",
        "of the hidden labels alone: words of text and name": "words of names, among hidden labels",
        "all labels, texts with a hidden one: hidden ones left out": "all labels of texts that "
        "carry one, ranked without hidden labels",
        "all labels, texts with a hidden one: ranked with them": "all labels of texts that carry "
        "one, with them, by the model itself",
        "all labels, other texts: hidden ones left out": "all labels of texts that carry none, "
        "ranked without hidden labels",
        "all labels, other texts: ranked with them": "all labels of texts that carry none, "
        "with them, by the model itself",
    }
    stored = {line["options"]["data"]: line for line in read_results("deep-names.jsonl")}
    out = ["| | " + " | ".join(f"{NAMES[data]}, P@1 / 3 / 5 | recall@5" for data in stored) + " |"]
    out.append("|---" * (1 + 2 * len(stored)) + "|")
    for what, key in rows.items():
        cells = [what]
        for line in stored.values():
            precision, recall = line["scores"][f"{key}: P@k"], line["scores"][f"{key}: recall@k"]
            cells += [" / ".join(f"{value:.1f}" for value in precision), f"{recall[2]:.1f}"]
        out.append("| " + " | ".join(cells) + " |")
    return "\n".join(out) + "\n"


def rare() -> str:
    """Labels that were not hidden, with names and without."""
    out = ["| data | names | P@1 / 3 / 5 | PSP@1 / 3 / 5 | macro recall@1 / 3 / 5 |"]
    out.append("|---|---|---|---|---|")
    for line in read_results("deep-names.jsonl"):
        for how, ending in (("read", ""), ("not read", ", trained without names")):
            cells = [NAMES[line["options"]["data"]], how]
            for measure in ("P", "PSP", "macro recall"):
                found = line["scores"][f"other labels: {measure}@k{ending}"]
                cells.append(" / ".join(f"{value:.2f}" for value in found))
            out.append("| " + " | ".join(cells) + " |")
    return "\n".join(out) + "\n"


def scale() -> str:
    """Memory and time with very many labels."""
    last = {line["labels"]: line for line in read_results("deep-scale.jsonl")}
    return "".join(_with_many_labels(last[n_labels]) for n_labels in sorted(last))


def _with_many_labels(line: dict[str, Any]) -> str:
    gpu = line["peak memory of the GPU, GiB"]
    held = f"{gpu:g} GiB of the GPU's memory" if gpu else _of_the_host(line)
    return (
        f"With {line['labels']:,} labels and {line['texts']:,} generated texts, training took "
        f"{line['training, seconds']:g} s and {held}; the head's weights alone are "
        f"{line['head in float32, GiB']:g} GiB\n"
        f"({machine_name(line['machine'])}, commit {line['commit'][:7]}).\n"
    )


def _of_the_host(line: dict[str, Any]) -> str:
    return f"{line['peak memory of the host, GiB']:g} GiB of memory, torch's own included"


def in_dxml() -> str:
    """The paper's method with the encoder in place of its two layers."""
    summary = read_results("deep-dxml.json")
    out = ["| f_x | P@1 / 3 / 5 | PSP@1 / 3 / 5 | training | where |", "|---|---|---|---|---|"]
    for row in summary["rows"]:
        scores = {name: value["mean"] for name, value in row["scores"].items()}
        cells = [
            "the encoder" if "encoder" in row["parameters"] else "the paper's two layers",
            " / ".join(f"{scores[f'P@{k}']:.2f}" for k in (1, 3, 5)),
            " / ".join(f"{scores[f'PSP@{k}']:.2f}" for k in (1, 3, 5)),
            f"{row['seconds']['train']['mean']:.0f} s",
            f"{row['machines'][0]}, commit {summary['commits'][-1][:7]}",
        ]
        out.append("| " + " | ".join(cells) + " |")
    return "\n".join(out) + "\n"


TABLES = {
    "test scores": test_scores,
    "names": names,
    "rare labels": rare,
    "scale": scale,
    "in dxml": in_dxml,
}


def write_page() -> None:
    for name, make in TABLES.items():
        MadePart(PAGE, f"<!-- {name} -->", "<!-- end -->").write(make())


if __name__ == "__main__":
    write_page()
