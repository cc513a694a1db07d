"""Known vulnerabilities of what is installed, by pip-audit: ``make audit``.

    python tests/audit.py PIP_AUDIT PYTHON

pip-audit asks a service on the network. Where that does not answer, or knows none of the packages,
this says so and ends with 2: nothing was found out. It ends with 1 where a package is vulnerable.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

SECONDS = "15"  # that the service may take to answer


def judged(report: dict[str, Any] | None) -> tuple[int, str]:
    """Exit code and sentences for a report of pip-audit; None: there is none."""
    packages = [] if report is None else report["dependencies"]
    known = [each for each in packages if "skip_reason" not in each]
    if not known:
        return 2, "not audited: the service of known vulnerabilities cannot be reached from here."
    lines = [
        f"{each['name']} {each['version']}: {found['id']}, mended in "
        f"{', '.join(found['fix_versions']) or 'no version yet'}"
        for each in known
        for found in each["vulns"]
    ]
    unknown = sorted(each["name"] for each in packages if "skip_reason" in each)
    if unknown:
        lines.append(f"the service does not know: {', '.join(unknown)}")
    vulnerable = sum(bool(each["vulns"]) for each in known)
    lines.append(f"{len(known)} packages audited, {vulnerable} with known vulnerabilities")
    return int(vulnerable > 0), "\n".join(lines)


def audit(program: str, python: str) -> dict[str, Any] | None:
    """What pip-audit reports of the packages of an interpreter."""
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    found = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True)
    command = [program, "--path", found.stdout.strip(), "--skip-editable", "--format", "json"]
    command += ["--progress-spinner", "off", "--timeout", SECONDS]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if not done.stdout.startswith("{"):
        print(done.stderr.strip().rpartition("\n")[2], file=sys.stderr)
        return None
    return json.loads(done.stdout)


def main() -> int:
    code, said = judged(audit(*sys.argv[1:3]))
    print(said)
    return code


if __name__ == "__main__":
    sys.exit(main())
