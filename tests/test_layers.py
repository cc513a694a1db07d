"""Imports point one way, one level a folder; docs/architecture.md draws the same order."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import dxml

SOURCE = Path(dxml.__file__).parent
PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"
LEVELS = [
    {"exceptions", "progress"},
    {"_core"},
    {"topk"},
    {"metrics", "text", "_label_graph", "_neighbors"},
    {"data", "_learners"},
    {"_deep"},
    {"base", "label_map"},
    {"paper", "joint", "baselines"},
    {"methods"},
    {"tagging"},
    {"plots"},
    {"bench"},
    {"service"},
    {"_cli"},
]
LEVEL = {name: level for level, names in enumerate(LEVELS) for name in names}
TESTS = Path(__file__).parent
TESTED_IN = {  # a module without a test file of its own → the file that tests it
    "base": "test_contract",
    "exceptions": "test_contract",
    "methods": "test_contract",
    "_core/cuda_graph": "_learners/test_wide_training",
    "_core/tensors": "_core/test_storage",
    "_core/threads": "_neighbors/test_voting",
    "baselines/_low_rank": "baselines/test_cplst",
    "baselines/_sparse_logistic": "baselines/test_fastxml",
    "baselines/_svp": "baselines/test_sleec",
    "bench/_machine": "bench/test_runner",
    "service/_reviewing": "service/test_lesson_routes",
    "joint/_answering": "joint/test_model",
    "joint/_learning": "joint/test_teaching",
    "_core/cluster_pool": "_ray/test_files",
    "_deep/applying": "_deep/test_encoder",
    "_deep/cost": "_deep/test_training",
    "_deep/effects": "_deep/test_head",
    "_deep/growing": "_deep/test_head",
    "_deep/label_heads": "_deep/test_training",
    "_deep/name_line": "_deep/test_unseen",
    "_deep/names": "_deep/test_training",
    "_deep/on_cluster": "_ray/test_deep",
    "_deep/optimising": "_deep/test_training",
    "_deep/plan": "_deep/test_batches",
    "_deep/precision": "_deep/test_head",
    "_deep/resuming": "_deep/test_training",
    "_deep/searching": "_deep/test_head",
    "_deep/settings": "_deep/test_training",
    "_deep/stored_encoder": "_deep/test_head",
    "_deep/static_vectors": "_deep/test_vectors",
    "_deep/frozen_vectors": "_deep/test_vectors",
    "_deep/texts": "joint/parts/test_vectors",
    "_deep/together": "_ray/test_deep",
    "bench/_markdown": "bench/test_report",
    "bench/_tables": "bench/test_report",
    "bench/_worker": "bench/test_runner",
    "bench/peers/_driver": "bench/test_peers",
    "bench/peers/_environment": "bench/test_peers",
    "bench/peers/_libmultilabel_adapter": "bench/test_peers",
    "bench/peers/_napkinxc_adapter": "bench/test_peers",
    "bench/peers/_omikuji_adapter": "bench/test_peers",
    "bench/peers/_pecos_adapter": "bench/test_peers",
    "_cli/_console": "_cli/test_help",
    "_cli/_default": "_cli/test_labels",
    "_cli/_options": "_cli/test_commands",
    "_cli/_ranked": "_cli/test_commands",
    "_cli/_rankers": "_cli/test_predict",
    "_cli/_tables": "_cli/test_tagging",
    "_cli/_target": "_cli/test_versions",
    "_cli/_write": "_cli/test_commands",
    "_cli/evaluate": "_cli/test_commands",
    "_cli/explain": "_cli/test_tagging",
    "_cli/methods": "_cli/test_commands",
    "_cli/serve": "service/test_server",
    "_cli/train": "_cli/test_commands",
    "data/_built": "data/test_text_sets",
    "data/_documents": "data/test_twins",
    "data/_drawing": "data/test_synthetic",
    "data/_label_law": "data/test_twins",
    "data/_parse": "data/test_formats",
    "data/_records": "data/test_text_sets",
    "data/_text": "data/test_text_sets",
    "data/_traits": "data/test_twins",
    "data/_write": "data/test_formats",
    "joint/_sizes": "joint/test_plan",
    "joint/parts/protocol": "joint/test_own_part",
    "_learners/dual_descent": "_learners/test_linear_head",
    "_learners/linear_examples": "_learners/test_linear_head",
    "_learners/linear_training": "_learners/test_linear_head",
    "metrics/_judging": "metrics/test_ranking",
    "plots/_letters": "plots/test_labels",
    "plots/_placing": "plots/test_labels",
    "progress/_console": "test_progress",
    "service/_admin_routes": "service/test_app",
    "service/_answers": "service/test_app",
    "service/_replicas": "_ray/test_serve",
    "service/_shared_journal": "_ray/test_serve",
    "service/_error_answers": "service/test_app",
    "service/_errors": "service/test_app",
    "service/_metrics": "service/test_app",
    "service/_predict_routes": "service/test_app",
    "service/_runtime": "service/test_app",
    "service/_schemas": "service/test_app",
    "service/_served": "service/test_engine",
    "service/_server": "service/test_server",
    "service/_settling": "service/test_lessons",
    "service/_teach_routes": "service/test_lessons",
    "tagging/_answering": "tagging/test_tagger",
    "tagging/_known_texts": "tagging/test_tagger",
    "tagging/_learning": "tagging/test_tagger",
    "tagging/_tags": "tagging/test_tagger",
    "text/_bad_rows": "text/test_tables",
    "text/_counting": "text/test_features",
    "text/_decoding": "text/test_tables",
    "text/_tokens": "text/test_features",
    "text/_files": "text/test_tables",
    "text/_json_rows": "text/test_tables",
    "text/_piped": "_cli/test_any_input",
    "text/_rows": "text/test_tables",
    "text/_separated": "text/test_tables",
}
FRONT_DOOR = 10  # files beside the folders, at most


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    """The rooms of dxml that a file imports from, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("dxml."):
            found.add(node.module.split(".")[1])
        elif isinstance(node, ast.ImportFrom) and node.module == "dxml":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
            found |= {name[1] for name in names if name[0] == "dxml" and len(name) > 1}
    return found - {"__version__"}


