"""What a Ray cluster costs and moves: 1, 2 and 4 nodes on this machine beside no Ray.

    OMP_WAIT_POLICY=PASSIVE python benchmarks/ray_scaling.py    # stored as results/ray-scaling.json
    python benchmarks/ray_scaling.py --small     # the same on little data; prints only
    python benchmarks/ray_scaling.py --page      # docs/guide/cluster.md's table from what is stored

Nodes are processes of this machine, so more of them bring no speed: what is measured is the
overhead of Ray and the bytes that it moves. One node has all cores of the machine, several have one
core each; where that is more than there are, they share them. Every stage is run once before it is
timed, so that processes are there and compiled code is loaded. Repetitions go round the settings,
and the cheapest of each is taken. What counts are the seconds that processors spend, by this
process and all nodes: they depend less than the clock on what else the machine does.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from dxml._core.cluster import IN_FLIGHT, RayCluster, Traffic, ray_cluster
from dxml._learners.linear_examples import label_signs
from dxml._learners.linear_training import fit_linear
from dxml._neighbors.cosine import Neighbours, unit_rows
from dxml.bench._machine import commit, describe_machine, describe_versions, machine_name
from dxml.data import make_planted
from dxml.data._pseudo_texts import make_texts
from dxml.joint import Joint
from dxml.text._features import TextFeatures

ROOT = Path(__file__).parents[1]
STORED, PAGE = ROOT / "benchmarks/results/ray-scaling.json", ROOT / "docs/guide/cluster.md"
BEGIN, END = "<!-- scaling: made by benchmarks/ray_scaling.py -->", "<!-- end of scaling -->"
REPEATS = 2
STORE = 400_000_000  # bytes of a node's object store
BOUND = 1.15  # of the processors' time without Ray

Row = dict[str, Any]


@dataclass(frozen=True)
class Sizes:
    """Of the generated data."""

    n_texts: int = 100_000
    n_points: int = 16_000
    n_features: int = 5_000
    n_labels: int = 2_000
    per_point: int = 120


@dataclass(frozen=True)
class Stage:
    """Work, and how many units of what it is."""

    name: str
    work: Callable[[], object]
    amount: int
    unit: str


def stages(sizes: Sizes) -> list[Stage]:
    """Each on data that is there when the clock starts."""
    texts = make_texts(sizes.n_texts).texts
    data = make_planted(
        sizes.n_points,
        sizes.n_features,
        sizes.n_labels,
        5,
        sizes.per_point,
        noise=0.5,
    )
    X = unit_rows(data.X)
    neighbours = Neighbours(X)
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, sizes.n_labels, (sizes.n_points, 100), dtype=np.int32)
    ends = np.arange(sizes.n_points + 1) * drawn.shape[1]
    ones = np.ones(drawn.size, dtype=bool)
    shortlist = sp.csr_matrix((ones, drawn.ravel(), ends), shape=data.Y.shape)
    shortlist.sum_duplicates()
    signs = label_signs(data.Y, shortlist)
    model = Joint(candidates="nearest", width=0, max_iter=1, C=1.0, device="cpu")
    model.fit(data.X[: sizes.n_points // 2], data.Y[: sizes.n_points // 2])
    return [
        Stage("words", lambda: TextFeatures().fit_transform(texts), len(texts), "texts"),
        Stage("search", lambda: neighbours.search(X, 101), sizes.n_points, "points"),
        Stage("linear heads", lambda: fit_linear(X, signs), sizes.n_labels, "labels"),
        Stage("ranking", lambda: model.predict_topk(data.X, 5), sizes.n_points, "points"),
    ]


@contextmanager
def cluster_of(n_nodes: int, cores: int) -> Iterator[RayCluster]:
    """Nodes of one core each, or one of all cores."""
    from ray.cluster_utils import Cluster

    each = {"object_store_memory": STORE, "num_cpus": cores if n_nodes == 1 else 1}
    nodes = Cluster(initialize_head=True, head_node_args={**each, "include_dashboard": False})
    try:
        for _ in range(n_nodes - 1):
            nodes.add_node(**each)
        with ray_cluster(str(nodes.address)) as cluster:
            yield cluster
    finally:
        nodes.shutdown()


def timed(stage: Stage, cluster: RayCluster | None) -> Row:
    """Seconds of one stage after one run of it, and what was moved."""
    stage.work()
    if cluster is not None:
        cluster._put.clear()  # so that what is shared is sent again
        cluster.traffic = Traffic()
    start, spent = time.perf_counter(), cpu_seconds()
    stage.work()
    row: Row = {"seconds": time.perf_counter() - start, "cpu": cpu_seconds() - spent}
    return row if cluster is None else row | {"traffic": asdict(cluster.traffic)}


def cpu_seconds() -> float:
    """That this process and all below it have spent, nodes and their workers among them."""
    parents, spent = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        parents[int(folder.name)] = int(fields[1])
        spent[int(folder.name)] = sum(map(int, fields[11:13]))
    ours = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return sum(spent[process] for process in ours) / os.sysconf("SC_CLK_TCK")


def measure(sizes: Sizes) -> list[Row]:
    """Every stage in every setting, the quickest of the repetitions."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # whatever its name: 127.0.0.1 only
    cores = os.cpu_count() or 1
    work = stages(sizes)
    best: dict[tuple[int, str], Row] = {}
    for _ in range(REPEATS):
        for n_nodes in (0, 1, 2, 4):
            opened = cluster_of(n_nodes, cores) if n_nodes else nullcontext()
            with opened as cluster:
                for stage in work:
                    row = timed(stage, cluster)
                    known = best.get((n_nodes, stage.name))
                    if known is None or row["cpu"] < known["cpu"]:
                        best[n_nodes, stage.name] = row
    rows = []
    for (n_nodes, name), row in best.items():
        stage = next(stage for stage in work if stage.name == name)
        without = best[0, name]["cpu"]
        rows.append(
            {
                "nodes": n_nodes,
                "stage": name,
                "amount": stage.amount,
                "unit": stage.unit,
                **row,
                "ratio": row["cpu"] / without,
            }
        )
    return rows


