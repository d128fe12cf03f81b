"""Our PID, Mellinger and Brescianini controllers beside those of the Crazyflie's firmware.

Their gains are random. The firmware is built from a checkout, in double precision;
firmware/harness.c calls its functions. Both sides take gains by the firmware's names.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from control_helpers import LEVEL, array, body, components, fresh, state_setpoint
from firmware_source import build, sources
from scipy.spatial.transform import Rotation

from crazyflow_ros.control import Controller, PowerDistribution, brescianini, mellinger, pid
from crazyflow_ros.control.memory import RATES
from crazyflow_ros.control.setpoint_modes import Modes
from crazyflow_ros.crazyflie.gains import GAINS, Gains
from crazyflow_ros.drones import load_drone

pytestmark = pytest.mark.usefixtures("double_precision")

DRONE = "cf2x_L250"
FOLDERS = (
    *("config", "modules/interface", "modules/interface/controller", "modules/src/controller"),
    *("hal/interface", "drivers/interface", "utils/interface", "utils/interface/lighthouse"),
    "platform/interface",
)
SOURCES = (
    *("modules/src/controller/attitude_pid_controller", "utils/src/pid", "utils/src/filter"),
    "utils/src/num",
    "modules/src/controller/position_controller_pid",
    "modules/src/controller/controller_mellinger",
    "modules/src/power_distribution_quadrotor",
)
ABSENT = ("autoconf.h", "log.h", "param.h", "commander.h", "debug.h")  # host.h replaces them
# Shares of the motors in roll and pitch, which count half, and yaw.
MIXING = np.array([[-0.5, -0.5, 0.5, 0.5], [-0.5, 0.5, 0.5, -0.5], [-1.0, 1.0, -1.0, 1.0]])
PWM = 1.0  # step of the output, an integer
DISABLED, ABSOLUTE, VELOCITY = range(3)
STATE = (
    ABSOLUTE,
    ABSOLUTE,
    ABSOLUTE,
    False,
)  # modes x, y, z, and whether the velocity is the body's
SETPOINTS = {
    "state": STATE,
    "velocity": (VELOCITY, VELOCITY, VELOCITY, False),
    "hover": (VELOCITY, VELOCITY, ABSOLUTE, True),
    "z_distance": (DISABLED, DISABLED, ABSOLUTE, False),
    "altitude_hold": (DISABLED, DISABLED, VELOCITY, False),
    "attitude": (DISABLED, DISABLED, DISABLED, False),
}


class Firmware:
    """The firmware's controllers."""

    def __init__(self, source: Path, folder: Path) -> None:
        here = Path(__file__).with_name("firmware")
        self._library = build(source, here, folder, folders=FOLDERS, files=SOURCES, absent=ABSENT)

    def set(self, name: str, value: float) -> None:
        group, _, own = name.partition(".")
        known = self._library.set(group.encode(), own.encode(), ctypes.c_double(value))
        assert known & 0xFF, name

    def call(self, name: str, n: int, *values: Any) -> np.ndarray:
        """Call a function that writes n numbers."""
        found = (ctypes.c_double * n)()
        given = [
            ctypes.c_double(v) if isinstance(v, float) else (ctypes.c_double * len(v))(*v)
            for v in values
        ]
        getattr(self._library, name)(*given, found)
        return np.array(found)

    def start_mellinger(self) -> None:
        self._library.startMellinger()

    @property
    def mass(self) -> float:
        figures = (ctypes.c_double * 1)(), (ctypes.c_double * 9)()
        self._library.figures(*figures)
        return figures[0][0]

    def start(self, pos: np.ndarray, rpy: np.ndarray) -> None:
        self._library.start(*((ctypes.c_double * 3)(*v) for v in (pos, rpy)))


@pytest.fixture(scope="module")
def firmware(tmp_path_factory: pytest.TempPathFactory) -> Firmware:
    return Firmware(sources(), tmp_path_factory.mktemp("firmware"))


