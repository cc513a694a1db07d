"""A Ray cluster that cannot be had, and a plan for a large one; tests/_ray has real ones."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from dxml._core.blocks import spread
from dxml._core.cluster import open_cluster
from dxml._neighbors import cosine
from dxml.exceptions import ClusterError
from dxml.joint._fitting import COMMON_POINTS
from dxml.joint._points import BLOCKS_A_CORE, OWN_BLOCK, searched_at_a_time

from ..bench.scripts import load_script


def test_without_an_address_nothing_is_opened() -> None:
    with open_cluster(None):
        assert not spread()


def test_without_ray_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    message = r"^Ray is not installed. Install it: pip install 'dxml\[ray\]'.$"
    with pytest.raises(ClusterError, match=message), open_cluster("local"):
        pass


ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def plan() -> ModuleType:
    return load_script("cluster_plan")


def played(plan: ModuleType, n_machines: int = 1, hours: float = 1e9, **stage: float) -> Any:
    """A stage of blocks of 100 s, on machines of two cores that move 1 GB a second."""
    blocks = {"blocks": 8, "seconds": 100.0, "sent": 0, "received": 0, "shared": 0, "driver": 0}
    machine = plan.Machine(cores=2, memory=1e9, network=1e9, hours_between_failures=hours)
    rates = plan.Rates(1, 1, 1, 1, copied=1e12, given=1e12)
    return plan.schedule(plan.Stage("work", **(blocks | stage)), n_machines, machine, rates)


def test_a_plan_shares_blocks_out(plan: ModuleType) -> None:
    assert played(plan)["hours"] * 3600 == pytest.approx(400)
    assert played(plan, 2)["hours"] * 3600 == pytest.approx(200)
    assert played(plan, 2)["cores busy"] == pytest.approx(1)


def test_a_plan_fetches_what_is_shared_first(plan: ModuleType) -> None:
    assert played(plan, 2, shared=50e9)["hours"] * 3600 == pytest.approx(250)
    assert played(plan, 2, shared=50e9)["moved"] == pytest.approx(100e9)


def test_a_plan_waits_for_all_blocks_of_a_turn(plan: ModuleType) -> None:
    """Four cores, of which a turn of two blocks leaves two without work."""
    assert played(plan, 2, turn=2)["hours"] * 3600 == pytest.approx(400)
    assert played(plan, 2, turn=2)["cores busy"] == pytest.approx(1 / 2)
    assert played(plan, 2, turn=6)["hours"] * 3600 == pytest.approx(300)


def test_a_plan_searches_as_many_points_at_a_time_as_training_does(plan: ModuleType) -> None:
    """The neighbours of those are all that the command holds: an id and a cosine each."""
    for n_points, n_machines in ((1e8, 8), (1e8, 128), (40_000, 8), (1e8, 0.25)):
        task, machine = plan.Task(n_points=n_points), plan.Machine()
        n_cores = int(n_machines * machine.cores)
        at_a_time = min(n_points, searched_at_a_time(n_cores))
        held = {row["what"]: row["command"] for row in plan.memory(task, machine, n_machines)}
        assert held["neighbours of points searched at a time"] == 8 * at_a_time * 201
        assert held["rows of these points, twice"] == 2 * at_a_time * plan.row_bytes(task)
        stages = plan.stages(task, plan.Rates(*[1] * 6), n_cores)
        [search] = [stage for stage in stages if stage.name == "search"]
        one = n_points / search.blocks  # points of a block
        assert search.turn * one == pytest.approx(at_a_time, rel=0.01)
        if at_a_time > OWN_BLOCK:
            assert search.turn == BLOCKS_A_CORE * n_cores


def test_the_stored_plan_searches_as_many_points_as_training_does_now(plan: ModuleType) -> None:
    stored = plan.read_results(plan.STORED)
    cores = stored["each machine"]["cores"]
    for count in plan.MACHINES:
        assert stored["searched at a time"][str(count)] == searched_at_a_time(count * cores)


def test_the_page_names_the_limits_of_the_search(plan: ModuleType) -> None:
    page = " ".join((ROOT / "docs" / "guide" / "cluster.md").read_text("utf-8").split())
    assert BLOCKS_A_CORE == 2
    assert f"two blocks of {cosine.MOST_SEARCHED:,} points for each core of the cluster" in page
    assert f"and {OWN_BLOCK:,} points at least" in page
    hours = {
        (row["stage"], row["machines"]): row["hours"]
        for row in plan.read_results(plan.STORED)["schedule"]
    }
    longer = [n for n in plan.MACHINES if hours["linear heads", n] > hours["search", n]]
    assert longer == [32, 128] and "From 32 machines on, the heads take longer" in page
    assert f"those on up to {COMMON_POINTS:,} points. That number is doubled until" in page
    assert cosine.FEW_REACHED == 16 and "more than a sixteenth of all points" in page


def test_a_plan_waits_for_the_command(plan: ModuleType) -> None:
    """Blocks are taken one after the other, 1000 s each; the first ends at 100 s."""
    found = played(plan, 2, driver=1000.0)
    assert found["hours"] * 3600 == pytest.approx(1000 * 8, rel=0.02)
    assert found["cores busy"] < 0.03


def test_a_plan_repeats_the_blocks_of_dead_machines(plan: ModuleType) -> None:
    quiet, rough = played(plan, 4, blocks=4000), played(plan, 4, hours=10.0, blocks=4000)
    assert quiet["blocks repeated"] == 0 < rough["blocks repeated"] < 200
    extra = (rough["hours"] - quiet["hours"]) * 3600 * 8
    assert 0 < extra < 100 * (rough["blocks repeated"] + 16)


def scaled(n_nodes: int, **seconds: float) -> list[dict[str, Any]]:
    """Rows of stages that take 10 s of the processors without Ray."""
    return [
        {"nodes": n_nodes, "stage": stage, "cpu": cpu, "ratio": cpu / 10}
        for stage, cpu in seconds.items()
    ]


def test_every_number_of_nodes_and_every_stage_must_be_within_the_bound() -> None:
    judge = load_script("ray_scaling").judge
    rows = scaled(0, words=10, search=10) + scaled(1, words=9, search=11)
    rows += scaled(2, words=11, search=11.4)
    lines, within = judge(rows + scaled(4, words=11.5, search=11.5))
    assert within and lines == [
        "1 node: words 0.900, search 1.100, all 1.000; all within 1.15",
        "2 nodes: words 1.100, search 1.140, all 1.120; all within 1.15",
        "4 nodes: words 1.150, search 1.150, all 1.150; all within 1.15",
    ]
    lines, within = judge(rows + scaled(4, words=11.6, search=11.0))
    assert not within and lines[2] == (
        "4 nodes: words 1.160, search 1.100, all 1.130; over 1.15: words"
    )


def test_what_nodes_cost_whatever_the_work_stands_beside_the_table() -> None:
    apart = load_script("ray_scaling")._apart
    costs = [{"nodes": n, "start": 3.0 * n, "idle": 0.02 * n} for n in (1, 2, 4)]
    told = apart({"node costs": costs})
    assert "3.0, 6.0, 12.0 s with 1, 2 and 4 nodes" in told and "0.02, 0.04, 0.08 s" in told
    assert apart({}) == ""