def render() -> str:
    """The table of the page."""
    stored = json.loads(STORED.read_text("utf-8"))
    rows = {(row["nodes"], row["stage"]): row for row in stored["rows"]}
    names = list(dict.fromkeys(row["stage"] for row in stored["rows"]))
    lines = [
        "| stage | without Ray | 1 node | 2 nodes | 4 nodes | shared, sent, received |",
        "|---|---|---|---|---|---|",
    ]
    for name in names:
        here = rows[0, name]
        there = [rows[n, name] for n in (1, 2, 4)]
        cells = [f"{row['cpu']:.1f} s, {row['ratio']:.2f}" for row in there]
        moved = rows[2, name]["traffic"]
        size = ", ".join(f"{moved[what] / 1e6:.0f} MB" for what in ("shared", "sent", "received"))
        lines.append(f"| {name} | {here['cpu']:.1f} s | {' | '.join(cells)} | {size} |")
    total = {n: sum(rows[n, name]["cpu"] for name in names) for n in (0, 1, 2, 4)}
    cells = [f"{total[n]:.1f} s, {total[n] / total[0]:.2f}" for n in (1, 2, 4)]
    lines.append(f"| all | {total[0]:.1f} s | {' | '.join(cells)} | |")
    most = max(row["traffic"]["most_in_flight"] for row in stored["rows"] if row["nodes"])
    return "\n".join(
        [
            *lines,
            "",
            "Seconds of all processors, and how many times those without Ray; bytes with two "
            f"nodes. The nodes are processes of one machine with {stored['cores']} cores, so more "
            f"of them are not faster. In flight were at most {most / 1e6:.0f} MB, of "
            f"{IN_FLIGHT / 1e6:.0f} MB a core that are allowed. {stored['note']} "
            f"`{stored['command']}` on {stored['machine']}, {stored['date']}.",
        ]
    )


def write_page() -> None:
    before, rest = PAGE.read_text("utf-8").split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n{render()}\n{END}{after}", "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--small", action="store_true", help="little data, nothing stored")
    parser.add_argument("--page", action="store_true", help="only write the page's table")
    parser.add_argument("--note", default="", help="a sentence that is stored, on the machine")
    options = parser.parse_args()
    if options.page:
        write_page()
        return
    sizes = Sizes(4_000, 3_000, 1_000, 300, 30) if options.small else Sizes()
    rows = measure(sizes)
    for row in rows:
        print(json.dumps(row))
    within = all(row["ratio"] <= BOUND for row in rows if row["nodes"] in (1, 2))
    print(f"overhead under {BOUND - 1:.0%} with 1 and 2 nodes in every stage: {within}")
    if not options.small:
        record = {
            "command": "OMP_WAIT_POLICY=PASSIVE python benchmarks/ray_scaling.py",
            "note": options.note,
            "cores": os.cpu_count(),
            "sizes": asdict(sizes),
            "machine": machine_name(describe_machine()),
            "versions": describe_versions(),
            "commit": commit(),
            "date": date.today().isoformat(),
            "rows": rows,
        }
        STORED.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
        write_page()


if __name__ == "__main__":
    main()
