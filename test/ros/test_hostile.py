"""Nothing from outside ends or hangs the simulator: some of the inputs of `make hostile`.

What writes over its shared memory is in test_lock_step, and what happens to its process in
test_process_faults.
"""

from __future__ import annotations

import random
from pathlib import Path

from hostile_node import Hostile, arguments, check
from hostile_readers import CrazyswarmFiles
from hostile_recordings import Recordings
from hostile_wire import send_bytes
from ros_client import SimulatorProcess, own_domain

from crazyflow_ros.ros.service_answers import TIMEOUT

DOMAIN = own_domain("test_hostile")
N_INPUTS, N_FILES, N_BYTES, SEED = 200, 100, 150, 0


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


def test_hostile_recordings_are_read_or_refused(tmp_path: Path) -> None:
    files = Recordings(tmp_path, random.Random(SEED))
    files.run(N_FILES)
    assert min(files.counts["refused"], files.counts["accepted"]) > N_FILES // 10


def test_hostile_files_of_crazyswarm2_are_read_or_refused_by_name(tmp_path: Path) -> None:
    files = CrazyswarmFiles(tmp_path, random.Random(SEED), DOMAIN)
    try:
        files.run(N_FILES)
    finally:
        files.close()
    assert min(files.counts["refused"], files.counts["accepted"]) > N_FILES // 10


def test_bytes_that_ros_cannot_send_end_nothing_and_take_no_memory() -> None:
    assert send_bytes(N_BYTES, random.Random(SEED), DOMAIN)["tried"] > N_BYTES * 0.9
