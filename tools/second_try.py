"""Plugin of pytest: runs tests that failed once more, each by itself.

Use it as in `make test ARGS="-p tools.second_try"`. A test that passes then is unsteady: it is
printed last, with the output of both runs, and does not fail the run. It depends on the machine's
load or on other tests, and has to be mended all the same.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

MOST = 20
"""Number of failed tests beyond which none runs again: then something is broken, not unsteady."""
_TIMEOUT = 600  # s


def pytest_configure(config: pytest.Config) -> None:
    """Start where the tests are counted, not in the workers of pytest-xdist."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(SecondTry(config.rootpath), "second try")


class SecondTry:
    """Remembers tests that fail, and runs them again at the end.

    Args:
        root: Folder in which pytest starts.
    """

    def __init__(self, root: object) -> None:
        self._root = root
        self._failed: dict[str, list[str]] = {}
        self._unsteady: dict[str, str] = {}
        self._unread = False

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Remember that a file could not be read: its tests did not run at all."""
        self._unread |= report.failed

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember what a failed test printed."""
        if report.failed:
            parts = [report.longreprtext, *(f"-- {k} --\n{v}" for k, v in report.sections)]
            self._failed.setdefault(report.nodeid, []).extend(parts)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Run failed tests again; the run passes if all of them do."""
        failed = self._failed if len(self._failed) <= MOST else {}
        for test in failed:
            print(f"\nruns again by itself: {test}", flush=True)
            passed, output = self._run(test)
            print("passed: unsteady" if passed else f"failed again\n{output}", flush=True)
            if passed:
                self._unsteady[test] = output
        only_tests = session.exitstatus == pytest.ExitCode.TESTS_FAILED and not self._unread
        if only_tests and self._failed and len(self._unsteady) == len(self._failed):
            session.exitstatus = pytest.ExitCode.OK

    def pytest_unconfigure(self) -> None:
        """Print the unsteady tests, after everything else."""
        for test, output in self._unsteady.items():
            first = "\n".join(self._failed[test])
            print(f"\n==== UNSTEADY: {test}\n---- failed at first:\n{first}")
            print(f"---- passed by itself:\n{output}")
        if self._unsteady:
            print(f"\n{len(self._unsteady)} unsteady, to be mended:", *self._unsteady, sep="\n  ")

    def _run(self, test: str) -> tuple[bool, str]:
        command = [sys.executable, "-m", "pytest", "-p", "no:xdist", "-p", "no:cacheprovider", test]
        try:
            ran = subprocess.run(
                command,
                cwd=str(self._root),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=_TIMEOUT,
            )
        except subprocess.TimeoutExpired as error:
            return False, f"no end after {_TIMEOUT} s\n{error.stdout or ''}"
        return ran.returncode == 0, ran.stdout
