"""The client library and the command line, with a running simulator."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO

import numpy as np
import pytest
from command_processes import command, run_python
from ros_client import SimulatorProcess, own_domain

from crazyflow_ros.client import NoSimulator, SimulationError, SimulatorClient

pytest.importorskip("crazyflie_interfaces.srv", reason="crazyflie_interfaces is not installed")

DOMAIN = own_domain("test_client")
CORNER = 0.03  # m


@pytest.fixture(scope="module")
def domain() -> Iterator[None]:
    """That of the clients in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROS_DOMAIN_ID", str(DOMAIN))
        yield


@pytest.fixture(scope="module")
def simulator(domain: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatorProcess]:
    folder = tmp_path_factory.mktemp("checkpoints")
    arguments = [f"checkpoint_folder:={folder}"]
    arguments += ["drones:=[cf0,cf1]", "max_drones:=3"]  # so that nothing is compiled later
    arguments += ["real_time_factor:=4.0", "true_mass:=true"]
    with SimulatorProcess(DOMAIN, arguments) as process:
        yield process


SQUARE = """
from crazyflow_ros.client import SimulatorClient

with SimulatorClient() as simulation:
    simulation.reset()
    cf0 = simulation.drone("cf0")
    cf0.takeoff(1.0)
    for x, y in ((1, 0), (1, 1), (0, 1), (0, 0)):
        cf0.go_to(x, y, 1.0)
        print(*cf0.position)
    cf0.land()
"""


def check_corners(printed: str) -> None:
    reached = np.array([[float(x) for x in line.split()] for line in printed.splitlines()])
    corners = np.array([(1, 0, 1), (1, 1, 1), (0, 1, 1), (0, 0, 1)])
    assert np.abs(reached - corners).max() < CORNER


@pytest.mark.usefixtures("simulator")
def test_the_square() -> None:
    done = run_python(DOMAIN, "-c", SQUARE)
    assert done.returncode == 0, done.stderr
    check_corners(done.stdout)


def test_the_square_in_steps_is_the_same_to_the_bit(simulator: SimulatorProcess) -> None:
    stepped = SQUARE.replace("SimulatorClient()", "SimulatorClient(stepping=True)")
    flights = []
    for _ in range(2):
        with redirect_stdout(StringIO()) as printed:
            exec(stepped, {})
        flights.append(printed.getvalue())
    assert flights[0] == flights[1]
    check_corners(flights[0])
    assert command("resume").returncode == 0


@pytest.fixture
def stepped(simulator: SimulatorProcess) -> Iterator[SimulatorClient]:
    """A client that steps time; all is as at the start."""
    with SimulatorClient(stepping=True) as simulation:
        simulation.reset()
        yield simulation
        simulation.reset()
        simulation.resume()


def test_a_flight_takes_its_duration_and_a_late_one_is_an_error(stepped: SimulatorClient) -> None:
    cf0 = stepped.drone("cf0")
    cf0.takeoff(0.5)
    before = stepped.time
    cf0.go_to(0, 0, 0.5, duration=2.0)  # it is there already
    assert stepped.time - before == pytest.approx(2.0, abs=0.15)
    before = stepped.time
    late = r"cf0 has not arrived within 0\.[34] s, it is 0\.9\d m from its goal, at"
    with pytest.raises(SimulationError, match=late):
        cf0.go_to(1.0, 0, 0.5, timeout=0.3)
    assert 0.25 < stepped.time - before < 0.5


def test_a_drone_that_falls_does_not_arrive(stepped: SimulatorClient) -> None:
    services = pytest.importorskip("crazyflow_ros_interfaces.srv", reason="not installed")
    cf0 = stepped.drone("cf0")
    cf0.takeoff(1.0)
    stop = services.SetMotorEfficiency
    stepped.call(stop, "cf0/set_motor_efficiency", motor=1, efficiency=0.0)
    fell = r"cf0 has not arrived within \d\.\d s, .*cf0: crashed at"
    with pytest.raises(SimulationError, match=fell):
        cf0.go_to(1.0, 0, 1.0)


