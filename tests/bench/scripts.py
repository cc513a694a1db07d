"""The scripts of benchmarks/ as modules, for the tests that ask them."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

__all__ = ["BENCHMARKS", "load_script"]

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def load_script(name: str) -> ModuleType:
    """A fresh module, which finds the scripts beside it as it does when it is run."""
    spec = spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    before = sys.modules.get(name)
    sys.modules[name] = module  # its data classes look for it there
    try:
        with patch.object(sys, "path", [str(BENCHMARKS), *sys.path]):
            spec.loader.exec_module(module)
    finally:
        del sys.modules[name]
        if before is not None:
            sys.modules[name] = before
    return module
