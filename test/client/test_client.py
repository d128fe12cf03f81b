"""The client library and the command line, with a running simulator."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from command_processes import run_python
from paths import ROOT
from ros_client import Client, SimulatorProcess, own_domain

pytest.importorskip("crazyflie_interfaces.srv", reason="crazyflie_interfaces is not installed")

DOMAIN = own_domain("test_client")
CORNER = 0.03  # m
TIMEOUT = 120.0  # s


@pytest.fixture(scope="module")
def simulator() -> Iterator[SimulatorProcess]:
    arguments = ["drones:=[cf0,cf1]", "real_time_factor:=4.0", "true_mass:=true"]
    with SimulatorProcess(DOMAIN, [word for a in arguments for word in ("-p", a)]) as process:
        yield process


@pytest.fixture
def rate(simulator: SimulatorProcess) -> Iterator[Client]:
    """Changes the real-time factor."""
    client = Client(DOMAIN)
    yield client
    assert client.set_parameter("real_time_factor", 4.0).successful
    client.close()


SQUARE = """
from crazyflow_ros.client import SimulatorClient

a = 1.0  # m, side and height

with SimulatorClient() as simulation:
    simulation.reset()
    cf0 = simulation.drone("cf0")
    cf0.takeoff(a)
    for x, y in ((a, 0), (a, a), (0, a), (0, 0)):
        cf0.go_to(x, y, a)
        print(*cf0.position)
    cf0.land()
"""


def run(*arguments: str, timeout: float = TIMEOUT) -> subprocess.CompletedProcess[str]:
    return run_python(DOMAIN, *arguments, timeout=timeout)


def check_corners(printed: str, side: float = 1.0) -> None:
    reached = np.array([[float(x) for x in line.split()] for line in printed.splitlines()])
    corners = side * np.array([(1, 0, 1), (1, 1, 1), (0, 1, 1), (0, 0, 1)])
    assert np.abs(reached - corners).max() < CORNER


# Smaller at half speed, so that the test takes no longer.
@pytest.mark.parametrize(("factor", "side"), [(0.5, 0.3), (1.0, 1.0), (5.0, 1.0)])
def test_the_square(rate: Client, factor: float, side: float, tmp_path: Path) -> None:
    assert rate.set_parameter("real_time_factor", factor).successful
    (script := tmp_path / "square.py").write_text(SQUARE.replace("a = 1.0", f"a = {side}"))
    done = run(str(script))
    assert done.returncode == 0, done.stderr
    check_corners(done.stdout, side)


def test_the_square_in_steps_is_the_same_to_the_bit(simulator: SimulatorProcess) -> None:
    stepped = SQUARE.replace("SimulatorClient()", "SimulatorClient(stepping=True)")
    flights = [run("-c", stepped) for _ in range(2)]
    assert all(flight.returncode == 0 for flight in flights), flights[0].stderr
    first, second = (flight.stdout for flight in flights)
    assert first == second
    check_corners(first)
    assert command("resume").returncode == 0


FLIGHT = """
from crazyflow_ros.client import SimulationError, SimulatorClient

with SimulatorClient(stepping=True) as simulation:
    simulation.reset()
    cf0 = simulation.drone("cf0")
    FLY
    simulation.resume()
