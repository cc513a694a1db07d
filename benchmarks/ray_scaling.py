"""What a Ray cluster costs and moves: 1, 2 and 4 nodes on this machine beside no Ray.

    OMP_WAIT_POLICY=PASSIVE python benchmarks/ray_scaling.py    # stored as results/ray-scaling.json
    python benchmarks/ray_scaling.py --small     # the same on little data; prints only
    python benchmarks/ray_scaling.py --page      # docs/guide/cluster.md's table from what is stored

Nodes are processes of this machine, so more of them bring no speed: what is measured is the
overhead of Ray and the bytes that it moves. One node has all cores of the machine, several have one
core each; where that is more than there are, they share them. Repetitions go round the settings,
and the cheapest of each is taken. What counts are the seconds that processors spend, by this
process and all nodes: they depend less than the clock on what else the machine does.

Three costs are told apart. A node's processes go on starting for some seconds after it answers, so
nothing is timed before they are quiet; what they spend then, without any work, is measured. A
process loads compiled code once, so every stage is first run on little data in small blocks, which
reach all processes; what that costs more than the same again is the cost of a start. The stages
then run on data that keeps two cores busy for several seconds each, and what they spend has all of
the nodes' own burn in it.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp

from dxml._core.cluster import IN_FLIGHT, RayCluster, Traffic, ray_cluster
from dxml._learners import linear_training
from dxml._learners.linear_examples import label_signs
from dxml._learners.linear_training import fit_linear
from dxml._neighbors import cosine
from dxml._neighbors.cosine import Neighbours, unit_rows
from dxml.bench._machine import circumstances
from dxml.data import make_planted
from dxml.data._pseudo_texts import make_texts
from dxml.joint import Joint
from dxml.text import _counting
from dxml.text._features import TextFeatures
from stored_results import part_of, read_results, write_results

STORED = "ray-scaling.json"
STARTED = "OMP_WAIT_POLICY=PASSIVE python benchmarks/ray_scaling.py"
PLAIN = "plain-processes.json"  # by benchmarks/plain_processes.py
PART = part_of("docs/guide/cluster.md", "scaling", "ray_scaling")
REPEATS = 2
STORE = 400_000_000  # bytes of a node's object store
BOUND = 1.15  # of the processors' time without Ray
NODES = (1, 2, 4)
LOOK = 3.0  # seconds for which idle nodes are watched
QUIET = 0.06  # processors that idle nodes keep busy at most, each, and as much for their head
PATIENCE = 60.0  # seconds for nodes to become quiet

Row = dict[str, Any]


@dataclass(frozen=True)
class Sizes:
    """Of the generated data."""

    n_texts: int = 50_000
    times: int = 10  # that the texts are repeated: to make them takes longer than to count them
    n_points: int = 50_000
    n_features: int = 5_000
    n_labels: int = 2_000
    per_point: int = 120
    shortlist: int = 200


SMALL = Sizes(4_000, 1, 4_000, 500, 300, 30, 50)


@dataclass(frozen=True)
class Stage:
    """Work, and how many units of what it is."""

    name: str
    work: Callable[[], object]
    amount: int
    unit: str


def stages(sizes: Sizes, share: int = 0, of: int = 1) -> list[Stage]:
    """Each on data that is there when the clock starts; or one share of several."""
    some = slice(share, None, of)
    texts = (list(make_texts(sizes.n_texts).texts) * sizes.times)[some]
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
    drawn = rng.integers(0, sizes.n_labels, (sizes.n_points, sizes.shortlist), dtype=np.int32)
    ends = np.arange(sizes.n_points + 1) * drawn.shape[1]
    ones = np.ones(drawn.size, dtype=bool)
    shortlist = sp.csr_matrix((ones, drawn.ravel(), ends), shape=data.Y.shape)
    shortlist.sum_duplicates()
    signs = label_signs(data.Y, shortlist)[some]
    model = Joint(candidates="nearest", width=0, max_iter=1, C=1.0, device="cpu")
    model.fit(data.X[: sizes.n_points // 2], data.Y[: sizes.n_points // 2])
    asked, ranked = X[some], data.X[some]
    return [
        Stage("words", lambda: TextFeatures().fit_transform(texts), len(texts), "texts"),
        Stage("search", lambda: neighbours.search(asked, 101), asked.shape[0], "points"),
        Stage("linear heads", lambda: fit_linear(X, signs), signs.shape[0], "labels"),
        Stage("ranking", lambda: model.predict_topk(ranked, 5), asked.shape[0], "points"),
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


@contextmanager
def small_blocks() -> Iterator[None]:
    """So small that little data has some for every process, and not too few rows to be compiled."""
    with ExitStack() as stack:
        for where, name, size in (
            (_counting, "SENT", 100),
            (cosine, "SEARCHED", 100),
            (linear_training, "BLOCK_BYTES", 50_000),
            (Joint, "batch_rows", 100),
        ):
            stack.enter_context(patch.object(where, name, size))
        yield


def cpu_seconds() -> float:
    """That this process and all below it have spent, nodes and their workers among them."""
    parents, spent = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        parents[int(folder.name)] = int(fields[1])
        spent[int(folder.name)] = sum(map(int, fields[11:15]))  # with children that have ended
    ours = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return sum(spent[process] for process in ours) / os.sysconf("SC_CLK_TCK")


def spent_in(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds by the clock, and of all processors."""
    start, spent = time.perf_counter(), cpu_seconds()
    work()
    return time.perf_counter() - start, cpu_seconds() - spent


