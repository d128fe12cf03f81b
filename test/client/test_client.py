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
    environment = {**os.environ, "ROS_DOMAIN_ID": str(DOMAIN), "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *arguments], env=environment, timeout=timeout, text=True,
        capture_output=True, check=False, cwd=ROOT,
    )  # fmt: skip


def test_a_simulator_with_a_clock_of_its_own() -> None:
    """As in the README, for several simulators in one ROS domain."""
    arguments = ["-r", "__ns:=/a", "-r", "/clock:=clock", "-p", "real_time_factor:=4.0"]
    script = """
from crazyflow_ros.client import SimulatorClient

with SimulatorClient(namespace="/a") as simulation:
    cf0 = simulation.drone("cf0")
    cf0.takeoff(1.0)
    print(cf0.position[2])
"""
    with SimulatorProcess(DOMAIN, arguments):
        done = run("-c", script)
    assert done.returncode == 0, done.stderr
    assert abs(float(done.stdout) - 1.0) < CORNER


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


def test_a_drone_with_a_steady_error_arrives() -> None:
    """With the mass that its firmware knows, this drone hovers 8 cm too high."""
    parameters = ["drone_model:=cf21B_500", "true_mass:=false", "real_time_factor:=0.0"]
    arguments = ["-r", "__ns:=/a", "-r", "/clock:=clock"]
    arguments += [word for parameter in parameters for word in ("-p", parameter)]
    fly = """cf0.takeoff(1.0)
    print(cf0.position[2])
    cf0.go_to(0.5, 0.0, 1.0)
    print(cf0.position[2])"""
    script = FLIGHT.replace("FLY", fly).replace("stepping", 'namespace="/a", stepping')
    with SimulatorProcess(DOMAIN, arguments):
        done = run("-c", script)
        listed = command("list", "--namespace", "/a")
    assert listed.returncode == 0 and "cf0: (0.5" in listed.stdout
    assert done.returncode == 0, done.stderr
    assert all(1.05 < float(z) < 1.1 for z in done.stdout.split()), done.stdout


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return run("-m", "crazyflow_ros", *words)


def test_the_command_line(simulator: SimulatorProcess) -> None:
    assert command("reset").returncode == 0
    assert command("takeoff", "cf1", "0.7").returncode == 0
    assert command("go-to", "cf1", "0.5", "0.5", "0.8").returncode == 0
    listed = command("list").stdout
    assert "cf1: (0.5" in listed and "/cf1/takeoff  crazyflie_interfaces/srv/Takeoff" in listed
    echoed = command("echo", "/cf1/pose", "--once").stdout
    assert "frame_id: map" in echoed and "z: 0.8" in echoed
    # covariances are arrays of NumPy
    assert "covariance:\n  - 0.0\n" in command("echo", "/cf1/odom", "--once").stdout
    low = command("go-to", "cf1", "0.5", "0.5", "-1")
    assert low.returncode == 1 and re.search(r"it rests 1\.\d\d m from its goal, at", low.stderr)
    assert command("land", "cf1").returncode == 0
    refused = command("land", "cf1")
    assert refused.returncode == 1
    assert "cf1/land is refused: cf1: land needs a drone in the air" in refused.stderr
    unknown = command("takeoff", "cf7")
    assert unknown.returncode == 1
    assert "there is no drone 'cf7', have cf0, cf1" in unknown.stderr
    for words in (("pause",), ("step", "5"), ("resume",)):
        assert command(*words).returncode == 0
    running = command("step", "5")
    assert running.returncode == 1 and "not paused" in running.stderr
    negative = command("step", "-1")
    assert negative.returncode == 1
    assert negative.stderr.startswith("step: crazyflow/step_simulation cannot be called with ")


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


def test_output_that_nobody_reads_is_no_error(simulator: SimulatorProcess) -> None:
    words = f"{sys.executable} -m crazyflow_ros echo /cf0/odom | head -n 1"
    environment = {**os.environ, "ROS_DOMAIN_ID": str(DOMAIN)}
    done = subprocess.run(
        words, shell=True, env=environment, timeout=TIMEOUT, text=True, capture_output=True,
        check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.stdout == "header:\n"
    assert "Traceback" not in done.stderr and "BrokenPipe" not in done.stderr


def test_a_client_without_a_simulator_says_for_what_it_waits() -> None:
    script = """
from crazyflow_ros.client import SimulationError, SimulatorClient

try:
    SimulatorClient("nobody", timeout=4.0)
except SimulationError as error:
    print(error)
"""
    done = run("-c", script)
    assert "there is no service nobody/get_parameters yet; waiting for at most 4 s" in done.stderr
    assert done.stdout == (
        "there is no service nobody/get_parameters, within 4 s; "
        f"is a simulator running in ROS domain {DOMAIN}?\n"
    )


def test_a_wrong_domain_is_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "ROS_DOMAIN_ID", "seven")
    words = [sys.executable, "-m", "crazyflow_ros", "list"]
    done = subprocess.run(
        words, timeout=TIMEOUT, text=True, capture_output=True, check=False, cwd=ROOT
    )
    assert done.returncode == 1
    assert done.stderr.startswith("list: failed to initialize rcl: ROS_DOMAIN_ID is not")
    assert "Traceback" not in done.stderr


def test_what_nobody_knows_is_refused() -> None:
    helped = command("--help")
    assert helped.returncode == 0 and "takeoff" in helped.stdout
    for words in (("fly",), ("takeoff", "cf0", "high"), ("land",), ("n_drones=2",)):
        refused = command(*words)
        assert refused.returncode == 2 and "usage: python -m crazyflow_ros" in refused.stderr
    made = subprocess.run(
        ["make", "-n", "sim", "n_drones=2"], cwd=ROOT, text=True, capture_output=True, check=False
    )
    assert made.returncode and "n_drones" in made.stderr