"""


def test_a_flight_takes_its_duration_and_a_late_one_is_an_error(
    simulator: SimulatorProcess,
) -> None:
    fly = """cf0.takeoff(0.5)
    before = simulation.time
    cf0.go_to(0, 0, 0.5, duration=2.0)  # it is there already
    print(simulation.time - before)
    before = simulation.time
    try:
        cf0.go_to(1.0, 0, 0.5, timeout=0.3)
    except SimulationError as error:
        print(error)
    print(simulation.time - before)"""
    done = run("-c", FLIGHT.replace("FLY", fly))
    assert done.returncode == 0, done.stderr
    took, error, waited = done.stdout.splitlines()
    assert float(took) == pytest.approx(2.0, abs=0.15)
    assert re.search(
        r"cf0 has not arrived within 0\.[34] s, it is 0\.9\d m from its goal, at", error
    )
    assert 0.25 < float(waited) < 0.5


def test_a_drone_that_falls_does_not_arrive(simulator: SimulatorProcess) -> None:
    fly = """cf0.takeoff(1.0)
    from crazyflow_ros_interfaces.srv import SetMotorEfficiency
    simulation.call(SetMotorEfficiency, "cf0/set_motor_efficiency", motor=1, efficiency=0.0)
    try:
        cf0.go_to(1.0, 0, 1.0)
    except SimulationError as error:
        print(error)
    simulation.reset()"""
    done = run("-c", FLIGHT.replace("FLY", fly))
    assert done.returncode == 0, done.stderr
    assert re.search(r"cf0 has not arrived within \d\.\d s, .*cf0: crashed at", done.stdout)


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return run("-m", "crazyflow_ros", *words)


def test_drones_that_come_and_go(simulator: SimulatorProcess) -> None:
    fly = """from simulation_interfaces.msg import Resource
    from simulation_interfaces.srv import DeleteEntity, SpawnEntity
    resource = Resource(uri="cf2x_L250")
    spawn = "crazyflow/spawn_entity"
    simulation.call(SpawnEntity, spawn, 300.0, name="new", entity_resource=resource)
    print(*simulation.drones)
    simulation.drone("new").takeoff(0.5)
    simulation.call(DeleteEntity, "crazyflow/delete_entity", entity="cf0")
    print(*simulation.drones)
    before = simulation.time_ns
    simulation.step(5)
    print(simulation.time_ns - before)
    try:
        simulation.drone("cf0")
    except SimulationError as error:
        print(error)
    simulation.call(SpawnEntity, spawn, 300.0, name="cf0", entity_resource=resource)
    simulation.call(DeleteEntity, "crazyflow/delete_entity", entity="new")"""
    done = run("-c", FLIGHT.replace("FLY", fly), timeout=600.0)
    assert done.returncode == 0, done.stderr
    came, went, stepped, error = done.stdout.splitlines()
    assert sorted(came.split()) == ["cf0", "cf1", "new"] and sorted(went.split()) == ["cf1", "new"]
    assert int(stepped) == 5 * 2_000_000
    assert error.startswith("there is no drone 'cf0', have ")


def test_a_client_without_a_simulator_says_for_what_it_waits() -> None:
    script = """
from crazyflow_ros.client import SimulationError, SimulatorClient

try:
    SimulatorClient("nobody", timeout=4.0)
except SimulationError as error:
    print(error)
"""
    done = run("-c", script)
    what = f"there is no simulator /nobody in ROS domain {DOMAIN}"
    assert f"{what} yet; waiting for at most 4 s" in done.stderr
    assert done.stdout.startswith(f"{what}, waited 4 s")


def test_a_wrong_domain_is_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "ROS_DOMAIN_ID", "seven")
    words = [sys.executable, "-m", "crazyflow_ros", "list"]
    done = subprocess.run(
        words, timeout=TIMEOUT, text=True, capture_output=True, check=False, cwd=ROOT
    )
    assert done.returncode == 1
    assert done.stderr.startswith("list: failed to initialize rcl: ROS_DOMAIN_ID is not")
    assert "Traceback" not in done.stderr


@pytest.fixture(scope="module")
def another() -> Iterator[None]:
    """In a namespace, with a clock of its own, as in the README, for several in one ROS domain.

    With the mass that its firmware knows, its drone hovers 8 cm too high.
    """
    parameters = ["drone_model:=cf21B_500", "true_mass:=false", "real_time_factor:=4.0"]
    arguments = ["-r", "__ns:=/a", "-r", "/clock:=clock"]
    with SimulatorProcess(DOMAIN, arguments + [w for p in parameters for w in ("-p", p)]):
        yield


FLY_ANOTHER = """
from crazyflow_ros.client import SimulatorClient

with SimulatorClient(namespace="/a") as simulation:
    cf0 = simulation.drone("cf0")
    cf0.takeoff(1.0)
    print(cf0.position[2])
"""


@pytest.mark.usefixtures("another")
def test_a_simulator_with_a_clock_of_its_own() -> None:
    done = run("-c", FLY_ANOTHER)
    assert done.returncode == 0, done.stderr
    assert 1.05 < float(done.stdout) < 1.1


@pytest.mark.usefixtures("another")
def test_a_drone_with_a_steady_error_arrives() -> None:
    fly = """cf0.takeoff(1.0)
    print(cf0.position[2])
    cf0.go_to(0.5, 0.0, 1.0)
    print(cf0.position[2])"""
    script = FLIGHT.replace("FLY", fly).replace("stepping", 'namespace="/a", stepping')
    done = run("-c", script)
    assert done.returncode == 0, done.stderr
    assert all(1.05 < float(z) < 1.1 for z in done.stdout.split()), done.stdout
    listed = command("list", "--namespace", "/a")
    assert listed.returncode == 0 and re.search(r"^cf0 +flying +\(0\.5", listed.stdout, re.M)
