"""The program that flies a drone of a running simulator with a policy, over topics."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from math import nan
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Odometry
from paths import ROOT
from policies import overflowing, policy_of_layers
from ros_client import Client, RosProcess, SimulatorProcess, numbers, own_domain, time_ns
from sensor_msgs.msg import JointState

from crazyflow_ros.client import SimulationError, SimulatorClient
from crazyflow_ros.dynamics import RPM
from crazyflow_ros.dynamics.first_principles import Params
from crazyflow_ros.learn import fly_policy
from crazyflow_ros.learn.fly_policy import PolicyPilot
from crazyflow_ros.policy import load, save
from crazyflow_ros.policy.action import Action
from crazyflow_ros.policy.observation import Motion, Observation
from crazyflow_ros.policy.policy import Policy
from crazyflow_ros.sim import Sim

pytest.importorskip("crazyflie_interfaces.srv", reason="crazyflie_interfaces is not installed")
foundation_policy = pytest.importorskip("foundation_policy", reason="is a judge of make test")

SEEING = ROOT / "examples" / "16_race_by_depth" / "race_by_depth.policy"
CAMERA = "{type: camera, rate: 50, width: 48, height: 36, fovy: 90, data_types: [depth]}"
RAPTOR = Path(foundation_policy.__file__).parent / "blob" / "checkpoint.h5"
DOMAIN = own_domain("test_fly_policy")
START, GOAL = (0.1, -0.1, 2.0), (0.4, 0.2, 2.2)
LATE = 0.1  # m, how far a flight of a second without lock-step is off
PERIOD, TIMEOUT = 5, 120.0  # ticks, s


def options(*given: str) -> list[str]:
    return [word for option in given for word in ("-p", option)]


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A paused drone in the air, with a camera, that waits for rotor speeds."""
    sensors = tmp_path_factory.mktemp("sensors") / "sensors.yaml"
    sensors.write_text(f"all: {{wide: {CAMERA}}}")
    given = options(
        f"sensors:={sensors}",
        "control:=rotor_vel",
        f"initial_poses:=[{', '.join(map(str, START))}, 0.0]",
        "start_paused:=true",
        "ground_effect:=false",
        "real_time_factor:=1.0",
    )
    with SimulatorProcess(DOMAIN, given):
        client = Client(DOMAIN)
        yield client
        client.close()


def expected(ticks: int) -> np.ndarray:
    """Position in `Sim`, where the policy first acts after the fourth tick."""
    policy = load(RAPTOR, "cf2x_L250")
    sim = Sim(drone="cf2x_L250", control="rotor_vel", freq=500, forces=())
    pos = jnp.asarray([[START]], jnp.float32)
    zeros = jnp.zeros_like(sim.data.states.rotor_vel)
    sim.data = sim.data.replace(states=sim.data.states.replace(pos=pos, rotor_vel=zeros))
    sim.step(PERIOD - 1)  # the first tick is number 1
    state, act = policy.initial_state((1, 1)), jax.jit(Policy.act)
    for tick in range(PERIOD - 1, ticks, PERIOD):
        now = sim.data.states
        goal = jnp.asarray([[GOAL]], jnp.float32)
        motion = Motion(
            *(now.pos, now.quat, now.vel, now.ang_vel, now.rotor_vel),
            *(goal, *[jnp.zeros_like(goal)] * 2, state.action),
        )
        state, command = act(policy, state, motion)
        sim.rotor_vel_control(np.asarray(command))
        sim.step(min(PERIOD, ticks - tick))
    return np.asarray(sim.data.states.pos)[0, 0]


def at(message: Odometry) -> np.ndarray:
    return numbers(message.pose.pose.position)


