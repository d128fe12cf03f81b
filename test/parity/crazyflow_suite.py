"""Run Crazyflow's own tests and examples on this package, or on Crazyflow itself.

    python test/parity/crazyflow_suite.py FOLDER [--theirs] [pytest's arguments]

FOLDER is a checkout of Crazyflow, with `tests/` and perhaps `examples/`. A copy is adapted to
0.4.0, see `crazyflow_adaptations`. With `--theirs`, the tests run on Crazyflow itself. With
`--names`, FOLDER is its package instead, and the public names that are absent here are listed.
A table and the reason of each failure are printed. `--page THEIRS OURS` writes the totals
into docs/guides/crazyflow.md from what two such runs have printed into files, each of one or
several parts.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from crazyflow_adaptations import DROPPED, adapt

SHOWN = 160  # characters of a reason
OURS = "crazyflow_ros.compat.crazyflow"
PAGE = Path(__file__).parents[2] / "docs" / "guides" / "crazyflow.md"
BEGIN, END = "<!-- suite: written by crazyflow_suite.py --page -->\n", "<!-- /suite -->"


class Reasons:
    """A pytest plugin that collects outcomes by file, and the reason of each failure."""

    def __init__(self) -> None:
        self.outcomes: dict[str, Counter[str]] = defaultdict(Counter)
        self.failures: dict[str, list[str]] = defaultdict(list)
        self.folder = ""

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
        self.failures[reason.strip()[:SHOWN]].append(test.replace(f"{self.folder}/", ""))

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


def run(checkout: Path, arguments: list[str], theirs: bool) -> int:
    """Run the tests in a checkout of Crazyflow on this package, or on Crazyflow itself."""
    if not theirs:
        import_module(f"{OURS}.hook").install()
    reasons = Reasons()
    with TemporaryDirectory() as copied:
        folder = Path(copied).resolve()
        reasons.folder = str(folder)
        for name in ("tests", "examples"):
            if (checkout / name).is_dir():
                shutil.copytree(checkout / name, folder / name)
        adapt(folder)
        sys.path.insert(0, str(folder / "tests"))  # its conftest is imported as a module
        os.chdir(folder)
        options = ["-q", "--no-header", "--tb=no", "-p", "no:cacheprovider", f"--rootdir={folder}"]
        options += ["--continue-on-collection-errors", "-c", os.devnull, "-W", "ignore"]
        options += ["-o", "console_output_style=classic"]
        if "-k" not in arguments:
            options += ["-k", " and ".join(f"not {name}" for name in DROPPED)]
        targets = [] if any(a.startswith("tests") for a in arguments) else ["tests"]
        status = pytest.main([*options, *arguments, *targets], plugins=[reasons])
    reasons.print()
    return int(status)


def absent_names(package: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each module of Crazyflow's with those of its public names that do not exist here."""
    for file in sorted(package.rglob("*.py")):
        module = ".".join(file.relative_to(package).with_suffix("").parts)
        module = f".{module}".removesuffix(".__init__")
        names = [
            node.name
            for node in ast.parse(file.read_text()).body
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
        ]
        try:
            ours = import_module(f"{OURS}{module}")
        except ModuleNotFoundError:
            ours = None
        missing = [name for name in names if not hasattr(ours, name)]
        if missing:
            yield f"crazyflow{module}", missing


def write_page(theirs: str, ours: str) -> None:
    """Write the totals of what two runs have printed into the page, with what fails here only."""
    totals, failures = [], []
    for text in (theirs, ours):
        rows = re.findall(r"^\| (tests/\S+) \| (\d+) \| (\d+) \| \d+ \|$", text, re.M)
        counts = {name: (int(passed), int(failed)) for name, passed, failed in rows}
        totals.append(tuple(map(sum, zip(*counts.values()))))
        blocks = re.findall(r"^\d+ x (.*)\n((?:    .*\n?)+)", text, re.M)
        failures.append({t.strip(): why for why, tests in blocks for t in tests.splitlines()})
    cells = " | ".join(f"{passed}, {failed}" for passed, failed in totals)
    head = "| pass, fail with Crazyflow 0.4.0 | pass, fail here |"
    lines = [head, "|---|---|", f"| {cells} |"]
    only = {test: reason for test, reason in failures[1].items() if test not in failures[0]}
    lines += ["", f"Tests that fail here only: {len(only)}{'.' if not only else ':'}"]
    lines += ["", *(f"- `{test}`: {reason}" for test, reason in only.items())] if only else []
    page = PAGE.read_text()
    before, rest = page.split(BEGIN)
    PAGE.write_text("\n".join([f"{before}{BEGIN}", *lines, f"{END}{rest.split(END)[1]}"]))


def main() -> int:
    """Do what the arguments say."""
    if sys.argv[1:2] == ["--page"] and len(sys.argv) == 4:
        write_page(*(Path(file).read_text() for file in sys.argv[2:]))
        return 0
    given = [a for a in sys.argv[1:] if a not in ("--names", "--theirs")]
    if not given or not Path(given[0]).is_dir():
        sys.exit(__doc__)
    where = Path(given[0]).resolve()
    if "--names" not in sys.argv:
        return run(where, given[1:], "--theirs" in sys.argv)
    for module, missing in absent_names(where):
        print(f"{module}: {', '.join(missing)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