def tuned(
    firmware: Firmware, controller: Controller, values: Mapping[str, float]
) -> dict[str, dict[str, np.ndarray]]:
    """Set parameters of the firmware; return the gains of ours, by stage and name."""
    gains, found = Gains(DRONE, 500, true_mass=False), dict[str, dict[str, np.ndarray]]()
    for name, value in values.items():
        firmware.set(name, value)
        kind, new = gains.set(name, value)
        assert kind is controller
        for path, numbers in new.items():
            stage, _, gain = path.partition(".")
            found.setdefault(stage, {})[gain] = numbers
    return found


def random_gains(rng: np.random.Generator, groups: tuple[str, ...]) -> dict[str, float]:
    """Values of all gains in some groups, near the firmware's; those that are 0 there, small."""
    values = Gains(DRONE, 500, true_mass=False).values()
    scale = {"pid_rate": 1.0, "posCtlPid": 0.02, "velCtlPid": 0.1, "pid_attitude": 0.05}
    found = {}
    for name in GAINS:
        group, _, own = name.partition(".")
        if group in groups:
            value = values[name] * rng.uniform(0.7, 1.3) or rng.uniform(0, scale[group])
            found[name] = float(int(value)) if own.startswith("thrust") else value
    return found


@pytest.mark.parametrize("seed", range(3))
def test_positions_are_controlled_as_by_the_firmware(firmware: Firmware, seed: int) -> None:
    """All terms: proportional, integral, derivative, feed forward, and the limits."""
    rng = np.random.default_rng(seed)
    gains = tuned(firmware, Controller.pid, random_gains(rng, ("posCtlPid", "velCtlPid")))
    params = pid.load_params("state", DRONE, 100) | gains["state"]
    thrust = pid.firmware_units("state", DRONE)["thrust_base"]
    yaw, pos = rng.uniform(-3, 3), rng.uniform(-1, 1, 3)
    quat = Rotation.from_euler("z", yaw).as_quat()
    firmware.start(Rotation.from_euler("z", -yaw).apply(pos), np.zeros(3))
    # Our derivative of the position is the velocity, the firmware's the difference of two positions
    # along axes that turn: both are the same at a constant heading, for the mean velocity.
    memory, limited = fresh(pid.POSITION_MEMORY), 0
    phase, goal = rng.uniform(0, 6, 3), rng.uniform(-1, 1, 3)
    run = jax.jit(lambda p, v, m: pid.state2attitude(body(p, quat, v), at, m, 0.01, params))
    at = state_setpoint(goal, quat=quat)
    for k in range(300):
        new = pos + 0.004 * np.sin(0.05 * k + phase)
        vel = (new - pos) / 0.01 if k else np.zeros(3)
        pos = new if k else pos
        (roll, pitch, _), force, memory = run(pos, vel, memory)
        ours = np.degrees(roll), -np.degrees(pitch), force / thrust
        given = (*STATE, *goal, 0, 0, 0)
        theirs = firmware.call("position", 3, pos, vel, float(np.degrees(yaw)), given)
        # Half a step of PWM is lost where the firmware halves the greatest one.
        np.testing.assert_allclose(ours[:2], theirs[:2], rtol=1e-6, atol=1e-6)
        assert ours[2] == pytest.approx(theirs[2], abs=0.6)
        limited += abs(theirs[0]) > 0.999 * np.degrees(gains["state"]["tilt_max"][0])
    assert limited < 300


def modes(name: str, roll: float = 0.0, pitch: float = 0.0, thrust: float = 0.0) -> Modes:
    x, _, z, in_heading = SETPOINTS[name]
    flags = x != ABSOLUTE, in_heading, x == DISABLED, z != ABSOLUTE, z == DISABLED
    turns = name != "state"
    numbers = (jnp.asarray(value) for value in (*flags, turns, False, roll, pitch, thrust))
    return Modes(*numbers)


