"""Seeds: one a stage, the same every time, and none that another stage could move."""

from __future__ import annotations

from dxml._core.random import spawn, spawn_seed


def test_a_stage_draws_the_same_whatever_the_others_draw() -> None:
    alone = spawn(3, "walks")["walks"].random(4)
    both = spawn(3, "encoder", "walks")
    both["encoder"].random(1000)
    assert both["walks"].random(4).tolist() == alone.tolist()


def test_stages_and_seeds_differ() -> None:
    seeds = {spawn_seed(state, name) for state in range(50) for name in ("walks", "encoder")}
    assert len(seeds) == 100
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_without_a_seed_every_time_is_another() -> None:
    assert spawn_seed(None, "walks") != spawn_seed(None, "walks")