def burn(n_nodes: int) -> float:
    """Processors that the nodes keep busy without any work, once they are quiet."""
    end = time.monotonic() + PATIENCE
    while True:
        seconds, cpu = spent_in(lambda: time.sleep(LOOK))
        if cpu / seconds < QUIET * (n_nodes + 1) or time.monotonic() > end:
            break
    seconds, cpu = spent_in(lambda: time.sleep(2 * LOOK))
    return cpu / seconds


def start_cost(few: list[Stage]) -> float:
    """Seconds of all processors that the first run of the stages takes more than another."""

    def run() -> None:
        for stage in few:
            stage.work()

    with small_blocks():
        first, _, again = (spent_in(run)[1] for _ in range(3))
    return first - again


def timed(stage: Stage, cluster: RayCluster | None) -> Row:
    """Seconds of one stage, and what was moved."""
    if cluster is not None:
        cluster.traffic = Traffic()
    seconds, cpu = spent_in(stage.work)
    row: Row = {"seconds": seconds, "cpu": cpu}
    return row if cluster is None else row | {"traffic": asdict(cluster.traffic)}


def measure(sizes: Sizes) -> tuple[list[Row], list[Row]]:
    """Every stage in every setting, the cheapest of the repetitions; and what the nodes cost."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # whatever its name: 127.0.0.1 only
    cores = os.cpu_count() or 1
    few, work = stages(SMALL), stages(sizes)
    best: dict[tuple[int, str], Row] = {}
    nodes: dict[int, Row] = {}
    for _ in range(REPEATS):
        for n_nodes in (0, *NODES):
            opened = cluster_of(n_nodes, cores) if n_nodes else nullcontext()
            with opened as cluster:
                if n_nodes:
                    burn(n_nodes)
                start, idle = start_cost(few), burn(n_nodes) if n_nodes else 0.0
                known = nodes.get(n_nodes, {"start": start, "idle": idle})
                nodes[n_nodes] = {
                    "start": min(start, known["start"]),
                    "idle": min(idle, known["idle"]),
                }
                print(f"{n_nodes} nodes: start {start:.1f} s, idle {idle:.3f} a second", flush=True)
                for stage in work:
                    row = timed(stage, cluster)
                    print(
                        f"  {stage.name}: {row['cpu']:.1f} s in {row['seconds']:.1f} s", flush=True
                    )
                    if (n_nodes, stage.name) not in best or row["cpu"] < best[n_nodes, stage.name][
                        "cpu"
                    ]:
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
                "without idle": (row["cpu"] - nodes[n_nodes]["idle"] * row["seconds"]) / without,
            }
        )
    return rows, [{"nodes": count, **nodes[count]} for count in NODES]


def judge(rows: list[Row]) -> tuple[list[str], bool]:
    """A line for each number of nodes, and whether all of them are within the bound."""
    lines, all_within = [], True
    for n_nodes in NODES:
        mine = [row for row in rows if row["nodes"] == n_nodes]
        here = sum(row["cpu"] for row in rows if row["nodes"] == 0)
        ratios = {row["stage"]: row["ratio"] for row in mine}
        ratios["all"] = sum(row["cpu"] for row in mine) / here
        over = [name for name, ratio in ratios.items() if ratio > BOUND]
        told = ", ".join(f"{name} {ratio:.3f}" for name, ratio in ratios.items())
        verdict = f"over {BOUND}: {', '.join(over)}" if over else f"all within {BOUND}"
        lines.append(f"{n_nodes} node{'s' * (n_nodes > 1)}: {told}; {verdict}")
        all_within &= not over
    return lines, all_within


def render() -> str:
    """The table of the page."""
    stored = read_results(STORED)
    rows = {(row["nodes"], row["stage"]): row for row in stored["rows"]}
    names = list(dict.fromkeys(row["stage"] for row in stored["rows"]))
    lines = [
        "| stage | without Ray | 1 node | 2 nodes | 4 nodes | shared, sent, received |",
        "|---|---|---|---|---|---|",
    ]
    for name in names:
        here = rows[0, name]
        there = [rows[n, name] for n in NODES]
        cells = [f"{row['cpu']:.1f} s, {row['ratio']:.2f}" for row in there]
        moved = rows[2, name]["traffic"]
        size = ", ".join(f"{moved[what] / 1e6:.0f} MB" for what in ("shared", "sent", "received"))
        lines.append(f"| {name} | {here['cpu']:.1f} s | {' | '.join(cells)} | {size} |")
    total = {n: sum(rows[n, name]["cpu"] for name in names) for n in (0, *NODES)}
    cells = [f"{total[n]:.1f} s, {total[n] / total[0]:.2f}" for n in NODES]
    lines.append(f"| all | {total[0]:.1f} s | {' | '.join(cells)} | |")
    clock = {n: sum(rows[n, name]["seconds"] for name in names) for n in (0, *NODES)}
    cells = [f"{clock[n]:.1f} s, {clock[n] / clock[0]:.2f}" for n in NODES]
    lines.append(f"| all, by the clock | {clock[0]:.1f} s | {' | '.join(cells)} | |")
    plain = read_results(PLAIN)
    lines.append(f"| all, plain processes | {' | '.join(_plain_cells(plain['rows']))} | |")
    most = max(row["traffic"]["most_in_flight"] for row in stored["rows"] if row["nodes"])
    return "\n".join(
        [
            *lines,
            "",
            "Seconds of all processors, and how many times those without Ray; bytes with two "
            f"nodes. The nodes are processes of one machine with {stored['cores']} cores, so more "
            f"of them are not faster. In flight were at most {most / 1e6:.0f} MB, of "
            f"{IN_FLIGHT / 1e6:.0f} MB a core that are allowed.{_apart(stored)} {stored['note']} "
            f"`{stored['command']}` on {stored['machine']}, {stored['date']}.",
            "",
            "Plain processes do as many shares of the same work at once, each with its own copy of "
            "the data, and without Ray or anything else between them: what they spend more than "
            "one process is the price of caches and memory that processes of one machine share. "
            f"`{plain['command']}` on {plain['machine']}, {plain['date']}.",
        ]
    )


def _plain_cells(rows: list[Row]) -> list[str]:
    """Without Ray, and the cells of 1, 2 and 4 processes."""
    total = {n: sum(row["cpu"] for row in rows if row["processes"] == n) for n in NODES}
    return [
        f"{total[1]:.1f} s",
        "",
        *(f"{total[n]:.1f} s, {total[n] / total[1]:.2f}" for n in NODES[1:]),
    ]


def _apart(stored: Row) -> str:
    """What nodes cost whatever the work, where it was measured."""
    nodes = stored.get("node costs")
    if not nodes:
        return ""

    def told(what: str, digits: int) -> str:
        return ", ".join(f"{row[what]:.{digits}f}" for row in nodes)

    return (
        f" Not in the table: processes that load compiled code, once, {told('start', 1)} s with 1, "
        f"2 and 4 nodes. In the table: what nodes spend without work, {told('idle', 2)} s a second."
    )


def write_page() -> None:
    PART.write(render())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--small", action="store_true", help="little data, nothing stored")
    parser.add_argument("--page", action="store_true", help="only write the page's table")
    parser.add_argument("--note", default="", help="a sentence that is stored, on the machine")
    options = parser.parse_args()
    if options.page:
        write_page()
        return
    sizes = SMALL if options.small else Sizes()
    rows, nodes = measure(sizes)
    for row in rows + nodes:
        print(json.dumps(row))
    lines, within = judge(rows)
    print("processors' seconds, times those without Ray:", *lines, sep="\n")
    print(f"1, 2 and 4 nodes within {BOUND} in every stage and overall: {within}")
    if not options.small:
        record = {
            "note": options.note,
            "cores": os.cpu_count(),
            "sizes": asdict(sizes),
            **circumstances(device="cpu", seed=0, started=STARTED),
            "rows": rows,
            "node costs": nodes,
        }
        write_results(STORED, record)
        write_page()


if __name__ == "__main__":
    main()
