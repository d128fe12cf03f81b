"""What changed in Crazyflow between the tests of 0.1 and 0.4.0: texts, and their successors.

The last published tests are those of version 0.1 (commit 29a3211); with these changes they are
tests of 0.4.0, too. Texts that do not occur, as in later tests, change nothing.
"""

from __future__ import annotations

import re
from pathlib import Path

HELPERS = '''
import jax
import numpy as np
from crazyflow.dynamics import parametrize as _parametrize
from crazyflow.dynamics.so_rpy import symbolic_dynamics as _symbolic_dynamics
from crazyflow.utils import leaf_replace as _leaf_replace


def state_command(shape, dtype=None):
    """A state command of 0.1 (zeros) in the form of 0.4: a quaternion in place of the yaw."""
    command = np.zeros(shape, dtype)
    command[..., 12] = 1.0
    return command


def symbolic_from_sim(sim):
    return _parametrize(_symbolic_dynamics, sim.drone)()


def randomize_mass(sim, mass, mask=None):
    mass = mass[..., None] if mass.ndim == 2 else mass
    sim.data = sim.data.replace(params=_leaf_replace(sim.data.params, mask, mass=mass))


def randomize_inertia(sim, J, mask=None):
    inverse = jax.device_put(np.linalg.inv(J), sim.device)
    params = _leaf_replace(sim.data.params, mask, J=J, J_inv=inverse)
    sim.data = sim.data.replace(params=params)


def with_params_of_each(sim):
    """Parameters of 0.4 have no axes of worlds and drones until they are given some."""
    params = sim.data.params

    def of_each(name, *shape):
        value = np.broadcast_to(getattr(params, name), (sim.n_worlds, sim.n_drones, *shape))
        return jax.device_put(np.array(value), sim.device)

    both = {"J": of_each("J", 3, 3), "J_inv": of_each("J_inv", 3, 3)}
    sim.data = sim.data.replace(params=params.replace(mass=of_each("mass", 1), **both))
    sim.build_default_data()
    return sim
'''
"""Functions that the tests of 0.1 import from places that 0.4 does not have."""

CHANGES: tuple[tuple[str, str], ...] = (
    # Names.
    (r"from crazyflow\.sim\.physics import Physics", "from crazyflow.dynamics import Dynamics"),
    (r"from crazyflow\.control\.control import", "from crazyflow.control import"),
    (r"\bPhysics\b", "Dynamics"),
    (r"\bphysics\b", "dynamics"),
    (r"\bdrone_model=", "drone="),
    (r"from crazyflow\.sim\.sensors import", "from crazyflow.sim.sensors.depth import"),
    (r"from crazyflow\.sim\.symbolic import", "from adapted import"),
    (r"from crazyflow\.randomize import", "from adapted import"),
    (r"from drone_models\.drones import available_drones", "from crazyflow.drones import Drone"),
    (r'\("model", available_drones\)', '("model", list(Drone))'),
    (r"from drone_models\.core import", "from crazyflow.dynamics import"),
    (r"from drone_models\.transform import", "from crazyflow.control.transform import"),
    (r"from drone_controllers import", "from crazyflow.control import"),
    (r"from drone_controllers\.mellinger import", "from crazyflow.control.mellinger import"),
    (r"quat, vel, None, cmd, \(i_error,\), ctrl_freq", "quat, vel, cmd, i_error, ctrl_freq"),
    # Commands of a state have 16 numbers instead of 13.
    (r"np\.zeros\((\([^()]*), 13\)", r"adapted.state_command(\1, 16)"),
    (r"cmd\[\.\.\., 9\] = np\.pi / 2", 'cmd[..., 9:13] = R.from_euler("z", np.pi / 2).as_quat()'),
    (r", 13\)(?=[,)\n])", ", 16)"),
    # Pipelines are dictionaries. The last stage of 0.1 is the floor.
    (r"sim\.step_pipeline = sim\.step_pipeline\[:-1\]", 'del sim.step_pipeline["clip_floor_pos"]'),
    (
        r"sim\.step_pipeline = sim\.step_pipeline\[:\d\] \+ \(disturbance_fn,\).*",
        'sim.step_pipeline["disturbance"] = disturbance_fn; '
        'sim.step_pipeline.move_to_end("disturbance", last=False)',
    ),
    # Parameters have no axes of worlds and drones.
    (r"params\.mass\[0, 0, 0\]", "params.mass[0]"),
    (r"(    # Modify states\n)", r"    adapted.with_params_of_each(sim)\n\1"),
    (r"(\n    add_on_mass = |\n    J_residual = )", r"\n    adapted.with_params_of_each(sim)\1"),
    (r"params\.mass\.at\[:, :, 0\]", "params.mass.at[..., 0]"),
    # Rates of the body are a control mode, of first_principles only.
    (
        r"\(Control\.force_torque, Control\.rotor_vel\)",
        "(Control.body_rate, Control.force_torque, Control.rotor_vel)",
    ),
    # The default drone of 0.1.
    (
        r"Sim\((n_worlds=n_worlds, n_drones=n_drones, )?dynamics=dynamics, control=Control\.",
        r'Sim(\1drone="cf2x_L250", dynamics=dynamics, control=Control.',
    ),
    # Data have no device, and dictionaries of parameters and plugins.
    (
        r"( +)(elif isinstance\(obj0, \(list, tuple\)\):)",
        r"\1elif isinstance(obj0, dict):\n\1    assert_committed(list(obj0.values()), path)\n\1\2",
    ),
    (r"type\(sim\.data\.core\.device\)", "jax.Device"),
)
"""Regular expressions in the sources of tests and examples, and what replaces them, in order."""

DROPPED = {
    "test_symbolic_from_sim_errors": "0.4 has no symbolic model of a simulation that refuses modes",
}
"""Tests of functions that 0.4.0 does not have."""


def adapt(folder: Path) -> None:
    """Change the sources of tests and examples in a folder, which should be a copy."""
    (folder / "tests" / "adapted.py").write_text(HELPERS)
    for file in folder.rglob("*.py"):
        if file.name == "adapted.py":
            continue
        text = file.read_text()
        for pattern, successor in CHANGES:
            text = re.sub(pattern, successor, text)
        if "adapted." in text:
            text = re.sub(
                r"(\n(?:import|from) (?!__future__))", r"\nimport adapted\1", text, count=1
            )
            text = text if "\nimport adapted" in text else f"import adapted\n{text}"
        file.write_text(text)
