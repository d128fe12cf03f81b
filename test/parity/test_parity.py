"""The same flights in Crazyflow 0.4.0 and here, in double precision.

Flights avoid what Crazyflow's known mistakes would change: rotor commands stay above the slowest
speed (it cannot stop a rotor), controller rates divide the physics rate, quaternions are not zero,
fitted models get attitude commands at the physics rate (it ignores `attitude_freq` there) and keep
away from pitch 90 degrees (where its angles are not defined).
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, product
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from multirotors import QUADROTORS
from scipy.spatial.transform import Rotation

from crazyflow_ros.control import Control
from crazyflow_ros.drones import Drone, load_drone
from crazyflow_ros.dynamics import Dynamics
from crazyflow_ros.sim import Integrator, Sim

IS_SOAK = "CRAZYFLOW_ROS_SOAK" in os.environ  # then all combinations are flown
N, M = 8, 2
FIRST_TICK, TOLERANCE = 1e-10, 1e-8
TIMEOUT = 1200.0  # s
QUANTITIES = ("pos", "quat", "vel", "ang_vel", "rotor_vel")
SCALES = {"pos": 1.0, "quat": 1.0, "vel": 1.0, "ang_vel": 1.0, "rotor_vel": 1e3}
TICKS = (1, 4, 45, *[50] * 9, 500)  # one tick, then 2 s in all, with a new command each time
FITTED = [Dynamics.so_rpy, Dynamics.so_rpy_rotor, Dynamics.so_rpy_rotor_drag]

Arrays = dict[str, np.ndarray]


@dataclass
class Case:
    """One flight of N x M drones."""

    name: str
    drone: str = Drone.cf2x_L250
    dynamics: str = Dynamics.first_principles
    integrator: str = Integrator.euler
    control: str = Control.attitude
    rates: dict[str, int] = field(default_factory=dict)
    ticks: tuple[int, ...] = TICKS
    reset_before: int = -1
    """Index of the command before which half of the worlds are reset."""
    tolerances: dict[str, float] = field(default_factory=dict)
    """Where it is not TOLERANCE."""
    initial: Arrays = field(default_factory=dict)
    """Replaces what is drawn at random."""
    commands: np.ndarray | None = None

    def config(self) -> str:
        """What the script in Crazyflow's environment needs to know."""
        names = ("drone", "dynamics", "integrator", "control", "rates", "ticks", "reset_before")
        return json.dumps({k: getattr(self, k) for k in names} | {"n_worlds": N, "n_drones": M})

    def arrays(self) -> Arrays:
        """Initial state, wrench, commands, reset mask."""
        rng = np.random.default_rng(sum(self.name.encode()))
        state = random_state(rng, self.drone)
        if self.dynamics in FITTED:
            state |= fitted_state(rng, self.drone)
        state |= self.initial
        commands = self.commands
        if commands is None:
            draw = lambda: random_command(rng, self.control, self.drone, state["pos"])  # noqa: E731
            commands = np.stack([draw() for _ in self.ticks])
            if self.dynamics in FITTED and self.control == Control.state:
                commands[..., :3] += 0.8 * (state["pos"] - commands[..., :3])  # nothing abrupt
        return state | {"commands": commands, "reset_mask": np.arange(N) % 2 == 1}


def random_state(rng: np.random.Generator, drone: str) -> Arrays:
    """Any attitude, brisk motion, high above the floor; a wrench on every other world."""
    figures = load_drone(drone)
    hover = hover_speed(drone)
    quat = rng.normal(size=(N, M, 4))
    pushed = (np.arange(N) % 2 == 0)[:, None, None]
    weight, lever = figures["mass"] * 9.81, figures["L"]
    return {
        "pos": rng.uniform((-3, -3, 17), (3, 3, 23), (N, M, 3)),
        "quat": quat / np.linalg.norm(quat, axis=-1, keepdims=True),
        "vel": rng.normal(0, 2, (N, M, 3)),
        "ang_vel": rng.normal(0, 3, (N, M, 3)),
        "rotor_vel": hover * rng.uniform(0.7, 1.1, (N, M, 4)),
        "force": pushed * rng.normal(0, 0.1 * weight, (N, M, 3)),
        "torque": pushed * rng.normal(0, 1e-3 * weight * lever, (N, M, 3)),
    }


