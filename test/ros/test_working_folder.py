"""The product's programs work in any folder, whatever its files are called."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from command_processes import TIMEOUT
from hidden_modules import hiding, ran
from ros_client import Client, SimulatorProcess, own_domain
from simulation_interfaces.msg import Resource
from simulation_interfaces.srv import LoadWorld, SpawnEntity

from crazyflow_ros.client.world import LOADING

DOMAIN = own_domain("test_working_folder")
BOX = "<mujoco><worldbody><geom type='box' size='1 1 1'/></worldbody></mujoco>"


@pytest.mark.parametrize(
    "program", ["", ".client.recorder", ".crazyflie", ".learn", ".ros.recording.replay", ".view"]
)
def test_programs_start_where_files_are_called_like_modules(tmp_path: Path, program: str) -> None:
    folder = hiding(tmp_path)
    words = [sys.executable, "-m", f"crazyflow_ros{program}", "--help"]
    done = subprocess.run(
        words, cwd=folder, timeout=TIMEOUT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not ran(folder)


def test_a_simulator_flies_spawns_and_records_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = hiding(tmp_path)
    monkeypatch.setenv("ROS_DOMAIN_ID", str(DOMAIN))
    for variable in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(variable, raising=False)

    def command(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "crazyflow_ros", *words],
            cwd=folder, timeout=TIMEOUT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    with SimulatorProcess(DOMAIN, ["headless:=false"], folder=folder) as simulator:
        client = Client(DOMAIN)
        box = Resource(resource_string=BOX)
        for kind, name, fields in (
            (SpawnEntity, "spawn_entity", {"name": "box", "entity_resource": box}),
            (LoadWorld, "load_world", {"world_resource": box}),
        ):
            answer = client.call(kind, f"crazyflow/{name}", LOADING, **fields)
            assert answer.result.result == answer.result.RESULT_OK, answer.result.error_message
        command("record", "start", "flight.mcap")
        assert "flight.mcap" in command("record", "stop")
        simulator.wait_for("headless is false, but there is no window: ")
        client.close()
        assert simulator.end()[0] == 0
        assert "Traceback" not in simulator.log
    assert not ran(folder)
    assert (folder / "flight.mcap").stat().st_size
