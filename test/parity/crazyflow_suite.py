"""Run Crazyflow's own tests and examples on this package, and list what fails and why.

    python test/parity/crazyflow_suite.py FOLDER [pytest's arguments]

FOLDER is a checkout of Crazyflow, with `tests/` and perhaps `examples/`. With `--names`, FOLDER is
its package instead, and the public names that it has and this package has not are listed.
"""

from __future__ import annotations

import ast
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from crazyflow_alias import OURS, exists, install

SHOWN = 160  # characters of a reason


class Reasons:
    """A pytest plugin that collects outcomes by file, and the reason of each failure."""

    def __init__(self) -> None:
        self.outcomes: dict[str, Counter[str]] = defaultdict(Counter)
        self.failures: dict[str, list[str]] = defaultdict(list)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._fail(report.nodeid, str(report.longrepr).strip().splitlines()[-1])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome == "skipped":
            self.outcomes[report.nodeid.partition("::")[0]][report.outcome] += 1
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            message = str(report.longrepr) if crash is None else crash.message
            self._fail(report.nodeid, message)

    def _fail(self, test: str, message: str) -> None:
        reason = next(iter(message.strip().splitlines()), "no message").removeprefix("E ")
        reason = reason.strip().removeprefix("crazyflow_alias.")
        self.failures[reason[:SHOWN]].append(test)

    def print(self) -> None:
        """Print a table of the files, then each reason with the tests that fail for it."""
        print("\n| tests | passed | failed | skipped |\n|---|---|---|---|")
        for file, outcomes in sorted(self.outcomes.items()):
            print(f"| {file} |", *(f"{outcomes[k]} |" for k in ("passed", "failed", "skipped")))
        total = sum(self.outcomes.values(), Counter())
        print("| all |", *(f"{total[k]} |" for k in ("passed", "failed", "skipped")))
        for reason, tests in sorted(self.failures.items(), key=lambda item: -len(item[1])):
            print(f"\n{len(tests)} x {reason}")
            for test in tests:
                print(f"    {test}")


def run(folder: Path, arguments: list[str]) -> int:
    """Run the tests in a checkout of Crazyflow on this package."""
    install()
    tests = folder / "tests"
    sys.path.insert(0, str(tests))  # its conftest is imported as a module
    os.chdir(folder)
    reasons = Reasons()
    options = ["-q", "--no-header", "--tb=no", "-p", "no:cacheprovider", f"--rootdir={folder}"]
    options.append("--continue-on-collection-errors")
    options += ["-c", os.devnull, "-W", "ignore", "-o", "console_output_style=classic"]
    targets = [a for a in arguments if not a.startswith("-")] or [str(tests)]
    flags = [a for a in arguments if a.startswith("-")]
    status = pytest.main([*options, *flags, *targets], plugins=[reasons])
    reasons.print()
    return int(status)


def absent_names(package: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each module of Crazyflow's with those of its public names that do not exist here."""
    for file in sorted(package.rglob("*.py")):
        module = ".".join(file.relative_to(package).with_suffix("").parts)
        module = f"{OURS}.{module}".removesuffix(".__init__")
        names = [
            node.name
            for node in ast.parse(file.read_text()).body
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
        ]
        ours = import_module(module) if exists(module) else None
        missing = [name for name in names if not hasattr(ours, name)]
        if missing:
            yield module.replace(OURS, "crazyflow", 1), missing


if __name__ == "__main__":
    given = [a for a in sys.argv[1:] if a != "--names"]
    if not given or not Path(given[0]).is_dir():
        sys.exit(__doc__)
    where = Path(given[0]).resolve()
    if "--names" in sys.argv:
        for module, missing in absent_names(where):
            print(f"{module}: {', '.join(missing)}")
    else:
        sys.exit(run(where, given[1:]))
