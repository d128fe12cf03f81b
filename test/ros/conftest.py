"""The simulator of a module of tests, in its `DOMAIN`, and a client of it.

A module names the simulator's arguments in `ARGUMENTS`, or makes them with a fixture of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from ros_client import Client, SimulatorProcess


@pytest.fixture(scope="module")
def arguments(request: pytest.FixtureRequest) -> Sequence[str]:
    return getattr(request.module, "ARGUMENTS", ())


@pytest.fixture(scope="module")
def simulator(
    request: pytest.FixtureRequest, arguments: Sequence[str]
) -> Iterator[SimulatorProcess]:
    with SimulatorProcess(request.module.DOMAIN, arguments) as process:
        yield process


@pytest.fixture(scope="module")
def client(request: pytest.FixtureRequest, simulator: SimulatorProcess) -> Iterator[Client]:
    with Client(request.module.DOMAIN) as client:
        yield client
