"""Put what is stored into the pages that quote it: all that ``make docs`` does after the report.

python benchmarks/pages.py              # every part of every page
python benchmarks/pages.py growth       # that of benchmarks/growth.py
"""

from __future__ import annotations

import argparse
from importlib import import_module

SCRIPTS = (
    "readme",
    "teaching",
    "calibration_page",
    "deep_page",
    "large_twins",
    "twins",
    "ray_scaling",
    "cluster_plan",
    "memory",
    "growth",
    "incremental",
    "promises",
    "contents_page",
    "annif_beside",
    "reliability",
)
"""Each has a function ``write_page``."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("scripts", nargs="*", metavar="SCRIPT", help="all without it")
    for name in parser.parse_args().scripts or SCRIPTS:
        import_module(name).write_page()


if __name__ == "__main__":
    main()
