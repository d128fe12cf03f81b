"""Flights that scripts wait for: until they have arrived, or it is known why they do not."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from command_processes import command
from geometry_msgs.msg import PoseStamped
from ros_client import Client, SimulatorProcess, own_domain
from std_srvs.srv import Empty, Trigger

from crazyflow_ros.client import DroneClient, SimulationError, SimulatorClient

pytest.importorskip("crazyflie_interfaces.srv", reason="crazyflie_interfaces is not installed")

DOMAIN = own_domain(__name__)
READY = 600.0  # s, the world has shapes, which takes long to compile
BUG = 4.25  # m, poses at this height fail
PRELUDE = f"""
from crazyflow_ros.flight import Pose
plan = Pose.plan
def broken(self, start, rules):
    if self.pos[2] == {BUG}:
        raise KeyError("a bug")
    return plan(self, start, rules)
Pose.plan = broken
"""
WORLD = """<mujoco><worldbody><geom type="plane" size="0 0 1"/>
<geom name="wall" type="box" pos="3 0 1.5" size="0.1 2 1.5"/>
<geom name="table" type="box" pos="-2 0 0.4" size="0.4 0.4 0.4"/></worldbody></mujoco>"""


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatorProcess]:
    (scene := tmp_path_factory.mktemp("flights") / "world.xml").write_text(WORLD)
    words = (f"scene:={scene}", "drones:=[cf0,cf1]", "real_time_factor:=4.0", "true_mass:=true")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROS_DOMAIN_ID", str(DOMAIN))
        with SimulatorProcess(DOMAIN, words, prelude=PRELUDE, ready_timeout=READY) as process:
            yield process


@pytest.fixture(scope="module")
def script(simulator: SimulatorProcess) -> Iterator[SimulatorClient]:
    with SimulatorClient() as script:
        yield script


@pytest.fixture
def simulation(script: SimulatorClient) -> SimulatorClient:
    script.reset()
    script.warnings()
    return script


@pytest.fixture
def cf0(simulation: SimulatorClient) -> DroneClient:
    """Hovers at 1 m above the origin."""
    drone = simulation.drone("cf0")
    drone.takeoff(1.0)
    return drone


@pytest.fixture(scope="module")
def other(simulator: SimulatorProcess) -> Iterator[Client]:
    """Somebody else."""
    with Client(DOMAIN) as client:
        yield client


def pose(x: float, z: float) -> PoseStamped:
    message = PoseStamped()
    message.pose.position.x, message.pose.position.z = x, z
    return message


@pytest.mark.parametrize("stepping", [False, True])
def test_a_long_flight_that_begins_slowly_is_waited_for(
    simulator: SimulatorProcess, other: Client, stepping: bool
) -> None:
    """Its first five seconds are a few millimetres."""
    assert other.set_parameter("real_time_factor", 0.0).successful
    with SimulatorClient(stepping=stepping) as simulation:
        simulation.reset()
        cf0 = simulation.drone("cf0")
        cf0.takeoff(1.0)
        begin = simulation.time
        cf0.go_to(0.0, -1.0, 75.0)
        np.testing.assert_allclose(cf0.position, (0.0, -1.0, 75.0), atol=0.2)
        assert simulation.time - begin > 60.0
        simulation.reset()
        simulation.resume()
    assert other.set_parameter("real_time_factor", 4.0).successful


@pytest.mark.parametrize("seconds", [2.0, 0.0])  # its plan is known then, or not yet
def test_a_flight_that_another_command_replaces_fails(
    simulation: SimulatorClient, cf0: DroneClient, other: Client, seconds: float
) -> None:
    flight = cf0.start_go_to(-20.0, 0.0, 1.0)
    simulation.sleep(seconds)
    other.publish("cf0/cmd_pose", pose(1.0, 1.5))
    with pytest.raises(SimulationError, match=r"it obeys another command, \d+\.\d\d m from its"):
        flight.wait()


@pytest.mark.parametrize(
    ("kind", "service", "state"), [(Empty, "emergency", "locked"), (Trigger, "reset", "idle")]
)
def test_a_flight_that_is_ended_fails(
    cf0: DroneClient, other: Client, kind: type, service: str, state: str
) -> None:
    flight = cf0.start_go_to(-20.0, 0.0, 1.0)
    other.call(kind, f"cf0/{service}")
    with pytest.raises(SimulationError, match=rf"has not arrived within .* it is {state}, \d+\."):
        flight.wait()


def test_a_flight_that_is_blocked_fails(cf0: DroneClient) -> None:
    blocked = r"cf0 has not arrived within .* it rests \d\.\d\d m from its goal, at .*; .*hit wall"
    with pytest.raises(SimulationError, match=blocked):
        cf0.go_to(3.3, 0.0, 1.0, duration=8.0)


def test_a_landing_on_a_table_arrives(cf0: DroneClient) -> None:
    cf0.go_to(-2.0, 0.0, 1.3)
    cf0.land()
    assert cf0.state == "landed" and cf0.position[2] == pytest.approx(0.81, abs=0.02)
    cf0.takeoff(1.5)
    assert cf0.position[2] == pytest.approx(1.5, abs=0.05)


def test_a_drone_that_is_lost_is_called_lost(cf0: DroneClient, other: Client) -> None:
    """By all that tell its state, and by the flight that nobody will end."""
    lost = r"(?s)has not arrived within .* it is lost, \d.*setpoint failed with KeyError: 'a bug'"
    flight = cf0.start_go_to(-20.0, 0.0, 1.0)
    other.publish("cf0/cmd_pose", pose(1.0, BUG))
    with pytest.raises(SimulationError, match=lost):
        flight.wait()
    assert cf0.state == "lost"
    listed = command("list").stdout
    place = r"\(-?\d\.\d\d, .*, (0\.9|1\.0)\d\) m"
    assert re.search(rf"^cf0 +lost +{place}", listed, re.MULTILINE), listed
    assert re.search(r"^cf1 +idle ", listed, re.MULTILINE) and "cf0: lost by" in listed
    assert "1 idle, 1 lost" in command("status").stdout
    with pytest.raises(SimulationError, match=r"it is lost .*: reset it first"):
        cf0.go_to(0.0, 0.0, 1.0)
    cf0.emergency()  # which it needs not obey
    assert cf0.state == "lost"
    cf0.reset()
    assert cf0.state == "idle"
    cf0.takeoff(0.5)


def test_a_long_flight_tells_how_far_it_has_come(cf0: DroneClient) -> None:
    done = command("go-to cf0 0 0 25")
    assert done.stdout.startswith("cf0 hovers at (0.00, 0.00, 2")
    lines = [line for line in done.stderr.splitlines() if " m from its goal" in line]
    assert lines and all(
        re.search(r"\d of \d\d\.\d s .* cf0 \d+\.\d\d m from", line) for line in lines
    )


def test_somebody_else_may_wait_for_the_same_drone(cf0: DroneClient, simulator: object) -> None:
    """Each of two scripts knows what the other one does to its flight."""
    flight = cf0.start_go_to(-15.0, 0.0, 1.0)
    done: list[str] = []
    thread = threading.Thread(target=lambda: done.append(command("land cf0").stdout))
    thread.start()
    with pytest.raises(SimulationError, match=r"it (obeys another command|is landed),"):
        flight.wait()
    thread.join(120)
    assert done and done[0].startswith("cf0 stands at")
