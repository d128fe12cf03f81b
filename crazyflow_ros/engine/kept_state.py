"""All that determines the future of the drones of an engine, as arrays, for checkpoints."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from crazyflow_ros.engine.compiled_world import WEATHER
from crazyflow_ros.engine.engine import Engine
from crazyflow_ros.engine.moving_bodies import MovingBodies
from crazyflow_ros.engine.snapshot import SIZES
from crazyflow_ros.sim.wind import N_FILTERS

OF_BODIES = "bodies/"
"""Beginning of the names of arrays of bodies."""
_KEPT_OF_BODIES = ("state", "initial", "felt")
_NEVER = -1  # tick of loss of a drone that is not lost


def capture(engine: Engine) -> dict[str, np.ndarray]:
    """Return everything that determines the drones' future, in the order of their names."""
    slots = engine.slots_of(engine.names)
    leaves = engine.world.leaves
    own = {
        f"state/{path}": v[:, slots] if engine.world.is_own(path) else v.ravel()
        for path, v in leaves.items()
    }
    initial = {f"initial/{name}": v for name, v in engine.initial.fields(slots).items()}
    calm = np.zeros((1, len(slots), N_FILTERS), engine.command.dtype)  # unless there are gusts
    return {
        f"state/{WEATHER}": calm,
        **own,
        **initial,
        "inputs": engine.all_inputs[slots],
        "initial_inputs": engine.initial.inputs[slots],
        "rotor_angle": engine.output.rotor_angle[slots],
        "rotor_vel": engine.output.rotor_vel[slots],
        "lost": np.array([engine.lost.get(name, _NEVER) for name in engine.names]),
        **captured_bodies(engine.bodies),
    }


def captured_bodies(bodies: MovingBodies | None) -> dict[str, np.ndarray]:
    """Return the part of bodies in the result of `capture`."""
    kept = {} if bodies is None else bodies.captured()
    return {f"{OF_BODIES}{name}": values for name, values in kept.items()}


def restore(engine: Engine, arrays: Mapping[str, np.ndarray]) -> None:
    """Continue from the result of `capture` for the same drones."""
    slots, leaves = engine.slots_of(engine.names), engine.world.leaves
    for path, values in leaves.items():
        if engine.world.is_own(path):
            values[:, slots] = arrays[f"state/{path}"]
        else:
            leaves[path] = arrays[f"state/{path}"].reshape(values.shape)
    engine.initial.set_fields(slots, {name: arrays[f"initial/{name}"] for name in SIZES})
    engine.all_inputs[slots] = arrays["inputs"]
    engine.initial.inputs[slots] = arrays["initial_inputs"]
    engine.output.set_rotors(slots, arrays)
    engine.lost = {n: t for n, t in zip(engine.names, arrays["lost"].tolist()) if t != _NEVER}
    engine.world.leaves = leaves
    engine.set_slots(engine.slots)
    if engine.bodies is not None:
        engine.bodies.restore({name: arrays[OF_BODIES + name] for name in _KEPT_OF_BODIES})