@pytest.mark.parametrize("name", SETPOINTS)
def test_setpoints_of_all_modes_are_controlled_as_by_the_firmware(
    firmware: Firmware, name: str
) -> None:
    """The position part of the PID cascade, from its start, along a path."""
    rng = np.random.default_rng(len(name))
    gains = tuned(firmware, Controller.pid, random_gains(rng, ("posCtlPid", "velCtlPid")))
    params = pid.load_params("state", DRONE, 100) | gains["state"]
    base = pid.firmware_units("state", DRONE)["thrust_base"]
    yaw, pos = rng.uniform(-3, 3), rng.uniform(-1, 1, 3)
    quat = Rotation.from_euler("z", yaw).as_quat()
    firmware.start(Rotation.from_euler("z", -yaw).apply(pos), np.zeros(3))
    given = SETPOINTS[name]
    goal = rng.uniform(-1, 1, 3) * (np.array(given[:3]) == ABSOLUTE)
    wanted = rng.uniform(-1, 1, 3) * (np.array(given[:3]) == VELOCITY)
    tilt, thrust = rng.uniform(-0.2, 0.2, 2), 0.3
    at, told = state_setpoint(goal, wanted, quat=quat), modes(name, *tilt, thrust)
    memory, phase = fresh(pid.POSITION_MEMORY), rng.uniform(0, 6, 3)
    run = jax.jit(lambda p, v, m: pid.state2attitude(body(p, quat, v), at, m, 0.01, params, told))
    for k in range(200):
        new = pos + 0.004 * np.sin(0.05 * k + phase)
        vel = (new - pos) / 0.01 if k else np.zeros(3)
        pos = new if k else pos
        (roll, pitch, _), force, memory = run(pos, vel, memory)
        values = (*given, *goal, *wanted)
        theirs = firmware.call("position", 3, pos, vel, float(np.degrees(yaw)), values)
        if given[0] == DISABLED:  # `controllerPid` takes the angles of the setpoint
            np.testing.assert_allclose((roll, pitch), tilt)
        else:
            ours = np.degrees(roll), -np.degrees(pitch)
            np.testing.assert_allclose(ours, theirs[:2], rtol=1e-6, atol=1e-6)
        if given[2] == DISABLED:
            assert force == pytest.approx(thrust)
        else:
            assert force / base == pytest.approx(theirs[2], abs=0.6)


@pytest.mark.parametrize("name", SETPOINTS)
def test_mellingers_controller_follows_what_that_of_the_firmware_follows(
    firmware: Firmware, name: str
) -> None:
    rng = np.random.default_rng(len(name))
    kd = {"kd": np.array([0.2, 0.2, 0.4])}  # ours is Crazyflow's
    of_state = mellinger.load_params("state", DRONE) | kd
    of_attitude = mellinger.load_params("attitude", DRONE)
    newton = 4 * load_drone(DRONE)["thrust_max"] / 65535
    masses = {"mass": np.array(firmware.mass)}
    levers = np.array(
        [2 * of_attitude["L"], 2 * of_attitude["L"], 4 * of_attitude["thrust2torque"]]
    )
    given = SETPOINTS[name]
    for _ in range(50):
        pos, vel, ang_vel = rng.uniform(-0.5, 0.5, (3, 3))
        rpy = rng.uniform(-0.3, 0.3, 3) * (1, 1, 8)
        quat = Rotation.from_euler("xyz", rpy).as_quat()
        goal = rng.uniform(-0.5, 0.5, 3) * (np.array(given[:3]) == ABSOLUTE)
        wanted = rng.uniform(-0.5, 0.5, 3) * (np.array(given[:3]) == VELOCITY)
        tilt = rng.uniform(-0.2, 0.2, 2)
        # The firmware's yaw of an attitude is ahead of the drone's by one of its periods, 2 ms.
        turn = rng.uniform(-1, 1) * (name not in ("state", "attitude"))
        thrust = 0.3 if name == "attitude" else 0.0
        told = modes(name, *tilt, thrust)
        tilts = np.degrees(tilt) * (1, -1)
        values = np.concatenate((
            pos, vel, quat, np.degrees([rpy[2], *ang_vel]), given, goal, wanted, tilts,
            [np.degrees(turn), thrust / newton, float(given[0] == DISABLED),
             VELOCITY if name != "state" else ABSOLUTE],
        ))  # fmt: skip
        firmware.start_mellinger()
        theirs = firmware.call("runMellinger", 4, values)
        now = body(pos, quat, vel, ang_vel)
        angles, force, _ = mellinger.state2attitude(
            now, state_setpoint(goal, wanted), fresh(mellinger.POSITION_MEMORY), 0.002,
            of_state | masses, told,
        )  # fmt: skip
        rates = components((0.0, 0.0, turn))
        _, torque, _ = mellinger.attitude2force_torque(
            now, (angles, rates, force), fresh(mellinger.ATTITUDE_MEMORY), 0.002, of_attitude,
            distribution=PowerDistribution.capped,
        )  # fmt: skip
        ours = np.array([force, *array(torque) / levers * 4]) / newton
        np.testing.assert_allclose(ours, theirs * (1, 1, -1, -1), atol=PWM)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("seed", range(2))
