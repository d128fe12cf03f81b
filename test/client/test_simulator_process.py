"""The simulator as a child process: what is said of one that fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from crazyflow_ros.client import SimulatorError, SimulatorProcess


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (occupied := tmp_path / "out").write_text("a file, not a folder")
    with pytest.raises(SimulatorError, match=f"cannot write {occupied}/simulator.log .*folder"):
        SimulatorProcess({}, occupied / "simulator.log")


def test_simulator_that_fails_is_reported_with_its_log(tmp_path: Path) -> None:
    parameters = {"drone_model": "no_such_drone"}
    with SimulatorProcess(parameters, tmp_path / "log") as simulator:
        simulator.wait(60)
        with pytest.raises(SimulatorError, match="no_such_drone"):
            simulator.check()


def test_a_busy_machine_is_told_of_and_is_no_fault_of_the_simulator(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    left_out = "[WARN] [1.0] [crazyflow]: sensors: readings were left out 2 times so far: they take"
    (log := tmp_path / "simulator.log").write_text(f"[INFO] [0.5] [crazyflow]: ready\n{left_out}\n")
    simulator = SimulatorProcess.__new__(SimulatorProcess)
    simulator.log = log
    assert not simulator.has_complained()
    assert capfd.readouterr().err == f"the simulator's log says {left_out}\n"
    log.write_text(f"{left_out}\n[ERROR] [2.0] [crazyflow]: cf0 crashed\n")
    assert simulator.has_complained()
    assert "FAILED: the simulator's log says [ERROR]" in capfd.readouterr().err
