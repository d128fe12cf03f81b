"""The node as Crazyflies: cflib and ROS fly the same drones at the same time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from crazyflie_helpers import connected, free_port
from geometry_msgs.msg import Point, Pose, Quaternion
from nav_msgs.msg import Odometry
from ros_client import Client, SimulatorProcess, own_domain
from simulation_interfaces.msg import EntityState
from simulation_interfaces.srv import SetEntityState
from std_srvs.srv import Trigger

pytest.importorskip("cflib", reason="cflib is not installed")

from cflib.crtp.crtpstack import CRTPPacket
from cflib.utils.power_switch import PowerSwitch

DOMAIN = own_domain("test_crazyflie_link")
WRONG_USAGE = 2


@pytest.fixture(scope="module")
def simulator() -> Iterator[SimulatorProcess]:
    with SimulatorProcess(DOMAIN, ["-p", f"crazyflie.port:={free_port(1)}"]) as process:
        yield process


@pytest.fixture(scope="module")
def uri(simulator: SimulatorProcess) -> str:
    found = re.search(r"Crazyflies for cflib: (udp://\S+)", simulator.log)
    assert found, simulator.log
    return found[1]


@pytest.fixture(scope="module")
def client(simulator: SimulatorProcess) -> Iterator[Client]:
    found = Client(DOMAIN)
    yield found
    found.close()


def test_a_script_flies_what_a_topic_shows(
    simulator: SimulatorProcess, client: Client, uri: str, tmp_path: Path
) -> None:
    states = client.collect(Odometry, "/cf0/odom")
    with connected(uri, tmp_path) as cf:
        cf.high_level_commander.takeoff(0.6, 1.5)
        client.until(lambda: states and states[-1].pose.pose.position.z > 0.57, "takeoff")
        cf.supervisor.send_emergency_stop()
        client.until(lambda: states[-1].pose.pose.position.z < 0.3, "the fall")
        cf.high_level_commander.takeoff(0.6, 1.5)
        refused = "cf0: a take-off is refused: it is in the state 'Locked', reset it first"
        client.until(lambda: refused in simulator.log, "a refusal")


def test_a_drone_comes_back_by_cflib_as_by_its_service(
    simulator: SimulatorProcess, client: Client, uri: str, tmp_path: Path
) -> None:
    """After a crash and without power; messages name both ways."""
    states = client.collect(Odometry, "/cf0/odom")
    assert client.call(Trigger, "cf0/reset").success
    with connected(uri, tmp_path) as cf:
        cf.high_level_commander.takeoff(0.6, 1.5)
        client.until(lambda: states and states[-1].pose.pose.position.z > 0.57, "takeoff")
        fallen = Pose(position=Point(x=0.5, z=0.05), orientation=Quaternion(x=1.0))
        state = EntityState(pose=fallen)
        client.call(
            *(SetEntityState, "crazyflow/set_entity_state"),
            entity="cf0",
            state=state,
            set_pose=True,
            set_twist=True,
        )
        advice = "call cf0/reset, or recover it: cf.supervisor.send_crash_recovery_request()"
        client.until(lambda: advice in simulator.log, "a crash")
        client.until(lambda: abs(states[-1].twist.twist.linear.z) < 0.001, "a drone that lies")
        cf.supervisor.send_crash_recovery_request()
        client.until(lambda: "set upright where it lay" in simulator.log, "a recovery")
        client.until(lambda: cf.supervisor.can_fly, "a firmware that is ready again")
        cf.high_level_commander.takeoff(0.6, 1.5)
        client.until(lambda: states[-1].pose.pose.position.z > 0.57, "another takeoff")
        assert states[-1].pose.pose.position.x == pytest.approx(0.5, abs=0.1)
    power = PowerSwitch(uri)
    power.link.send_packet(CRTPPacket(0xFF, [0xFE, PowerSwitch.BOOTLOADER_CMD_SYSOFF]))
    client.until(lambda: states[-1].pose.pose.position.z < 0.1, "no power")
    assert client.call(Trigger, "cf0/reset").success  # it has power then
    with connected(uri, tmp_path) as cf:
        cf.high_level_commander.takeoff(0.6, 1.5)
        client.until(lambda: states[-1].pose.pose.position.z > 0.57, "the last takeoff")
    power.close()


def test_a_port_in_use_is_refused_by_name(uri: str) -> None:
    second = SimulatorProcess(DOMAIN, ["-p", f"crazyflie.port:={uri.rpartition(':')[2]}"])
    assert second.wait() == WRONG_USAGE
    assert "crazyflie.port" in second.log and "in use" in second.log
