"""A Crazyradio and apps in the node, with what else it does: walls, a recording, spawns, resets."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from crazyflie_helpers import connected, free_port, until
from ros_client import Client, SimulatorProcess, own_domain
from simulation_interfaces.msg import Resource
from simulation_interfaces.srv import SpawnEntity
from std_srvs.srv import Trigger

pytest.importorskip("cflib", reason="cflib is not installed")

from cflib.crazyflie.log import LogConfig

DOMAIN = own_domain("test_radio_in_node")
WRONG_USAGE = 2
APP = """
class Echo:
    def __init__(self, drone):
        self.drone = drone

    def receive(self, data):
        self.drone.send(self.drone.name.encode() + data)
"""


def test_scripts_fly_by_radio_while_the_node_does_other_things(tmp_path: Path) -> None:
    (tmp_path / "echo.py").write_text(APP)
    values = {
        "drones": "[cf0,cf1]",
        "max_drones": 3,
        "scene": "room",
        "record": tmp_path / "flight.mcap",
        "crazyflie.port": free_port(3),
        "crazyflie.radio": "2M",
        "crazyflie.radios": 2,
        "crazyflie.loss": 0.2,
        "crazyflie.antenna": "[0.0,30.0,1.0]",
        "crazyflie.app": f"{tmp_path / 'echo.py'}:Echo",
    }
    given = [word for name, value in values.items() for word in ("-p", f"{name}:={value}")]
    with SimulatorProcess(DOMAIN, given) as simulator, Client(DOMAIN) as client:
        found = re.search(r"Crazyflies for cflib: udp://127.0.0.1:(\d+)", simulator.log)
        assert found, simulator.log
        uris = [f"udp://127.0.0.1:{int(found[1]) + i}" for i in range(3)]
        resource = Resource(uri="cf2x_L250")
        spawned = client.call(
            *(SpawnEntity, "crazyflow/spawn_entity"), name="cf2", entity_resource=resource
        )
        with connected(uris[0], tmp_path) as first:
            heard: list[bytes] = []
            first.appchannel.packet_received.add_callback(heard.append)
            first.appchannel.send_packet(b"!")
            until(lambda: heard == [b"cf0!"], "the app's answer")
            powers: list[int] = []
            config = LogConfig("radio", 100)
            config.add_variable("radio.rssi")
            first.log.add_config(config)
            config.data_received_cb.add_callback(
                lambda _, data, __: powers.append(data["radio.rssi"])
            )
            config.start()
            first.high_level_commander.takeoff(0.5, 1.0)
            until(lambda: len(powers) > 30, "powers")
            assert 50 <= min(powers) <= max(powers) <= 70  # -dBm, 30 m away, behind a wall
            assert client.call(Trigger, "cf0/reset").success
            first.high_level_commander.takeoff(0.5, 1.0)
            before = len(powers)
            until(lambda: len(powers) > before + 10, "powers after a reset")
        assert spawned.result.result == 1, spawned.result.error_message
        with connected(uris[2], tmp_path) as third:
            third.appchannel.packet_received.add_callback(heard.append)
            third.appchannel.send_packet(b"?")
            until(lambda: b"cf2?" in heard, "the app of a new drone")
        simulator.wait_for("by radio")
        log = simulator.log
    file = str(tmp_path / "flight.mcap")
    command = [sys.executable, "-m", "crazyflow_ros", "replay", file]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert "bit for bit the same" in done.stdout, done.stdout + done.stderr
    # A drone whose script ends in the air stops its rotors, and says so.
    usual = re.compile(r"\[INFO\]|.*cf0: no setpoint")
    assert not [line for line in log.splitlines() if not usual.match(line)], log


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("crazyflie.radio:=3M", "crazyflie.radio: expected one of none, 250K, 1M, 2M, got '3M'"),
        ("crazyflie.app:=nothing", "crazyflie.app: no package offers the app 'nothing'"),
    ],
)
def test_wrong_values_are_named(given: str, message: str) -> None:
    process = SimulatorProcess(DOMAIN, ["-p", f"crazyflie.port:={free_port(1)}", "-p", given])
    assert process.wait() == WRONG_USAGE
    assert message in process.log