def fitted_state(rng: np.random.Generator, drone: str) -> Arrays:
    """Moderate tilts and rates; thrust where rotor speeds are."""
    angles = rng.uniform(-0.7, 0.7, (N * M, 3)) * np.array([1, 1, 3])
    weight = load_drone(drone)["mass"] * 9.81
    return {
        "quat": Rotation.from_euler("xyz", angles).as_quat().reshape(N, M, 4),
        "vel": rng.normal(0, 0.4, (N, M, 3)),
        "ang_vel": rng.normal(0, 1, (N, M, 3)),
        "rotor_vel": weight * rng.uniform(0.8, 1.2, (N, M, 4)),
    }


def random_command(
    rng: np.random.Generator, control: str, drone: str, pos: np.ndarray
) -> np.ndarray:
    """A command that keeps all rotors turning."""
    figures = load_drone(drone)
    thrust = figures["mass"] * 9.81 * rng.uniform(0.8, 1.2, (N, M, 1))
    match control:
        case Control.state:
            near = pos + rng.uniform(-1, 1, (N, M, 3))
            vel, acc = rng.normal(0, 0.5, (N, M, 3)), rng.normal(0, 1, (N, M, 3))
            quat, rates = rng.normal(0, 1, (N, M, 4)), rng.normal(0, 1, (N, M, 3))
            return np.concatenate([near, vel, acc, quat, rates], axis=-1)
        case Control.attitude:
            tilt, yaw = rng.uniform(-0.5, 0.5, (N, M, 2)), rng.uniform(-3, 3, (N, M, 1))
            return np.concatenate([tilt, yaw, thrust], axis=-1)
        case Control.body_rate:
            return np.concatenate([rng.normal(0, 2, (N, M, 3)), thrust], axis=-1)
        case Control.force_torque:
            torque = rng.normal(0, 0.01 * figures["thrust_max"] * figures["L"], (N, M, 3))
            return np.concatenate([thrust, torque], axis=-1)
    return hover_speed(drone) * rng.uniform(0.9, 1.1, (N, M, 4))


def hover_speed(drone: str) -> float:
    """Rotor speed that carries the drone's weight, RPM."""
    figures = load_drone(drone)
    k0, k1, k2 = figures["rpm2thrust"]
    share = figures["mass"] * 9.81 / 4
    return float((-k1 + np.sqrt(k1**2 - 4 * k2 * (k0 - share))) / (2 * k2))


def low_fall() -> Arrays:
    """Just above the floor, downwards: all drones reach it, some leave it again."""
    rng = np.random.default_rng(5)
    pos = np.concatenate([rng.normal(size=(N, M, 2)), rng.uniform(0.02, 0.3, (N, M, 1))], -1)
    vel = np.concatenate([rng.normal(size=(N, M, 2)), rng.uniform(-2, -1, (N, M, 1))], -1)
    return {"pos": pos, "vel": vel, "quat": np.tile([0.0, 0, 0, 1], (N, M, 1))}


def without_rotation() -> Arrays:
    """Tilted drones that do not turn, and that nothing turns."""
    zero = np.zeros((N, M, 3))
    speed = np.broadcast_to(hover_speed(Drone.cf21B_500) * np.linspace(0.8, 1, N), (M, 4, N))
    return {"ang_vel": zero, "torque": zero, "rotor_vel": np.moveaxis(speed, -1, 0).copy()}


def level() -> Arrays:
    """Level drones that head east and do not turn."""
    zero = np.zeros((N, M, 3))
    return {"ang_vel": zero, "torque": zero, "quat": np.tile([0.0, 0, 0, 1], (N, M, 1))}


def thrust_commands() -> np.ndarray:
    """Stay level and head east, with various thrust."""
    weight = load_drone(Drone.cf21B_500)["mass"] * 9.81
    factors = np.random.default_rng(8).uniform(0.8, 1.2, (len(TICKS), N, M, 1))
    return weight * factors * np.array([0.0, 0, 0, 1])


