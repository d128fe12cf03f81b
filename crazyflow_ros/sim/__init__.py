"""Batched, differentiable quadrotor simulation in JAX: `Sim`, and stages of its pipelines."""

from typing import TYPE_CHECKING

import jax

from crazyflow_ros.dynamics import Dynamics as Dynamics  # where Crazyflow's programs look for it
from crazyflow_ros.lazy import lazy

if TYPE_CHECKING:
    from crazyflow_ros.sim.actuation import ActionDelay, Battery, MotorFailure, WeakMotors
    from crazyflow_ros.sim.compile.programs import Composed
    from crazyflow_ros.sim.data import SimData
    from crazyflow_ros.sim.hanging import hang_payload
    from crazyflow_ros.sim.identified import randomize_identified
    from crazyflow_ros.sim.integrator import Integrator
    from crazyflow_ros.sim.mjx_bodies import MjxBodies, move_bodies
    from crazyflow_ros.sim.payload import Payload
    from crazyflow_ros.sim.randomization import randomize_delay, randomize_noise, randomizers
    from crazyflow_ros.sim.randomize import (
        randomize_ang_vel,
        randomize_attitude,
        randomize_inertia,
        randomize_mass,
        randomize_param,
        randomize_payload,
        randomize_pos,
        randomize_vel,
    )
    from crazyflow_ros.sim.sim import Sim, sync_sim2mjx, use_box_collision
    from crazyflow_ros.sim.stages import move_obstacles
    from crazyflow_ros.sim.wind import Dryden

__getattr__ = lazy(
    __name__,
    {
        "ActionDelay": "actuation",
        "Battery": "actuation",
        "Composed": "compile.programs",
        "Dryden": "wind",
        "Integrator": "integrator",
        "MjxBodies": "mjx_bodies",
        "MotorFailure": "actuation",
        "Payload": "payload",
        "Sim": "sim",
        "SimData": "data",
        "WeakMotors": "actuation",
        "hang_payload": "hanging",
        "move_bodies": "mjx_bodies",
        "move_obstacles": "stages",
        "randomize_ang_vel": "randomize",
        "randomize_attitude": "randomize",
        "randomize_delay": "randomization",
        "randomize_identified": "identified",
        "randomize_inertia": "randomize",
        "randomize_mass": "randomize",
        "randomize_noise": "randomization",
        "randomize_param": "randomize",
        "randomize_payload": "randomize",
        "randomize_pos": "randomize",
        "randomize_vel": "randomize",
        "randomizers": "randomization",
        "sync_sim2mjx": "sim",
        "use_box_collision": "sim",
    },
    {"follow_policy": "crazyflow_ros.policy"},
)

__all__ = [
    "ActionDelay",
    "Battery",
    "Composed",
    "Dryden",
    "Integrator",
    "MjxBodies",
    "MotorFailure",
    "Payload",
    "Sim",
    "SimData",
    "WeakMotors",
    "hang_payload",
    "move_bodies",
    "move_obstacles",
    "randomize_ang_vel",
    "randomize_attitude",
    "randomize_delay",
    "randomize_identified",
    "randomize_inertia",
    "randomize_mass",
    "randomize_noise",
    "randomize_param",
    "randomize_payload",
    "randomize_pos",
    "randomize_vel",
    "randomizers",
    "sync_sim2mjx",
    "use_box_collision",
]

# On a CPU, computing few worlds takes less time than handing the work to another thread.
jax.config.update("jax_cpu_enable_async_dispatch", False)

MODULES = (
    "actuation",
    "arguments",
    "compile",
    "controls",
    "data",
    "functional",
    "hanging",
    "integration",
    "integrator",
    "leaves",
    "motion",
    "pipeline",
    "policies",
    "randomization",
    "randomize",
    "reset",
    "sim",
    "stages",
    "visualize",
    "worlds",
)
"""Modules that extensions may import, with all their public names."""
