"""Digests of flights, to show that a change keeps every bit.

    python test/bits.py ["node cf2x_L250"]... > after.txt

Arguments are parts of the names of flights, all without. Run it in this checkout, and its own copy
in one of the commit before with PYTHONPATH naming that checkout, and compare the two lists.

Each line is the digest of a flight of 1,000 ticks: of `Sim` with each dynamics, control mode and
controller, of all quadrotors together and of one alone; of `PhysicsThread` with each drone and
controller, in each control mode, at each level, and with everything that can be switched on. Bits
depend on the machine and on JAX, so a list is good for comparing, not for keeping.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product

import jax
import numpy as np

from crazyflow_ros.control import Control, Controller
from crazyflow_ros.drones import Drone, load_drone, rotors_of
from crazyflow_ros.dynamics import Dynamics
from crazyflow_ros.engine.snapshot import SIZES
from crazyflow_ros.flight import (
    AltitudeHold,
    AttitudeThrust,
    FullState,
    GoTo,
    Hover,
    Land,
    NotifySetpointsStop,
    Pose,
    Raw,
    Setpoint,
    Velocity,
)
from crazyflow_ros.runtime import (
    DoorStatus,
    Level,
    PhysicsThread,
    SimulationConfig,
    Snapshot,
    TimedWrench,
    Wind,
)
from crazyflow_ros.sim import Sim
from crazyflow_ros.sim.cascade import modes_of

TICKS = 1000
EVERY = 5  # ticks between two states that count
T = 600.0  # s, no wait is longer
DRONES = [drone for drone in Drone if not rotors_of(drone).has_tables]
G = 9.81

Flight = Callable[[], str]


def commands(control: Control, weight: np.ndarray, tick: int) -> np.ndarray:
    """Return commands of drones of some weights [N] in any control mode, other ones over time."""
    t, n = tick / 500, len(weight)
    swing, still = np.full(n, np.sin(5 * t)), np.zeros(n)
    if control is Control.state:
        position = [0.3 * swing, 0.2 * t + still, 1 + 0.1 * swing]
        rest = [still, 0.2 + still, *[still] * 4, still + np.sin(t / 2), still + np.cos(t / 2)]
        return np.column_stack([*position, *rest[:2], *[still] * 4, *rest[4:8], *[still] * 3])
    if control is Control.attitude:
        return np.column_stack([0.2 * swing, -0.1 * swing, t + still, weight * (1 + 0.1 * swing)])
    if control is Control.body_rate:
        return np.column_stack([swing, -swing, 1 + still, weight * (1 + 0.1 * swing)])
    if control is Control.force_torque:
        torque = 1e-5 * weight / 0.3
        return np.column_stack([weight, torque * swing, -torque * swing, torque])
    return np.column_stack([15000 + 300 * swing, *[15000 + still] * 3])


def flight_of_sim(dynamics: Dynamics, control: Control, controller: Controller, one: bool) -> str:
    drones = DRONES[:1] if one else DRONES
    sim = Sim(
        n_worlds=2 if one else 1,
        drone=drones,
        dynamics=dynamics,
        control=control,
        controller=controller,
    )
    weight = np.array([load_drone(drone)["mass"] * G for drone in drones])
    told, digest = getattr(sim, f"{control}_control"), hashlib.sha256()
    for tick in range(0, TICKS, EVERY):
        told(np.broadcast_to(now := commands(control, weight, tick), (sim.n_worlds, *now.shape)))
        sim.step(EVERY)
        for leaf in jax.tree.leaves((sim.data.states, sim.data.states_deriv)):
            digest.update(np.ascontiguousarray(leaf))
    return digest.hexdigest()


SCRIPT: dict[int, list[tuple[int, Setpoint | TimedWrench]]] = {
    5: [(0, Pose((0.4, 0.1, 0.6), 0.5)), (1, Hover((0.2, 0.1), 0.3, 0.6))],
    100: [(0, TimedWrench((0, 0.02, 0), (0, 0, 1e-5), 0.1)), (1, AltitudeHold(0.1, -0.05, 0.2))],
    200: [(0, Velocity((0.3, 0, 0.1), 0.4)), (1, AttitudeThrust(0.1, 0.05, 0.1, 1.0))],
    250: [(1, AttitudeThrust(0.2, 0.05, 0.1, 1.0, roll_is_rate=True))],
    300: [
        (0, FullState((0.5, 0, 0.7), (0.2, 0, 0), (0, 0, 0.1), (0, 0, 0, 1))),
        (1, Pose((1, 1, 1), 0)),
    ],
    395: [(0, NotifySetpointsStop(0))],
    400: [(0, GoTo((0.5, 0.0, 0.5), -0.5, relative=True))],
    700: [(0, Land(yaw=1.0)), (1, Velocity((0.0, 0.3, 0.0), 1.0))],
}


class LevelsDoor:
    """Commands at levels, from within the process."""

    name, period = "levels", 5

    def __init__(self, weight: float) -> None:
        self.weight = np.full(2, weight)

    def collect(self, snapshot: Snapshot, command: np.ndarray, level: np.ndarray, _) -> bool:
        tick, turn = snapshot.tick, 1 + snapshot.tick // 125 % 4
        for i, now in enumerate((turn, 1 + turn % 4)):
            mode = {1: Control.rotor_vel, 2: Control.attitude, 3: Control.body_rate}.get(now)
            numbers = [0.5, -0.3, 0.2, 0.1] if mode is None else commands(mode, self.weight, tick)
            command[i] = numbers if mode is None else numbers[i] * (now > 1 or np.pi / 30)
            level[i] = Level(now if tick else 0)
        return True

    def show(self, *_) -> None: ...
    def forget(self, *_) -> None: ...
    def interrupt(self) -> None: ...
    def set_paused(self, *_, **__) -> None: ...
    def close(self) -> None: ...

    def status(self) -> DoorStatus:
        return DoorStatus((), 0, 0, 0)


def digest_of(physics: PhysicsThread, act: Callable[[Snapshot], None] | None) -> str:
    digest = hashlib.sha256()

    def see(now: Snapshot) -> None:
        for name in (*SIZES, "acc", "ang_acc", "contact", "impact", "specific_force"):
            digest.update(np.ascontiguousarray(getattr(now, name)))

    if act is not None:
        physics.every(100, act, "script")
    physics.every(100, see, "observer", observes=True)
    physics.start()
    try:
        physics.step(TICKS).result(T)
    finally:
        physics.stop()
    return digest.hexdigest()


def config_of(drone: str, **changes) -> SimulationConfig:
    air = np.array([[x, 0.0, 0.5, 0.0, 0.0, 0.0, 1.0] for x in (0.0, 1.0)])
    given = {"drone_model": drone, "initial_poses": air, "start_paused": True} | changes
    return SimulationConfig(**given)


def flight_of_node(drone: str, **changes) -> str:
    physics = PhysicsThread(config_of(drone, **changes), ["cf0", "cf1"])
    gusts = [Wind((0.5, 0.1, 0.0), 1.0)] if changes.get("gust_intensity") else []

    def act(now: Snapshot) -> None:
        for i, told in SCRIPT.get(now.tick, []):
            if isinstance(told, TimedWrench):
                physics.apply_wrench(f"cf{i}", told)
                continue
            if isinstance(told, AttitudeThrust):
                rate = told.roll_is_rate and "dynamics" not in changes
                thrust = load_drone(drone)["mass"] * G
                told = AttitudeThrust(told.roll, told.pitch, told.yaw_rate, thrust, rate)
            physics.command(f"cf{i}", told)
        if now.tick == 500 and gusts:  # once: a change calls all callbacks again
            physics.world.disturb(gusts.pop())

    return digest_of(physics, act)


def flight_of_raw(drone: str, control: Control) -> str:
    physics = PhysicsThread(config_of(drone, control=control.value), ["cf0", "cf1"])
    weight = np.full(2, load_drone(drone)["mass"] * G)

    def act(now: Snapshot) -> None:
        for i, row in enumerate(commands(control, weight, now.tick)):
            physics.command(f"cf{i}", Raw(row))

    return digest_of(physics, act)


def flight_at_levels(drone: str) -> str:
    door = LevelsDoor(load_drone(drone)["mass"] * G)
    return digest_of(PhysicsThread(config_of(drone), ["cf0", "cf1"], door), None)


def sim_flights() -> Iterator[tuple[str, Flight]]:
    for dynamics in Dynamics:
        controls = Control if dynamics.has_rotors else (Control.state, Control.attitude)
        for control, controller in product(controls, Controller):
            if control in modes_of(controller, dynamics):
                for one in (True, False):
                    name = f"sim {dynamics} {control} {controller} {'one' if one else 'all'}"
                    yield name, partial(flight_of_sim, dynamics, control, controller, one)


def node_flights() -> Iterator[tuple[str, Flight]]:
    everything = {
        "estimator": "kalman",
        "battery": True,
        "wind": (0.5, 0, 0),
        "gust_intensity": 0.5,
        "ground_effect": True,
        "downwash": True,
        "drone_collisions": True,
        "true_mass": True,
    }
    for drone in Drone:
        for controller in Controller:
            flight = partial(flight_of_node, drone, controller=controller.value)
            yield f"node {drone} {controller}", flight
    for drone in DRONES:
        yield f"node {drone} levels", partial(flight_at_levels, drone)
    drone = DRONES[0]
    for controller in Controller:
        changes = everything | {"controller": controller.value}
        yield f"node {drone} {controller} everything", partial(flight_of_node, drone, **changes)
    for control in Control:
        if control is not Control.state:
            yield f"node {drone} {control}", partial(flight_of_raw, drone, control)
    for dynamics in Dynamics:
        if not dynamics.has_rotors:
            changes = {"dynamics": dynamics.value}
            yield f"node {drone} {dynamics}", partial(flight_of_node, drone, **changes)
    for integrator in ("rk4", "symplectic_euler"):
        yield f"node {drone} {integrator}", partial(flight_of_node, drone, integrator=integrator)


def main(wanted: Sequence[str]) -> None:
    for name, flight in (*sim_flights(), *node_flights()):
        if any(part in name for part in wanted or [name]):
            print(name, flight()[:16], flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
