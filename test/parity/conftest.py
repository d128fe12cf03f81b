"""The table of deviations that a parity run ends with."""

from __future__ import annotations

import pytest

DEVIATIONS = pytest.StashKey[dict[str, dict[str, float]]]()


@pytest.fixture(scope="session")
def deviations(request: pytest.FixtureRequest) -> dict[str, dict[str, float]]:
    """Worst relative deviation by case and quantity, printed at the end of the run."""
    return request.config.stash.setdefault(DEVIATIONS, {})


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    table = config.stash.get(DEVIATIONS, {})
    if not table:
        return
    names = list(next(iter(table.values())))
    terminalreporter.section("worst relative deviation from Crazyflow 0.4.0")
    width = max(map(len, table))
    terminalreporter.line(" " * width + "".join(f"{name:>11}" for name in names))
    for case, row in table.items():
        terminalreporter.line(f"{case:{width}}" + "".join(f"{row[name]:11.1e}" for name in names))