def test_attitudes_are_controlled_as_by_the_firmware(
    firmware: Firmware, seed: int, axis: int
) -> None:
    """A rotation about one axis, for which body rates are the derivatives of angles."""
    rng = np.random.default_rng(10 * seed + axis)
    gains = tuned(firmware, Controller.pid, random_gains(rng, ("pid_attitude", "pid_rate")))
    params = pid.load_params("attitude", DRONE, 500) | gains["attitude"]
    unit = pid.firmware_units("attitude", DRONE)["torque_max"] * (1, -1, 1)
    sign = np.array([1, -1, 1])  # of the firmware's angles
    firmware.start(np.zeros(3), np.zeros(3))
    memory, angle = fresh(pid.ATTITUDE_MEMORY), 0.0
    goal = rng.uniform(-0.3, 0.3, 3)
    setpoint = (components(goal), components((0.0, 0.0, 0.0)), jnp.asarray(0.3))

    @jax.jit
    def run(quat: jax.Array, rates: jax.Array, memory: Any) -> Any:
        return pid.attitude2force_torque(
            body(quat=quat, ang_vel=rates), setpoint, memory, 0.002, params
        )

    for k in range(300):
        new = angle + 0.001 * np.sin(0.04 * k + 1)
        rates, rpy = np.zeros(3), np.zeros(3)
        rates[axis], angle = (new - angle) / 0.002, new
        rpy[axis] = angle
        quat = Rotation.from_euler("xyz", rpy).as_quat()
        _, torque, memory = run(quat, rates, memory)
        given = np.degrees(rpy) * sign, np.degrees(rates), np.degrees(goal) * sign
        theirs = firmware.call("attitude", 6, *given)
        np.testing.assert_allclose(
            np.degrees(array(memory[RATES])) * sign, theirs[:3], rtol=1e-6, atol=1e-6
        )
        np.testing.assert_allclose(array(torque) / unit, theirs[3:], atol=PWM)