def test_drones_that_come_and_go(stepped: SimulatorClient) -> None:
    world = stepped.world
    world.spawn("new", 2.0, 2.0)
    assert sorted(stepped.drones) == ["cf0", "cf1", "new"]
    stepped.drone("new").takeoff(0.5)
    world.remove("cf0")
    assert sorted(stepped.drones) == ["cf1", "new"]
    before = stepped.time_ns
    stepped.step(5)
    assert stepped.time_ns - before == 5 * 2_000_000
    with pytest.raises(SimulationError, match="there is no drone 'cf0', have "):
        stepped.drone("cf0")
    world.spawn("cf0")
    world.remove("new")
    world.spawn("new", -2.0, 1.0)
    np.testing.assert_allclose(stepped.drone("new").position[:2], (-2.0, 1.0), atol=CORNER)
    world.remove("new")


def test_each_refusal_in_a_row_is_an_error(stepped: SimulatorClient) -> None:
    cf0 = stepped.drone("cf0")
    cf0.emergency()
    for _ in range(3):
        with pytest.raises(SimulationError, match=r"^cf0/arm is refused: cf0: it is locked"):
            cf0.arm()


@pytest.mark.usefixtures("simulator")
def test_a_message_that_a_drone_ignores_is_an_error() -> None:
    with SimulatorClient() as simulation:
        simulation.reset()
        simulation.drone("cf1").emergency()
        with pytest.raises(SimulationError, match=r"^cf1 ignores a .*: it is locked"):
            simulation.graph.publish("cf1/cmd_pose", {})
        assert simulation.graph.publish("cf0/cmd_pose", {"pose": {"position": {"z": 0.5}}}) == 1
        simulation.reset()


def test_a_checkpoint_is_gone_on_from_at_its_time(stepped: SimulatorClient) -> None:
    cf0 = stepped.drone("cf0")
    cf0.takeoff(0.5)
    place, before = cf0.position, stepped.time
    stepped.save_checkpoint("hovering.npz")
    cf0.go_to(1.0, 0.0, 1.0)
    stepped.restore_checkpoint("hovering.npz")
    assert stepped.time == before
    np.testing.assert_array_equal(cf0.position, place)
    cf0.go_to(0.2, 0.0, 0.5)


@pytest.mark.usefixtures("domain")
def test_a_client_without_a_simulator_says_for_what_it_waits(
    capfd: pytest.CaptureFixture[str],
) -> None:
    what = f"there is no simulator /nobody in ROS domain {DOMAIN}"
    with pytest.raises(NoSimulator, match=f"{what}, waited 4 s"):
        SimulatorClient("nobody", timeout=4.0)
    assert f"{what} yet; waiting for at most 4 s" in capfd.readouterr().err


def test_a_wrong_domain_is_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROS_DOMAIN_ID", "seven")
    done = command("list")
    assert done.returncode == 1
    assert done.stderr.startswith("list: failed to initialize rcl: ROS_DOMAIN_ID is not")
    assert "Traceback" not in done.stderr


@pytest.fixture(scope="module")
def another(domain: None) -> Iterator[None]:
    """In a namespace, with a clock of its own, as in the README, for several in one ROS domain.

    With the mass that its firmware knows, its drone hovers 8 cm too high.
    """
    parameters = ["drone_model:=cf21B_500", "true_mass:=false", "real_time_factor:=4.0"]
    with SimulatorProcess(DOMAIN, [*parameters, "-r", "__ns:=/a", "-r", "/clock:=clock"]):
        yield


@pytest.mark.usefixtures("another")
def test_a_drone_with_a_steady_error_arrives() -> None:
    with SimulatorClient(namespace="/a", stepping=True) as simulation:
        simulation.reset()
        cf0 = simulation.drone("cf0")
        cf0.takeoff(1.0)
        assert 1.05 < cf0.position[2] < 1.1
        cf0.go_to(0.5, 0.0, 1.0)
        assert 1.05 < cf0.position[2] < 1.1
        simulation.resume()
    listed = command("list --namespace /a")
    assert listed.returncode == 0 and re.search(r"^cf0 +flying +\(0\.5", listed.stdout, re.M)
