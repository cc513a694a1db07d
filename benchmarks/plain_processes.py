"""What processes that share a machine's cores cost without Ray: beside benchmarks/ray_scaling.py.

    OMP_WAIT_POLICY=PASSIVE python benchmarks/plain_processes.py   # results/plain-processes.json
    python benchmarks/plain_processes.py --small                   # on little data; prints only

The stages of benchmarks/ray_scaling.py are done once by one process with all cores, and then by 2
and by 4 processes with one thread each, all at once, each with its own copy of the data and an
equal share of the work. Nothing is sent between them. What they spend more than the one process is
the price of caches and memory that are shared, which a cluster of processes on one machine pays as
well. Repetitions go round the settings, and the cheapest of each is taken.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from multiprocessing.connection import Connection
from typing import Any

from dxml._core.threads import threads
from dxml.bench._machine import circumstances
from ray_scaling import PLAIN, REPEATS, SMALL, Sizes, stages
from stored_results import write_results

STARTED = "OMP_WAIT_POLICY=PASSIVE python benchmarks/plain_processes.py"
PROCESSES = (1, 2, 4)

Row = dict[str, Any]


def serve(pipe: Connection, sizes: Sizes, share: int, of: int) -> None:
    """Do the stage whose number comes, and say the seconds of processors that it took."""
    with threads(None if of == 1 else 1):
        for stage in stages(SMALL, share, of):
            stage.work()  # loads compiled code
        mine = stages(sizes, share, of)
        pipe.send([stage.name for stage in mine])
        while (number := pipe.recv()) is not None:
            spent = time.process_time()
            mine[number].work()
            pipe.send(time.process_time() - spent)


@contextmanager
def workers(sizes: Sizes, count: int) -> Iterator[list[Connection]]:
    """Processes that wait for stages, at the other ends of the pipes."""
    spawn = multiprocessing.get_context("spawn")
    pipes, processes = [], []
    for share in range(count):
        here, there = spawn.Pipe()
        process = spawn.Process(target=serve, args=(there, sizes, share, count), daemon=True)
        process.start()
        pipes.append(here)
        processes.append(process)
    try:
        yield pipes
    finally:
        for pipe in pipes:
            pipe.send(None)
        for process in processes:
            process.join()


def measure(sizes: Sizes) -> list[Row]:
    """Every stage with every number of processes."""
    best: dict[tuple[int, str], Row] = {}
    for _ in range(REPEATS):
        for count in PROCESSES:
            with workers(sizes, count) as pipes:
                names = [pipe.recv() for pipe in pipes][-1]
                for number, name in enumerate(names):
                    begun = time.perf_counter()
                    for pipe in pipes:
                        pipe.send(number)
                    cpu = sum(pipe.recv() for pipe in pipes)
                    row = {"seconds": time.perf_counter() - begun, "cpu": cpu}
                    print(f"{count} processes, {name}: {cpu:.1f} s", flush=True)
                    if (count, name) not in best or cpu < best[count, name]["cpu"]:
                        best[count, name] = row
    return [
        {"processes": count, "stage": name, **row, "ratio": row["cpu"] / best[1, name]["cpu"]}
        for (count, name), row in best.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--small", action="store_true", help="little data, nothing stored")
    sizes = SMALL if parser.parse_args().small else Sizes()
    rows = measure(sizes)
    for row in rows:
        print(json.dumps(row))
    if sizes is not SMALL:
        record = {
            "cores": os.cpu_count(),
            "sizes": asdict(sizes),
            **circumstances(device="cpu", seed=0, started=STARTED),
            "rows": rows,
        }
        write_results(PLAIN, record)


if __name__ == "__main__":
    main()