def files() -> list[Path]:
    return [path for path in SOURCE.rglob("*.py") if room(path) not in ("__init__", "__main__")]


def test_every_room_has_a_level() -> None:
    assert {room(path) for path in files()} == set(LEVEL)


def test_the_front_door_is_small() -> None:
    assert len(list(SOURCE.glob("*.py"))) < FRONT_DOOR


def test_imports_point_down() -> None:
    for path in files():
        own = room(path)
        for name in imports(path) - {own}:
            assert LEVEL[name] < LEVEL[own], f"{path.relative_to(SOURCE)} imports {name}"


def test_the_architecture_page_draws_the_same_levels() -> None:
    drawn = re.findall(r"^│ +([^│]+?) +│", PAGE.read_text("utf-8"), re.MULTILINE)
    assert [set(line.replace("·", " ").split()) for line in drawn] == LEVELS[::-1]


def test_every_module_is_tested_where_one_guesses() -> None:
    """``room/name.py`` in tests/room/test_name.py, or in the file that `TESTED_IN` names."""
    for path in files():
        module = path.relative_to(SOURCE).with_suffix("")
        if module.name == "__init__":
            continue
        guess = TESTS / module.with_name(f"test_{module.name.removeprefix('_')}.py")
        told = TESTED_IN.get(module.as_posix())
        assert guess.exists() or told, f"{module}.py has no {guess.relative_to(TESTS)}"


def test_the_list_of_other_places_is_true() -> None:
    for module, test in TESTED_IN.items():
        assert (SOURCE / f"{module}.py").exists(), f"there is no {module}.py any more"
        assert (TESTS / f"{test}.py").exists(), f"{module}: there is no {test}.py any more"


def test_every_idea_is_in_the_file_that_the_page_names() -> None:
    page = PAGE.with_name("where.md").read_text("utf-8")
    ideas = re.findall(r"^\| (.+) \| `([\w/]+\.py)` \| `(\w+)` \|$", page, re.MULTILINE)
    assert len({idea for idea, _, _ in ideas}) == page.count("\n| ") - 1 >= 20
    for idea, file, name in ideas:
        code = ast.parse((SOURCE / file).read_text("utf-8"))
        assert name in top_level_names(code), f"{idea}: {file} has no {name}"


def top_level_names(code: ast.Module) -> set[str]:
    """Functions, classes and constants of a file."""
    names = set()
    for node in code.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


def test_the_architecture_page_names_every_file_of_a_room() -> None:
    page = PAGE.read_text("utf-8")
    rooms = {path.parent for path in files() if path.parent != SOURCE}
    for folder in sorted(rooms):
        if folder.name in ("page", "experiments", "peers"):
            continue
        names = {path.stem for path in folder.glob("*.py")} - {"__init__", "__main__"}
        shown = {name: (f"`{name}`", f"`{name.removeprefix('_')}`") for name in sorted(names)}
        missing = [name for name, either in shown.items() if not any(s in page for s in either)]
        assert missing == [], f"{folder.relative_to(SOURCE)}: {missing}"