def test_in_lock_step_it_flies_as_in_sim(simulator: Client) -> None:
    seen, place = simulator.collect(Odometry, "cf0/odom"), [*map(str, GOAL)]
    program = [sys.executable, "-m", "crazyflow_ros.learn.fly_policy", "--file", str(RAPTOR)]
    done = subprocess.run(
        [*program, "--position", *place, "--lock-step", "--seconds", "1.5"],
        env={**os.environ, "ROS_DOMAIN_ID": str(DOMAIN), "PYTHONPATH": str(ROOT)},
        timeout=TIMEOUT, text=True, capture_output=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = simulator.newest(seen, PERIOD + 750)
    np.testing.assert_allclose(at(found), expected(PERIOD - 1 + 750), atol=1e-3)


@pytest.mark.soak  # it depends on how busy the computer is
def test_without_lock_step_it_is_late_by_little(simulator: Client) -> None:
    """At a quarter of real time, as the test may share its processors with others."""
    begin = simulator.reset()
    simulator.advance(-begin % PERIOD + 1)  # as at the start, one tick after those of the policy
    begin = simulator.reset()
    seen = simulator.collect(Odometry, "cf0/odom")
    assert simulator.set_parameter("real_time_factor", 0.25).successful
    command = [sys.executable, "-m", "crazyflow_ros.learn.fly_policy", "--file", str(RAPTOR)]
    with RosProcess([*command, "--position", *map(str, GOAL)], DOMAIN) as program:
        program.wait_for("flies cf0")
        simulator.pause(False)
        simulator.until(lambda: len(seen) > 100, "a second of flight")
        simulator.pause(True)
        assert program.end()[0] == 0
    message = seen[100]
    ticks = round(time_ns(message.header.stamp) * 500 / 1e9) - begin
    off = at(message) - expected(ticks)
    assert ticks > 400 and np.linalg.norm(off) < LATE, off


@pytest.fixture
def stepped(simulator: Client, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimulatorClient]:
    """A client that steps the simulator, in this process."""
    simulator.reset()
    monkeypatch.setenv("ROS_DOMAIN_ID", str(DOMAIN))
    with SimulatorClient(stepping=True) as client:
        yield client


def test_what_does_not_fit_is_refused(stepped: SimulatorClient, tmp_path: Path) -> None:
    by_attitude = tmp_path / "attitude.policy"
    save(policy_of_layers([], Observation(), Action.of("cf2x_L250")), by_attitude)
    for drone, file, position, message in (
        ("cf0", by_attitude, GOAL, "control:=attitude, got rotor_vel"),
        ("cf0", tmp_path / "none", GOAL, "none is not a policy that can be read"),
        ("cf7", RAPTOR, GOAL, "there is no drone 'cf7', have cf0"),
        ("cf0", RAPTOR, (0, 0, nan), "position must be 3 finite numbers"),
    ):
        with pytest.raises((SimulationError, ValueError), match=message):
            PolicyPilot(stepped, drone, str(file), position)


def test_a_camera_that_is_not_the_policys_is_refused(stepped: SimulatorClient) -> None:
    with pytest.raises(SimulationError, match="cf0/none/depth/image_raw"):
        PolicyPilot(stepped, "cf0", str(SEEING), START, eye="none")
    pilot = PolicyPilot(stepped, "cf0", str(SEEING), START, eye="wide")
    with pytest.raises(SimulationError, match=r"fovy: 70, .* has 48 x 36 pixels and fovy 90"):
        pilot.fly(threading.Event(), 0.1)


def test_rotors_stop_where_the_policy_fails(
    simulator: Client, stepped: SimulatorClient, tmp_path: Path
) -> None:
    path = tmp_path / "overflows.policy"
    save(overflowing(Action.of("cf2x_L250", "rotor_vel")), path)
    speeds = simulator.collect(JointState, "cf0/joint_states")
    pilot = PolicyPilot(stepped, "cf0", str(path), START)
    goal = PoseStamped()
    goal.pose.position.x = nan
    simulator.publish("cf0/policy_goal", goal)  # is ignored
    pilot.fly(threading.Event(), 0.2)
    begin = stepped.time_ns
    goal.pose.position.x, goal.pose.position.z = START[0] + 3, START[2]
    simulator.publish("cf0/policy_goal", goal)
    with pytest.raises(SimulationError, match="output of the policy is not a number, cf0 stops"):
        pilot.fly(threading.Event(), 0.2)
    assert stepped.time_ns - begin < 0.02 * 1e9
    turning = simulator.newest(speeds, round(begin * 500 / 1e9))
    slowest = float(Params.create("cf2x_L250").rotor_vel_limits[0]) * RPM  # of a turning rotor
    assert min(turning.velocity) > slowest
    assert max(simulator.newest(speeds, simulator.advance(500)).velocity) < slowest / 2


def test_the_program_says_what_is_wrong(simulator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fly_policy, "on_end", lambda _: None)  # this process keeps its handlers
    monkeypatch.setenv("ROS_DOMAIN_ID", str(DOMAIN))
    with pytest.raises(SystemExit, match="policy: there is no drone 'cf7', have cf0"):
        fly_policy.main(["--file", str(RAPTOR), "--drone", "cf7"])