def test_brescianinis_controller_has_the_gains_of_the_firmware(firmware: Firmware) -> None:
    """At a level attitude along x: the firmware multiplies its quaternions in the other order."""
    figures = (ctypes.c_double * 1)(), (ctypes.c_double * 9)()
    firmware._library.figures(*figures)
    mass, inertia = figures[0][0], np.array(figures[1]).reshape(3, 3)
    rng = np.random.default_rng(7)
    parameters = {
        name: value * rng.uniform(0.8, 1.2)
        for name, value in Gains(DRONE, 500, true_mass=False).values().items()
        if name.startswith("ctrlAtt.")
    }
    gains = tuned(firmware, Controller.brescianini, parameters)
    load = brescianini.load_params
    of_state = load("state", DRONE, 100) | gains["state"] | {"mass": np.array(mass)}
    of_attitude = load("attitude", DRONE, 500) | gains["attitude"] | {"J": inertia}
    reduced = 0
    for _ in range(300):
        pos, vel, goal, vel_sp, acc_sp = rng.uniform(-0.4, 0.4, (5, 3))
        if rng.random() < 0.3:
            goal += (1.0, 0.0, 1.5)  # more than the motors give
            reduced += 1
        ang_vel, yaw_rate = rng.uniform(-2, 2, 3), rng.uniform(-1, 1)
        gyro, turn = np.degrees(ang_vel), np.degrees([0.0, yaw_rate])
        values = np.concatenate((pos, vel, LEVEL, gyro, goal, vel_sp, acc_sp, turn))
        theirs = firmware.call("brescianini", 4, values)
        now = body(pos, LEVEL, vel, ang_vel)
        rpy, thrust, _ = brescianini.state2attitude(
            now, state_setpoint(goal, vel_sp, acc_sp), {}, 0.01, of_state
        )
        rates = components((0.0, 0.0, yaw_rate))
        _, torque, _ = brescianini.attitude2force_torque(
            now, (rpy, rates, thrust), {}, 0.002, of_attitude
        )
        ours = np.array([thrust, *array(torque)])
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-7)
    assert reduced > 50


def test_power_distribution(firmware: Firmware) -> None:
    params = mellinger.load_params("force_torque", DRONE)
    figures, least = load_drone(DRONE), 7000.0
    newton = figures["thrust_max"] / 65535
    levers = np.array([2 * figures["L"], 2 * figures["L"], 4 * float(params["thrust2torque"])])
    rng, n_capped = np.random.default_rng(3), 0
    for _ in range(500):
        thrust, *turns = rng.uniform((0, *[-32000] * 3), (65535, *[32000] * 3)).round().tolist()
        found = firmware.call("distribute", 4, [thrust, *turns])
        turns = np.array(turns) * [1, -1, -1]  # its signs of pitch and yaw differ from ours
        speeds = mellinger.force_torque2rotor_vel(
            jnp.asarray(4 * thrust * newton),
            components(turns * levers * newton),
            params,
            PowerDistribution.capped,
        )
        ours = np.polynomial.polynomial.polyval(array(speeds), figures["rpm2thrust"]) / newton
        wanted = thrust + turns @ MIXING
        stops = wanted < least  # in the firmware, by the compensation of the battery's voltage
        np.testing.assert_allclose(ours[~stops], found[~stops], atol=2 * PWM)
        assert not ours[stops].any()
        n_capped += wanted.max() > 65535
    assert 100 < n_capped < 400


@pytest.mark.parametrize("error", [0.8, -1.5, 2.5])
def test_a_turn_on_the_floor_costs_the_thrust_in_the_firmware_too(
    firmware: Firmware, error: float
) -> None:
    """So drones behind a door keep the attitude that they have until they have lifted off."""
    figures = load_drone(DRONE)
    weight = figures["mass"] * 9.81 / (figures["thrust_max"] / 65535)  # of all rotors together

    def lift(yaw: float, goal: tuple[float, ...]) -> float:
        """Thrust of all rotors after a second at rest on the floor, told to have heading 0."""
        quat = Rotation.from_euler("z", yaw).as_quat()
        still, modes = np.zeros(3), [float(mode) for mode in SETPOINTS["state"]]
        values = np.concatenate((
            still, still, quat, np.degrees([yaw, 0, 0, 0]), modes, goal, still, [0, 0],
            [0.0, 0.0, 0.0, ABSOLUTE],
        ))  # fmt: skip
        firmware.start_mellinger()
        for _ in range(500):
            wanted = firmware.call("runMellinger", 4, values)
        return float(firmware.call("distribute", 4, wanted.tolist()).sum())

    assert lift(error, (0.5, 0.3, 1.0)) < weight < lift(0.0, (0.0, 0.0, 1.0))
