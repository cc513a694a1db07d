"""What 100 million points and 10 million labels would take on a Ray cluster.

    python benchmarks/cluster_plan.py            # stored as results/cluster-plan.json
    python benchmarks/cluster_plan.py --again    # a new plan with the rates that are stored
    python benchmarks/cluster_plan.py --page     # docs/guide/cluster.md's tables from that

The rates of one core are measured here, on generated data of several sizes. The plan applies them
to the size that is asked for: blocks are cut as `dxml._core.blocks` cuts them and given to cores as
`dxml._core.cluster` gives them, two a core at a time, results taken in the order of the blocks by
one process, which also makes and merges them. Machines die at random; their blocks begin again
elsewhere. Training points are searched some at a time (`searched_at_a_time` of
`dxml.joint._points`), the next ones when the command has the neighbours of these. What the command
does with those neighbours in between is left out.
"""

from __future__ import annotations

import argparse
import heapq
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from dxml._core.blocks import BLOCK_BYTES, run_blocks
from dxml._core.cluster import AHEAD, ray_cluster
from dxml._core.threads import threads
from dxml._learners.linear_examples import label_signs
from dxml._learners.linear_training import SIGN_BYTES, WEIGHT_BYTES, fit_linear
from dxml._neighbors.cosine import FEW_REACHED, MOST_SEARCHED, SHARES, Neighbours, unit_rows
from dxml.base import Classifier
from dxml.bench._machine import circumstances, commit
from dxml.data._pseudo_texts import make_texts
from dxml.joint._points import searched_at_a_time
from dxml.text._counting import SENT
from dxml.text._features import TextFeatures
from dxml.text._tokens import WORD_BYTES
from stored_results import part_of, read_results, write_results

STORED = "cluster-plan.json"
PART = part_of("docs/guide/cluster.md", "plan", "cluster_plan")

MACHINES = (8, 32, 128)  # of the clusters that are planned

Row = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """What is to be trained."""

    n_points: float = 1e8
    n_labels: float = 1e7
    n_features: float = 2e6
    words: int = 80  # features of a point
    letters: int = 600  # of a text
    carried: int = 5  # labels of a point
    negatives: int = 200  # labels on a point's shortlist
    postings: int = 4000  # points with a feature that is searched by, at most
    fits: int = 5  # of the linear heads: the last, and four trials of half as many passes
    passes: int = 6 + 4 * 3  # in all fits
    weights: int = 300  # of a label that stay after pruning


@dataclass(frozen=True)
class Machine:
    """One of the cluster; the command runs on such a one too."""

    cores: int = 16
    memory: float = 256e9  # bytes
    network: float = 1.25e9  # bytes a second
    hours_between_failures: float = 100.0


@dataclass(frozen=True)
class Rates:
    """Of one core, measured.

    Attributes
    ----------
    texts : letters a second, learnt as words
    merged : non-zeros a second that the command renumbers and joins
    search : postings a second, where a query reaches a small share of the known points
    heads : multiplications a second: signs × non-zeros × passes
    copied : bytes a second that the command gives away and takes back
    given : blocks a second that the command gives away, without their bytes
    """

    texts: float
    merged: float
    search: float
    heads: float
    copied: float
    given: float


def quickest(work: Callable[[], object], times: int = 3) -> float:
    """Seconds that this process spends in the quickest of some runs."""
    spent = []
    for _ in range(times):
        start = time.process_time()
        work()
        spent.append(time.process_time() - start)
    return min(spent)


def points_of(n: int, d: int, words: int, seed: int) -> sp.csr_matrix:
    """Rows of `words` features drawn uniformly: each feature has about n · words / d points."""
    rng = np.random.default_rng(seed)
    indices = rng.integers(0, d, n * words, dtype=np.int32)
    values = rng.random(n * words, dtype=np.float32)
    X = sp.csr_matrix((values, indices, np.arange(n + 1) * words), shape=(n, d))
    X.sum_duplicates()
    return unit_rows(X)


def search_rate() -> tuple[float, list[Row]]:
    """Postings a second, in the slowest of several shapes: more sums lie farther apart."""
    rows = []
    for n, d in ((400_000, 200_000), (1_600_000, 40_000), (8_000_000, 200_000)):
        X = points_of(n, d, 20, 0)
        index, queries = Neighbours(X), X[:256]
        per_feature = np.diff(index.columns.starts)
        postings = float(per_feature[queries.indices].sum()) / queries.shape[0]
        assert postings <= n / FEW_REACHED
        seconds = quickest(lambda i=index, q=queries: i.search(q, 101)) / queries.shape[0]
        rows.append({"points": n, "postings": postings, "seconds": seconds})
    return min(row["postings"] / row["seconds"] for row in rows), rows


