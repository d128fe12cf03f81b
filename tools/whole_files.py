"""Plugin of pytest-xdist: gives workers whole files of tests, and goes on when one has crashed.

Use it with `--dist loadfile`. By itself, xdist 3.8 gives everything that a crashed worker had ever
done to the others, who wait for ever for tests that are none, and gives them the test that crashed
(pytest-xdist issues 1323, 1327 and 1378, pull request 1371). Here such a test fails by its name,
once, and the rest of its file runs in a new worker.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController


class WholeFiles(LoadFileScheduling):
    """Files of tests that wait for workers, and those that each worker has."""

    def remove_node(self, node: WorkerController) -> str | None:
        """Let other workers do what is left of the work of a worker that is gone.

        Args:
            node: The worker.

        Returns:
            The test in which it crashed; None if it had done all its work.
        """
        work = self.assigned_work.pop(node)
        crashed = next((test for test, is_done in _tests(work) if not is_done), None)
        for file, tests in work.items():
            if crashed in tests:
                tests[crashed] = True
            if not all(tests.values()):
                self.workqueue[file] = tests
        for other in self.nodes:
            self._reschedule(other)
        return crashed

    def _reschedule(self, node: WorkerController) -> None:
        """Give a worker more work, unless it is new and still collects tests.

        One that has just crashed cannot take it; `remove_node` takes it back.
        """
        if node in self.registered_collections:
            with suppress(OSError):
                super()._reschedule(node)

    def schedule(self) -> None:
        """Give work to all workers, a new one among them.

        A worker begins with a test only when it knows what comes next: another test, or the end.
        """
        super().schedule()
        for node in self.nodes:
            self._reschedule(node)


def _tests(work: dict[str, dict[str, bool]]) -> list[tuple[str, bool]]:
    """Return the tests of some files in their order, and whether they are done."""
    return [test for tests in work.values() for test in tests.items()]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> WholeFiles | None:
    """Take the place of xdist's own scheduling of files."""
    return WholeFiles(config, log) if config.getvalue("dist") == "loadfile" else None
