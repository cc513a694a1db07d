"""Which parts data of a shape get, worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from dxml.joint._plan import PARTS, Plan, make_plan, shape_of
from dxml.joint.parts.protocol import Options, Settings, Shape


def plan(
    n: int,
    d: int,
    n_labels: int,
    device: str = "cpu",
    *,
    memory: float = 8e9,
    candidates: Any = "auto",
    dense: bool = False,
    **settings: Any,
) -> Plan:
    X = sp.csr_matrix((n, d), dtype=np.float32)
    if dense:
        X = sp.csr_matrix(np.ones((n, d), dtype=np.float32))
    shape = shape_of(X, n_labels, device=device, memory=memory, candidates=candidates)
    options = Options(
        standardised=False, device=device, precision="float16", random_state=0, **settings
    )
    return make_plan(shape, options)


def of(
    every_label: bool,
    *,
    kernel: bool = False,
    linear: bool = False,
    width: int = 0,
    learners: int = 1,
    epochs: int = 25,
    voters: int = 0,
    trees: bool = False,
) -> Plan:
    """A plan by what its parts are."""
    parts: dict[str, Settings] = {"frequency": {}, "vote": {}}
    if kernel:
        parts["kernel"] = {}
    if width:
        own = {"width": width, "learners": learners, "epochs": epochs}
        parts["wide"] = {**own, "voters": voters}
    if trees:
        parts["trees"] = {"n_trees": 3}
    if linear:
        parts["linear"] = {"C": 1.0}
    return Plan(every_label, parts)


NEAREST = of(False, linear=True, trees=True)
ALL = of(True)


def width(found: Plan) -> int:
    return int(found.parts["wide"]["width"]) if "wide" in found.parts else 0


def test_the_shape_of_data() -> None:
    X = sp.csr_matrix(np.eye(4, 3, dtype=np.float32))
    found = shape_of(X, 7, device="cuda", memory=5.0)
    assert found == Shape(4, 3, 7, True, False, "cuda", 5.0, 0.75)
    assert shape_of(sp.csr_matrix(np.ones((4, 3))), 7, device="cpu", memory=5.0).dense


def test_a_cpu_scores_a_shortlist_where_a_linear_head_would_be_all() -> None:
    """590 labels of 21,000 sparse points: trees and shortlists take a quarter of the time."""
    X = sp.csr_matrix((21_000, 30_000), dtype=np.float32)

    def every(n_labels: int, X: sp.csr_matrix = X, device: str = "cpu") -> bool:
        return shape_of(X, n_labels, device=device, memory=8e9).every_label

    assert not every(590) and every(590, device="cuda") and every(255)
    assert every(590, sp.csr_matrix((14_000, 30_000), dtype=np.float32)), "a kernel has a say"
    assert every(590, sp.csr_matrix(np.ones((15_000, 2), np.float32))), "dense points"


def test_long_rows_get_no_trees() -> None:
    shape = Shape(20_000, 30_000, 5000, False, False, "cpu", 1e9, 12.0)
    options = Options(standardised=False, device="cpu", precision="float16", random_state=0)
    assert "trees" in make_plan(shape, options).parts
    assert "trees" not in make_plan(replace(shape, per_point=101.0), options).parts


def test_points_of_many_features_and_labels_get_one_tree() -> None:
    options = Options(standardised=False, device="cpu", precision="float16", random_state=0)
    shape = Shape(50_000, 40_000, 5_000, False, False, "cpu", 8e9, 42.0, 4.0)
    assert make_plan(shape, options).parts["trees"] == {"n_trees": 3}
    many = replace(shape, labels_per_point=13.0)
    assert make_plan(many, options).parts["trees"] == {"n_trees": 1}
    longer = replace(shape, per_point=97.0, labels_per_point=2.8)  # TIBKAT-GND
    assert make_plan(longer, options).parts["trees"] == {"n_trees": 1}


def test_every_part_has_its_own_name() -> None:
    assert {name: kind.name for name, kind in PARTS.items()} == {name: name for name in PARTS}
    order = ["kernel", "wide", "deep", "vectors", "frequency", "vote", "trees", "linear"]
    assert list(PARTS) == order


def test_parts_are_planned_and_fitted_in_their_order() -> None:
    assert list(plan(10_000, 500, 100).parts) == [
        name for name in PARTS if name not in ("deep", "vectors", "trees")
    ]


def test_a_part_is_told_of_those_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    told = {}

    def spy(name: str, answer: Any) -> Any:
        def planned(shape: Shape, options: Options, others: Any) -> Any:
            told[name] = sorted(others)
            return answer

        return planned

    for name, answer in (("kernel", None), ("vote", {}), ("linear", None)):
        monkeypatch.setattr(PARTS[name], "plan", spy(name, answer))
    found = plan(400, 500, 100, width=0)
    assert told == {"kernel": [], "vote": ["frequency"], "linear": ["frequency", "vote"]}
    assert found == ALL


def test_a_wide_layer_needs_room_for_its_features() -> None:
    """76,000 points × 42,000 features × 2 bytes on a GPU: 6.4 GB, of which half of 8 is too few."""
    shape = (76_000, 42_000, 20_000, "cuda")
    assert plan(*shape) == NEAREST
    assert plan(*shape, memory=37e9) == of(False, linear=True, width=1024)


def test_small_data_are_scored_for_every_label() -> None:
    assert plan(4096, 50, 4096).every_label  # 2²⁴ pairs
    assert not plan(4096, 50, 4097).every_label
    assert plan(4096, 50, 4097, candidates="all").every_label
    assert not plan(40, 50, 4, candidates="nearest").every_label


@pytest.mark.parametrize("n", [400, 9_999])
def test_a_kernel_stands_alone_on_few_points(n: int) -> None:
    for device in ("cpu", "cuda"):
        assert plan(n, 500, 100, device) == of(True, kernel=True, linear=True)


def test_a_gpu_tries_votes_of_neighbours_on_dense_features() -> None:
    found = plan(20_000, 120, 100, "cuda", dense=True)
    [variant] = found.variants
    assert found.parts["wide"] == {"width": 2048, "learners": 1, "epochs": 120, "voters": 0}
    assert variant.parts == {**found.parts, "wide": {**found.parts["wide"], "voters": 8192}}
    assert list(variant.parts) == list(found.parts) and variant.every_label
    assert plan(20_000, 120, 100, dense=True).variants == (), "a CPU"
    assert plan(20_000, 120, 100, "cuda").variants == (), "sparse features"
    assert plan(20_000, 120, 4_000, "cuda", dense=True).variants == (), "shortlists"
    assert plan(9_999, 120, 100, "cuda", dense=True).variants == (), "no wide layer"


def test_a_wide_layer_joins_the_kernel_on_more_points() -> None:
    both: dict[str, Any] = {"kernel": True, "linear": True}
    assert plan(10_000, 500, 100, "cuda") == of(True, **both, width=4096, learners=4, epochs=40)
    # 1.5e12 operations / (6 · 25 epochs · 10,000 points · 600) = 1,666: whole 1,024s
    assert plan(10_000, 500, 100) == of(True, **both, width=1024)
    assert plan(10_000, 500, 100, epochs=1) == of(True, **both, width=2048, epochs=1)
    assert width(plan(10_000, 500, 100, epochs=50)) == 768  # 833: whole 256s


def test_small_sparse_data_have_a_linear_head_beside_what_can_be_afforded() -> None:
    # 24,000 texts of 597 labels: no kernel on a CPU, and a wide layer would have 17 units
    shape = 24_000, 24_000, 597
    assert plan(*shape) == NEAREST
    assert plan(*shape, candidates="all") == of(True, linear=True, trees=True)
    rich = of(True, kernel=True, linear=True, width=3072, learners=4, epochs=40)
    assert plan(*shape, "cuda") == rich


def test_small_dense_data_have_a_wide_layer_instead_of_a_linear_head() -> None:
    shape = 20_000, 120, 800
    # 543 units are afforded: whole 256s. 3.5e12 / (6 · 512 units · 20,000 points · 920) = 61
    assert plan(*shape, dense=True) == of(True, width=512, epochs=61)
    assert width(plan(*shape, dense=True, epochs=90)) == 256  # afforded: 150
    assert plan(*shape, dense=True, memory=1e6) == ALL


def test_dense_features_are_trained_on_longer_by_a_cpu() -> None:
    def epochs(n: int, device: str = "cpu", *, dense: bool = True, **more: Any) -> int:
        return int(plan(n, 120, 100, device, dense=dense, **more).parts["wide"]["epochs"])

    assert epochs(31_000) == 80
    assert epochs(160_000) == 64  # with 256 units
    assert epochs(31_000, width=4096) == 25  # at least as many as of sparse features; afforded: 20
    assert epochs(31_000, epochs=7) == 7
    assert epochs(31_000, "cuda") == 120
    assert width(plan(31_000, 120, 100, "cuda", dense=True)) == 2048
    assert epochs(10_000, dense=False) == 25
    # which sharpens the space that neighbours are searched in: there is none beside shortlists
    assert epochs(31_000, width=256, candidates="nearest") == 25


def test_dense_features_have_one_learner() -> None:
    def learners(device: str = "cuda", width: int = 64, **more: Any) -> int:
        return int(plan(200, 8, 5, device, width=width, **more).parts["wide"]["learners"])

    assert learners(dense=True) == 1
    assert learners() == 4
    assert learners(width=66) == 1
    assert learners("cpu") == 1
    assert learners(candidates="nearest") == 1


def test_a_cpu_solves_for_so_many_votes_and_no_more() -> None:
    assert "kernel" in plan(14_000, 500, 1_000).parts
    assert "kernel" not in plan(14_001, 500, 1_000).parts
    assert "kernel" in plan(14_001, 500, 1_000, "cuda").parts


def test_large_data_have_a_linear_head_and_a_wide_layer_where_it_can_be_afforded() -> None:
    shape = 20_000, 5_000, 4_000
    assert plan(*shape) == NEAREST
    assert plan(*shape, "cuda") == of(False, linear=True, width=4096)
    assert plan(19_999, *shape[1:], "cuda").parts["wide"]["epochs"] == 15
    # At most 1e8 weights over 49,000 features and labels: 2,040; over 99,000: 1,010, too narrow
    assert plan(20_000, 45_000, 4_000, "cuda") == of(False, linear=True, width=1024)
    assert plan(20_000, 95_000, 4_000, "cuda") == NEAREST
    assert width(plan(20_000, 95_000, 4_000, "cuda", candidates="all")) == 768


def test_little_memory_switches_parts_off() -> None:
    assert "kernel" in plan(1_000, 500, 100, memory=8e6).parts  # K and its factor: 8 · 1,000²
    assert "kernel" not in plan(1_000, 500, 100, memory=7.9e6).parts
    # Half the memory for the weights, 16 bytes each: 4e6 / (16 · 600) = 416 units
    assert width(plan(1_000, 500, 100, memory=7.9e6)) == 256
    assert plan(1_000, 500, 100, memory=1e6) == of(True, linear=True)
    assert plan(1_000, 500, 100, memory=8.9e5) == ALL  # 9 bytes a point and label
    # On a GPU the points are there too, dense, in half of the memory
    assert width(plan(20_000, 5_000, 4_000, "cuda", memory=4.1e8)) > 0
    assert width(plan(20_000, 5_000, 4_000, "cuda", memory=3.9e8)) == 0


def test_a_width_that_is_given_is_taken() -> None:
    assert plan(400, 50, 10, width=7) == of(True, kernel=True, linear=True, width=7)
    assert plan(20_000, 5_000, 4_000, width=33) == of(False, linear=True, width=33)
    assert width(plan(20_000, 500, 100, "cuda", width=0)) == 0


def test_a_strength_that_is_given_is_taken() -> None:
    assert plan(400, 50, 10, C=0.2).parts["linear"] == {"C": 0.2}


def test_neighbours_are_searched_in_the_space_of_a_wide_layer_over_every_label() -> None:
    assert of(True, kernel=True, width=8).space == "wide"
    assert of(False, linear=True, width=8).space is None
    assert of(True, kernel=True).space is None


def test_long_texts_just_beyond_every_label_keep_a_kernel_beside_their_shortlist() -> None:
    """4,200 × 4,200 is more than 2²⁴ pairs; manual pages have some 150 words each."""
    options = Options(standardised=False, device="cpu", precision="float16", random_state=0)
    shape = Shape(4_200, 30_000, 4_200, False, False, "cpu", 8e9, 150.0)

    def parts(**changes: Any) -> set[str]:
        return set(make_plan(replace(shape, **changes), options).parts)

    assert parts() == {"kernel", "linear", "vote", "frequency"}
    assert parts(per_point=50.0) == {"trees", "linear", "vote", "frequency"}, "short texts"
    assert "kernel" in parts(n_samples=9_999) and "kernel" not in parts(n_samples=10_000)
    assert "kernel" in parts(n_labels=15_978) and "kernel" not in parts(n_labels=15_979), "2²⁶"
    assert "kernel" not in parts(n_labels=3_994), "a shortlist that the user asked for"
    assert "kernel" not in parts(device="cuda")
    assert "kernel" not in parts(memory=1e8), "8 bytes for each pair of points"


def test_a_kernel_that_is_asked_for_comes_wherever_memory_allows() -> None:
    """Eurlex-4K's shape: long texts, too many for a kernel by default."""
    shape = Shape(15_539, 5_000, 3_993, False, False, "cpu", 8e9, 237.0)

    def parts(kernel: bool | None, **changes: Any) -> set[str]:
        options = Options(
            standardised=False, device="cpu", precision="float16", random_state=0, kernel=kernel
        )
        return set(make_plan(replace(shape, **changes), options).parts)

    assert parts(None) == {"linear", "vote", "frequency"}
    assert parts(True) == {"kernel", "linear", "vote", "frequency"}
    needed = 12 * 15_539**2 + 20 * 15_539 * 3_993  # bytes: pairs of points, and votes
    assert "kernel" in parts(True, memory=needed) and "kernel" not in parts(True, memory=needed - 1)
    small = {"n_samples": 500, "n_labels": 20, "every_label": True}
    assert "kernel" in parts(None, **small) and "kernel" not in parts(False, **small)