def equal_rotor_commands() -> np.ndarray:
    """The same speed for all rotors of a drone."""
    factors = np.random.default_rng(8).uniform(0.9, 1.1, (len(TICKS), N, M, 1))
    return hover_speed(Drone.cf21B_500) * factors * np.ones(4)


SLOW = {
    Control.state: {"state_freq": 50, "attitude_freq": 250, "force_torque_freq": 250},
    Control.attitude: {"attitude_freq": 100, "force_torque_freq": 500},
    Control.body_rate: {"body_rate_freq": 125, "force_torque_freq": 500},
    Control.force_torque: {"freq": 1000, "force_torque_freq": 50},
}
INTEGRATORS = (Integrator.euler, Integrator.symplectic_euler)  # rk4 is at the end of CASES
FITTED_CONTROLS = (Control.state, Control.attitude)


def combinations() -> Iterator[Case]:
    """All drones with all that they can fly with.

    A quick run takes a half or a quarter of them, in which every drone still meets all dynamics,
    all controls and all integrators, and these meet one another.
    """
    with_rotors = ("cf2x_L250", "cf21B_500", "cf2x_P250", "cf2x_T350")
    each = map(enumerate, (with_rotors, INTEGRATORS, Control))
    for (i, drone), (j, integrator), (k, control) in product(*each):
        if IS_SOAK or (i + j + k) % 2 == 0:
            name = f"{drone} {control} {integrator}"
            yield Case(name, drone, integrator=integrator, control=control)
    each = map(enumerate, (QUADROTORS, FITTED, INTEGRATORS, FITTED_CONTROLS))
    for (i, drone), (j, dynamics), (k, integrator), (m, control) in product(*each):
        if IS_SOAK or ((i + j + k) % 2 == 0 and k == m):
            name = f"{drone} {dynamics} {control} {integrator}"
            yield Case(name, drone, dynamics, integrator, control)


CASES = [
    *combinations(),
    *(Case(f"slower {control}", control=str(control), rates=r) for control, r in SLOW.items()),
    Case("floor", Drone.cf21B_500, initial=low_fall(), control=Control.state),
    Case("masked reset", control=Control.state, reset_before=6),
    # Crazyflow's rk4 is of order 2 in attitude, ours of order 4. What does not depend on the
    # attitude is the same; the rest differs by the errors of the lower order.
    Case(
        "tumbling rk4",
        Drone.cf21B_500,
        Dynamics.first_principles,
        Integrator.rk4,
        Control.rotor_vel,
        initial={"torque": np.zeros((N, M, 3))},
        tolerances={"quat": 1e-3, "vel": 1e-3, "pos": 1e-4},
    ),
    Case(
        "not turning rk4",
        Drone.cf21B_500,
        Dynamics.first_principles,
        Integrator.rk4,
        Control.rotor_vel,
        initial=without_rotation(),
        commands=equal_rotor_commands(),
    ),
    *(
        Case(
            f"level {dynamics} rk4",
            Drone.cf21B_500,
            dynamics,
            Integrator.rk4,
            initial=level(),
            commands=thrust_commands(),
        )
        for dynamics in FITTED
    ),
]


def fly(case: Case) -> Arrays:
    """The states after each command."""
    sim = Sim(
        N,
        M,
        drone=case.drone,
        dynamics=case.dynamics,
        control=case.control,
        integrator=case.integrator,
        **case.rates,  # type: ignore[arg-type]
    )
    arrays = case.arrays()
    states = {k: v for k, v in arrays.items() if k in (*QUANTITIES, "force", "torque")}
    states = jax.tree.map(jax.numpy.asarray, states)
    sim.data = sim.data.replace(states=sim.data.states.replace(**states))
    history: dict[str, list[np.ndarray]] = {name: [] for name in QUANTITIES}
    for i, (command, ticks) in enumerate(zip(arrays["commands"], case.ticks)):
        if i == case.reset_before:
            sim.reset(arrays["reset_mask"])
        getattr(sim, f"{case.control}_control")(command)
        sim.step(ticks)
        for name in QUANTITIES:
            history[name].append(np.asarray(getattr(sim.data.states, name)))
    return {name: np.stack(values) for name, values in history.items()}


