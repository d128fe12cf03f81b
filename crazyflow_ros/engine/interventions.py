"""Interventions in the drones of an engine: power, estimators, motors, wind, controllers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress

import numpy as np

from crazyflow_ros.control import Control, Controller
from crazyflow_ros.drones import load_battery
from crazyflow_ros.dynamics import RPM, Dynamics
from crazyflow_ros.engine.disturbances import (
    BatteryCharge,
    Disturbance,
    MotorEfficiency,
    Wind,
    check_motor,
)
from crazyflow_ros.engine.engine import Engine
from crazyflow_ros.engine.levels import Level, rows
from crazyflow_ros.engine.snapshot import Fields
from crazyflow_ros.scene.frames import yaw
from crazyflow_ros.sim.cascade import check_controller as check_cascade
from crazyflow_ros.sim.policies import POLICY

_DRAWN = "plugins.battery"  # leaf with the charge drawn from each battery
_BEACONS = "estimate.beacons"  # leaf with the memory for beacons
_MANY = 1_000_000  # external poses, after which their numbers start again


def restart(engine: Engine, name: str, fields: Fields, *, charged: bool) -> None:
    """Reset a drone in a given state, with its rotors at rest, as after its power was off.

    Args:
        engine: The drones.
        name: Name of the drone.
        fields: The state; its estimator begins there.
        charged: Whether its battery is full afterwards; otherwise it keeps its charge.
    """
    slots, leaves = engine.slots_of([name]), engine.world.leaves
    drawn = leaves.get(_DRAWN)
    kept = None if drawn is None or charged else drawn[0, slots].copy()
    engine.reset([name])
    engine.disarm(name)
    engine.put([name], fields)
    if kept is not None:
        engine.set_leaves(name, {_DRAWN: kept})
    if engine.world.leaves.get("estimate.initial") is not None:
        pos, quat = np.asarray(fields["pos"])[0], np.asarray(fields["quat"])[0]
        restart_estimate(engine, name, np.array([*pos, float(yaw(quat))]))


def restart_estimate(engine: Engine, name: str, initial: np.ndarray) -> None:
    """Let the estimator of a drone start again.

    Args:
        engine: The drones.
        name: Name of the drone.
        initial: (4,) initial estimate: position [m] and yaw [rad].
    """
    from crazyflow_ros.estimation import beacons  # which few simulations need
    from crazyflow_ros.estimation.estimate import restarted

    fresh = restarted(initial)
    if (memory := engine.world.numbers.get(_BEACONS)) is not None:
        own = memory[engine.slots[name]]
        own[:] = beacons.restarted(engine.config.positioning, own)
    engine.set_leaves(name, {f"estimate.{field}": value for field, value in fresh.items()})


def set_beacons(engine: Engine, name: str, column: str, values: np.ndarray) -> None:
    """Set what the estimator of a drone knows of beacons, see `estimation.beacons.columns`."""
    from crazyflow_ros.estimation import beacons

    own = beacons.columns(engine.config.positioning)[column]
    engine.world.numbers[_BEACONS][engine.slots[name], own] = values


def set_matter(engine: Engine, names: Sequence[str], matter: np.ndarray) -> None:
    """Set how much of the scene stands between drones and their beacons, (n, K), m."""
    from crazyflow_ros.estimation import beacons

    own = beacons.columns(engine.config.positioning)["matter"]
    engine.world.numbers[_BEACONS][engine.slots_of(names), own] = matter


def tell_pose(engine: Engine, name: str, pose: np.ndarray, std: Sequence[float]) -> None:
    """Let the estimator of a drone use an external pose as a measurement in its next run.

    Args:
        engine: The drones.
        name: Name of the drone.
        pose: (7,) position [m] and attitude (xyzw), zeros if the attitude is unknown.
        std: Standard deviations of position [m] and attitude [rad].
    """
    number = engine.world.leaves["estimate.external"][0, engine.slots[name], -1] + 1
    engine.set_leaves(name, {"estimate.external": [*pose, *std, number % _MANY]})


def withdraw(engine: Engine, name: str, tick: int) -> None:
    """Take a drone out of service: hold it where it is with stopped rotors, until a reset."""
    engine.lost |= {name: tick}
    engine.set_slots(engine.slots)
    engine.put([name], {"rotor_vel": np.zeros((1, engine.world.form.n_rotors))})


def lead(engine: Engine, name: str, fields: Fields) -> None:
    """Put a drone where others say it is, and hold it there until they say otherwise.

    Args:
        engine: The drones.
        name: Name of the drone.
        fields: Its whole state, except for the angles of its rotors.
    """
    is_new = name not in engine.led
    engine.led.lead(name, fields)
    if is_new:
        engine.set_slots(engine.slots)
    engine.put([name], fields)


def policy_failed(engine: Engine, name: str) -> bool:
    """Return whether a policy flew the drone, and its output was not a number."""
    memory = engine.world.leaves.get(f"plugins.{POLICY}")
    return memory is not None and not np.isfinite(memory[0, engine.slots[name]]).all()


def disturb(engine: Engine, disturbance: Disturbance) -> None:
    """Apply a disturbance.

    Raises:
        ValueError: The disturbance has no effect on these drones.
    """
    match disturbance:
        case Wind():
            engine.blow(disturbance)
        case MotorEfficiency(drone, motor, efficiency):
            if not engine.world.has_rotors:
                dynamics = engine.config.dynamics
                raise ValueError(f"dynamics {dynamics} have no motors, first_principles do")
            check_motor(motor, engine.world.form.n_rotors)
            engine.motor_loss[engine.slots[drone], motor] = 1 - np.sqrt(efficiency)
        case BatteryCharge(drone, charge):
            if not engine.config.battery:
                raise ValueError("the drones have no batteries; start with battery=true")
            drawn = (1 - charge) * load_battery(engine.config.drone_model)["capacity"]
            engine.set_leaves(drone, {_DRAWN: drawn})


def check_controller(engine: Engine, controller: Controller) -> None:
    """Check that commands pass through a controller.

    Raises:
        ValueError: This control mode or these dynamics bypass it, or a policy flies the
            drones.
    """
    if engine.config.policy:
        raise ValueError("a policy flies the drones in place of the controllers")
    check_cascade(controller, engine.control, Dynamics(engine.config.dynamics))


def rotors_obey(engine: Engine) -> bool:
    """Return whether the commands of drones are rotor speeds, and none come from a door."""
    return engine.control is Control.rotor_vel and not engine.by_door


def command_rotors(engine: Engine, names: Sequence[str], speeds: np.ndarray) -> np.ndarray:
    """Command rotor speeds [rad/s], (n, r), where they are new, if `rotors_obey`.

    A drone without a command gets none if its rotors are to stand still.

    Returns:
        (n,) bool: whether the speeds were new.
    """
    if not rotors_obey(engine):
        return np.zeros(len(names), bool)
    slots = engine.slots_of(names)
    present = np.where(engine.level[slots, None] > Level.held, engine.command[slots], 0)
    new = (speeds / RPM).astype(present.dtype)
    is_new: np.ndarray = (new != present).any(axis=1)
    engine.set_commands(list(compress(names, is_new)), rows(Level.rotor_vel, new[is_new]))
    return is_new
