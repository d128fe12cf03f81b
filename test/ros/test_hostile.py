"""Nothing from outside ends or hangs the simulator: 1,000 of the inputs of `make hostile`."""

from __future__ import annotations

import random
from pathlib import Path

from hostile import Hostile, arguments, check
from ros_client import SimulatorProcess, own_domain

from crazyflow_ros.ros.services.waiting import TIMEOUT

DOMAIN = own_domain("test_hostile")
N_INPUTS, SEED = 1000, 0


def test_hostile_inputs_are_carried_out_or_refused_and_a_drone_flies_on(tmp_path: Path) -> None:
    with SimulatorProcess(DOMAIN, arguments(tmp_path)) as simulator:
        hostile = Hostile(simulator, DOMAIN, random.Random(SEED), tmp_path)
        try:
            hostile.run(N_INPUTS)
            assert check(hostile, simulator) == []
        finally:
            hostile.client.close()
        assert simulator.end()[0] == 0
        assert "Traceback" not in simulator.log
    assert max(hostile.pauses) < TIMEOUT