@pytest.fixture(scope="module")
def flights(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Arrays], Any]:
    """All flights here, and those in Crazyflow: they run at the same time."""
    python = os.environ.get("CRAZYFLOW_PYTHON", "")
    if not python:
        pytest.skip("CRAZYFLOW_PYTHON names no Python that has crazyflow==0.4.0 (make parity does)")
    if not Path(python).exists():
        pytest.skip(f"there is no {python}: CRAZYFLOW_PYTHON has to have crazyflow==0.4.0")
    folder = tmp_path_factory.mktemp("parity")
    script = Path(__file__).with_name("crazyflow_rollouts.py")
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    processes = []
    for cases, name in zip(halves(), ("one", "other")):
        inputs: dict[str, Any] = {}
        for case in cases:
            inputs[f"{case.name}/config"] = case.config()
            inputs |= {f"{case.name}/{name}": value for name, value in case.arrays().items()}
        files = [folder / f"{name}_{what}.npz" for what in ("inputs", "outputs")]
        np.savez(files[0], **inputs)
        cache = Path(os.environ["XDG_CACHE_HOME"], "crazyflow")
        command = [python, str(script), *map(str, files), str(cache)]
        process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        processes.append((process, files[1]))
    theirs: Arrays = {}
    try:
        with jax.enable_x64(True):
            ours = {case.name: fly(case) for case in CASES}
        for process, outputs in processes:
            _, errors = process.communicate(timeout=TIMEOUT)
            assert process.returncode == 0, errors
            theirs |= np.load(outputs)
    finally:
        for process, _ in processes:
            process.kill()
            process.communicate()
    return ours, theirs


def halves() -> tuple[list[Case], list[Case]]:
    """The cases, those for which Crazyflow compiles the same together."""
    kinds: dict[object, list[Case]] = {}
    for case in CASES:
        kinds.setdefault((case.dynamics, case.control, case.integrator), []).append(case)
    groups = list(kinds.values())
    return list(chain(*groups[::2])), list(chain(*groups[1::2]))


def deviation(ours: np.ndarray, theirs: np.ndarray, scale: float) -> float:
    """Worst distance of two (..., k) arrays of vectors, relative to the vector.

    Vectors shorter than `scale` (SI, RPM) count as that long: nothing is relative to zero.
    """
    length = np.maximum(np.linalg.norm(theirs, axis=-1), scale)
    return float((np.linalg.norm(ours - theirs, axis=-1) / length).max())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_flight(
    case: Case,
    flights: tuple[dict[str, Arrays], Any],
    deviations: dict[str, dict[str, float]],
) -> None:
    ours, theirs = flights[0][case.name], flights[1]
    worst = {}
    for name in QUANTITIES:
        expected = theirs[f"{case.name}/{name}"]
        assert np.isfinite(expected).all()
        assert ours[name].dtype == expected.dtype == np.float64
        assert ours[name].shape == expected.shape
        if name not in case.tolerances:
            assert deviation(ours[name][0], expected[0], SCALES[name]) < FIRST_TICK, name
        worst[name] = deviation(ours[name], expected, SCALES[name])
    deviations[case.name] = worst
    assert all(value < case.tolerances.get(name, TOLERANCE) for name, value in worst.items()), worst
    # A flight in which nothing moves would agree, too.
    assert np.ptp(theirs[f"{case.name}/pos"], axis=0).min() > 1e-3


def test_the_cases_reach_what_they_are_about(flights: tuple[dict[str, Arrays], Any]) -> None:
    _, theirs = flights
    height = theirs["floor/pos"][..., 2]
    assert (height == -0.001).any(axis=0).any() and (height[-1] > 0.01).any()
    at_reset = theirs["masked reset/pos"][6]
    assert (np.abs(at_reset[1::2]) < 2).all() and (at_reset[::2, :, 2] > 5).all()
    turned = theirs["tumbling rk4/ang_vel"]
    assert np.linalg.norm(turned, axis=-1).max() > 10