def head_rate() -> float:
    """Multiplications a second of the linear heads."""
    n, n_labels, per = 20_000, 2_000, 100
    X = points_of(n, 50_000, 80, 1)
    rng = np.random.default_rng(2)
    drawn = rng.integers(0, n_labels, (n, per), dtype=np.int32)
    ends = np.arange(n + 1) * per
    shortlist = sp.csr_matrix((np.ones(drawn.size, bool), drawn.ravel(), ends), (n, n_labels))
    shortlist.sum_duplicates()
    own = sp.csr_matrix((np.ones(n, bool), drawn[:, 0], np.arange(n + 1)), (n, n_labels))
    signs = label_signs(own, shortlist)
    passes = 3
    seconds = quickest(lambda: fit_linear(X, signs, max_iter=passes))
    return float(signs.nnz * (X.nnz / n) * passes / seconds)


def measure() -> tuple[Rates, list[Row]]:
    with threads(1):
        texts = make_texts(10_000).texts
        letters = sum(map(len, texts))
        seconds = quickest(lambda: TextFeatures().fit_transform(texts))
        X = points_of(50_000, 100_000, 80, 3)
        numbers = np.random.default_rng(4).permutation(X.shape[1]).astype(np.int32)

        def merge() -> None:
            renamed = sp.csr_matrix((X.data, numbers[X.indices], X.indptr), shape=X.shape)
            renamed.sort_indices()
            sp.vstack([renamed[:25_000], renamed[25_000:]], format="csr")

        merged = X.nnz / quickest(merge)
        search, rows = search_rate()
        rates = Rates(letters / seconds, merged, search, head_rate(), *ray_rates())
    return rates, rows


def ray_rates() -> tuple[float, float]:
    """Bytes and blocks that a second of the command gives to Ray and takes back, untouched."""
    many, large = range(1000), np.ones(1_000_000, dtype=np.float64)

    def back(_: object, block: object) -> object:
        return block

    def all_of(blocks: Iterable[object]) -> None:
        for _ in run_blocks(back, (), blocks):
            pass

    with ray_cluster("local"):
        all_of(many)
        given = len(many) / quickest(lambda: all_of(many))
        n = 40
        seconds = quickest(lambda: all_of(large for _ in range(n)))
    return 2 * n * large.nbytes / max(seconds - n / given, 1e-9), given


@dataclass(frozen=True)
class Stage:
    """Blocks that are alike."""

    name: str
    blocks: int
    seconds: float  # of one on a core
    sent: float  # bytes
    received: float
    shared: float  # bytes that every machine needs once
    driver: float  # seconds of the command a block, beside the bytes
    turn: int | None = None  # blocks after which the command waits for all of them


def at_a_time(task: Task, n_cores: int) -> int:
    """Points whose neighbours the command has, on a cluster of so many cores."""
    return int(min(task.n_points, searched_at_a_time(n_cores)))


