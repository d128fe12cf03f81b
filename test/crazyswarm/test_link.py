"""The node as Crazyflies: cflib and ROS fly the same drones at the same time."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator

import pytest
from geometry_msgs.msg import Point, Pose, Quaternion
from nav_msgs.msg import Odometry
from ros_client import Client, SimulatorProcess, own_domain
from simulation_interfaces.msg import EntityState
from simulation_interfaces.srv import SetEntityState
from std_srvs.srv import Trigger

pytest.importorskip("cflib", reason="cflib is not installed")

import cflib.crtp
from cflib.crazyflie import Crazyflie
from cflib.crazyflie.syncCrazyflie import SyncCrazyflie
from cflib.crtp.crtpstack import CRTPPacket
from cflib.utils.power_switch import PowerSwitch

DOMAIN = own_domain("test_crazyflie_link")
WRONG_USAGE = 2


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture(scope="module")
def simulator() -> Iterator[SimulatorProcess]:
    with SimulatorProcess(DOMAIN, ["-p", f"crazyflie.port:={free_port()}"]) as process:
        yield process


@pytest.fixture(scope="module")
def client(simulator: SimulatorProcess) -> Iterator[Client]:
    found = Client(DOMAIN)
    yield found
    found.close()


def test_a_script_flies_what_a_topic_shows(
    simulator: SimulatorProcess, client: Client, tmp_path: object
) -> None:
    found = re.search(r"Crazyflies for cflib: (udp://\S+)", simulator.log)
    assert found, simulator.log
    cflib.crtp.init_drivers()
    states = client.collect(Odometry, "/cf0/odom")
    with SyncCrazyflie(found[1], cf=Crazyflie(rw_cache=str(tmp_path))) as scf:
        scf.cf.high_level_commander.takeoff(0.6, 1.5)
        client.until(lambda: states and states[-1].pose.pose.position.z > 0.57, "takeoff")
        scf.cf.supervisor.send_emergency_stop()
        client.until(lambda: states[-1].pose.pose.position.z < 0.3, "the fall")
        scf.cf.high_level_commander.takeoff(0.6, 1.5)
        client.until(lambda: "cf0: it is locked: reset it first" in simulator.log, "a refusal")


def test_a_drone_comes_back_by_cflib_as_by_its_service(
    simulator: SimulatorProcess, client: Client, tmp_path: object
) -> None:
    """After a crash and without power; messages name both ways."""
    found = re.search(r"Crazyflies for cflib: (udp://\S+)", simulator.log)
    assert found, simulator.log
    cflib.crtp.init_drivers()
    states = client.collect(Odometry, "/cf0/odom")
    assert client.call(Trigger, "cf0/reset").success
    with SyncCrazyflie(found[1], cf=Crazyflie(rw_cache=str(tmp_path))) as scf:
        scf.cf.high_level_commander.takeoff(0.6, 1.5)
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
        scf.cf.supervisor.send_crash_recovery_request()
        client.until(lambda: "set upright where it lay" in simulator.log, "a recovery")
        scf.cf.high_level_commander.takeoff(0.6, 1.5)
        client.until(lambda: states[-1].pose.pose.position.z > 0.57, "another takeoff")
        assert states[-1].pose.pose.position.x == pytest.approx(0.5, abs=0.1)
    power = PowerSwitch(found[1])
    power.link.send_packet(CRTPPacket(0xFF, [0xFE, PowerSwitch.BOOTLOADER_CMD_SYSOFF]))
    client.until(lambda: states[-1].pose.pose.position.z < 0.1, "no power")
    assert client.call(Trigger, "cf0/reset").success  # it has power then
    with SyncCrazyflie(found[1], cf=Crazyflie(rw_cache=str(tmp_path))) as scf:
        scf.cf.high_level_commander.takeoff(0.6, 1.5)
        client.until(lambda: states[-1].pose.pose.position.z > 0.57, "the last takeoff")
    power.close()


def test_a_port_in_use_is_refused_by_name(simulator: SimulatorProcess) -> None:
    found = re.search(r"udp://127.0.0.1:(\d+)", simulator.log)
    assert found
    second = SimulatorProcess(DOMAIN, ["-p", f"crazyflie.port:={found[1]}"])
    assert second.wait() == WRONG_USAGE
    assert "crazyflie.port" in second.log and "in use" in second.log