def stages(task: Task, rates: Rates, n_cores: int) -> list[Stage]:
    """The CPU parts of a joint model of linear head and votes, in their order, and a prediction."""
    n, row = task.n_points, row_bytes(task)
    texts = min(SENT, int(BLOCK_BYTES / (WORD_BYTES * task.letters)))  # of a block
    nnz = texts * task.words
    words = Stage(
        "words",
        blocks=int(n / texts),
        seconds=texts * task.letters / rates.texts,
        sent=texts * task.letters,
        received=nnz * (5 + 8.0),  # counts, and the words themselves
        shared=0.0,
        driver=nnz / rates.merged,
    )
    near = task.negatives + 1
    asked = task.words * task.postings / rates.search
    together = at_a_time(task, n_cores)
    queries = min(together // SHARES, MOST_SEARCHED)  # of a block
    search = Stage(
        "search",
        blocks=int(n / queries),
        seconds=queries * asked,
        sent=queries * row,
        received=queries * near * 8.0,
        shared=n * row,
        driver=0.0,
        turn=together // queries,
    )
    signs = n * (task.negatives + task.carried) / task.n_labels  # of a label
    weights = min(signs * task.words, task.n_features)
    labels = max(1.0, BLOCK_BYTES / (WEIGHT_BYTES * weights + SIGN_BYTES * signs))
    heads = Stage(
        "linear heads",
        blocks=int(task.fits * task.n_labels / labels),
        seconds=labels * signs * task.words * task.passes / task.fits / rates.heads,
        sent=labels * signs * SIGN_BYTES,
        received=labels * (task.weights * 8 + signs * 4),
        shared=n * row,
        driver=0.0,
    )
    model = n * row + task.n_labels * task.weights * 8
    rows = Classifier.batch_rows
    ranking = Stage(
        "ranking of a million points",
        blocks=int(1e6 / rows),
        seconds=rows * asked,
        sent=rows * row,
        received=rows * 5 * 8.0,
        shared=model,
        driver=0.0,
    )
    return [words, search, heads, ranking]


def row_bytes(task: Task) -> float:
    """Of a point: a value and a place a feature; places have 64 bits in a matrix that is large."""
    return task.words * (12.0 if task.n_points * task.words >= 2**31 else 8.0)


def schedule(stage: Stage, n_machines: int, machine: Machine, rates: Rates, seed: int = 0) -> Row:
    """Play the stage: when each block ends on its core, and when the command has taken it.

    After each turn the command waits for its blocks before it gives the next one. Elsewhere several
    blocks are played as one where there are more than 200,000. A machine that dies is replaced at
    once, fetches what is shared, and its cores begin their blocks again.
    """
    group = 1 if stage.turn else max(1, -(-stage.blocks // 200_000))
    n_blocks, seconds = -(-stage.blocks // group), stage.seconds * group
    fetching = stage.shared / machine.network  # handed on from machine to machine
    bytes_each = group * (stage.sent + stage.received)
    own = bytes_each / min(machine.network, rates.copied) + group * (stage.driver + 1 / rates.given)
    rng = np.random.default_rng(seed)
    between = machine.hours_between_failures * 3600 / n_machines
    n_cores = n_machines * machine.cores
    free = [(fetching, core) for core in range(n_cores)]
    running = np.full(n_cores, -1)
    ends, taken, done = np.zeros(n_blocks), np.zeros(n_blocks), 0
    failure, repeated = fetching + rng.exponential(between), 0

    def take(until: int) -> None:
        nonlocal done
        while done < until:
            before = taken[done - 1] if done else 0.0
            taken[done] = max(before + own, ends[done])
            done += 1

    for block in range(n_blocks):
        while free[0][0] > failure:
            dead = int(rng.integers(n_machines)) * machine.cores
            for place, (end, core) in enumerate(free):
                if dead <= core < dead + machine.cores and end > failure:
                    free[place] = (failure + fetching + seconds, core)
                    ends[running[core]] = free[place][0]
                    repeated += group
            heapq.heapify(free)
            failure += rng.exponential(between)
        ready, core = free[0]
        needed = block - AHEAD * n_cores  # the last block whose result the command must have
        if stage.turn:
            needed = max(needed, block // stage.turn * stage.turn - 1)
        take(needed + 1)
        start = ready if needed < 0 else max(ready, taken[needed])
        running[core], ends[block] = block, start + seconds
        heapq.heapreplace(free, (start + seconds, core))
    take(n_blocks)
    total = float(taken[-1])
    return {
        "stage": stage.name,
        "machines": n_machines,
        "hours": total / 3600,
        "cores busy": n_blocks * seconds / (total * n_cores),
        "blocks": stage.blocks,
        "blocks repeated": repeated,
        "moved": stage.blocks * (stage.sent + stage.received) + n_machines * stage.shared,
    }


def memory(task: Task, machine: Machine, n_machines: int) -> list[Row]:
    """What lies where, in bytes: with the command, and with every machine."""
    points, near = task.n_points * row_bytes(task), task.negatives + 1
    together = at_a_time(task, n_machines * machine.cores)
    signs = task.n_points * (task.negatives + task.carried)
    held = [
        ("the points, by point", points, points),
        ("the points, by feature", points, points),
        ("neighbours of points searched at a time", together * near * 8.0, 0.0),
        ("rows of these points, twice", 2 * together * row_bytes(task), 0.0),  # as unit rows too
        ("shortlists", signs * 9.0, 0.0),  # 64-bit places and a truth value
        ("signs and multipliers", signs * 13.0, 0.0),  # 64-bit places
        ("weights", task.n_labels * task.weights * 8.0, 0.0),
        ("sums of a search", 0.0, 4.0 * task.n_points * machine.cores),
    ]
    return [
        {"machines": n_machines, "what": what, "command": own, "machine": each}
        for what, own, each in held
    ]


def plan(rates: Rates) -> Row:
    """What the rates come to."""
    task, machine = Task(), Machine()
    played = [
        schedule(stage, count, machine, rates)
        for count in MACHINES
        for stage in stages(task, rates, count * machine.cores)
    ]
    return {
        "task": asdict(task),
        "each machine": asdict(machine),
        "rates": asdict(rates),
        "schedule": played,
        "searched at a time": {n: at_a_time(task, n * machine.cores) for n in MACHINES},
        "memory": [row for count in MACHINES for row in memory(task, machine, count)],
        "planned at": commit(),
    }


def render() -> str:
    """The tables of the page."""
    stored = read_results(STORED)
    task, machine, rates = stored["task"], stored["each machine"], stored["rates"]
    counts = sorted({row["machines"] for row in stored["schedule"]})
    rows = {(row["stage"], row["machines"]): row for row in stored["schedule"]}
    names = list(dict.fromkeys(row["stage"] for row in stored["schedule"]))
    heads = "".join(f" {count} machines |" for count in counts)
    lines = [f"| stage |{heads} blocks | moved |", "|---|" + "---|" * (len(counts) + 2)]
    for name in names:
        cells = [
            f"{rows[name, count]['hours']:.1f} h, {rows[name, count]['cores busy']:.0%}"
            for count in counts
        ]
        last = rows[name, counts[-1]]
        lines.append(
            f"| {name} | {' | '.join(cells)} | {last['blocks']:,} | {last['moved'] / 1e12:.1f} TB |"
        )
    total = [sum(rows[name, count]["hours"] for name in names[:-1]) for count in counts]
    lines.insert(-1, f"| training | {' | '.join(f'{hours:.1f} h' for hours in total)} | | |")
    commands = "".join(f" the command, of {count} machines |" for count in counts)
    lines += ["", f"| in memory of |{commands} each machine |", "|---" * (len(counts) + 2) + "|"]
    held = {(row["what"], row["machines"]): row for row in stored["memory"]}
    sizes = {
        what: [held[what, count]["command"] for count in counts]
        + [held[what, counts[-1]]["machine"]]  # which is the same for all
        for what, _ in held
    }
    sizes["all"] = [sum(column) for column in zip(*sizes.values(), strict=True)]
    for what, row in sizes.items():
        lines.append(f"| {what} | {' | '.join(f'{size / 1e9:.0f} GB' for size in row)} |")
    together = [f"{stored['searched at a time'][str(count)]:,}" for count in counts]
    lines += [
        "",
        "Hours, and the share of them that the cores have work. Points searched at a time: "
        f"{', '.join(together[:-1])} and {together[-1]}. "
        f"{task['n_points'] / 1e6:.0f} million points of {task['words']} features, "
        f"{task['carried']} labels and {task['negatives']} labels on the "
        f"shortlist each; machines of {machine['cores']} cores, {machine['memory'] / 1e9:.0f} GB "
        f"and {machine['network'] * 8 / 1e9:.0f} Gbit/s, one of which fails every "
        f"{machine['hours_between_failures']:,.0f} hours. Rates of one core: "
        f"{rates['texts'] / 1e6:.1f} million letters a second, {rates['search'] / 1e6:.0f} million "
        f"postings a second of the search, {rates['heads'] / 1e6:.0f} million multiplications a "
        f"second of the linear heads. The command gives {rates['given']:,.0f} blocks and moves "
        f"{rates['copied'] / 1e9:.1f} GB a second. {stored['note']} "
        f"`{stored['command']}` on {stored['machine']}, {stored['date']}"
        + (f", planned at commit {stored['planned at']}." if "planned at" in stored else "."),
    ]
    return "\n".join(lines)


def write_page() -> None:
    PART.write(render())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--again", action="store_true", help="plan with the rates that are stored")
    parser.add_argument("--page", action="store_true", help="only write the page's table")
    parser.add_argument("--note", default="", help="a sentence that is stored, on the machine")
    options = parser.parse_args()
    if options.again:
        stored = read_results(STORED)
        write_results(STORED, stored | plan(Rates(**stored["rates"])))
    elif not options.page:
        rates, search = measure()
        told = circumstances(device="cpu", seed=0, threads=1)
        record = {"note": options.note, "measured search": search, **plan(rates), **told}
        write_results(STORED, record)
    write_page()


if __name__ == "__main__":
    main()
