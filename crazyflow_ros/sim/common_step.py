"""What simulations of one kind share, so that only the first one is compiled.

Forces and stages of users may be functions that close over what changes: nobody can tell whether
two are the same. So simulations share what has no such stages, and only forces that say that they
depend on nothing else, as those of the package do.
"""

from __future__ import annotations

from functools import lru_cache, partial

from crazyflow_ros.control import Control
from crazyflow_ros.dynamics import Dynamics
from crazyflow_ros.dynamics.forces.external import External
from crazyflow_ros.sim import motion, stages
from crazyflow_ros.sim.compile.programs import Stepping
from crazyflow_ros.sim.compile.stepping import (
    Derivative,
    compiled_derivative,
    deriving,
    step_fn,
    tick_of,
)
from crazyflow_ros.sim.compile.ticks import Ending
from crazyflow_ros.sim.data import SimData, SimStateDeriv, check_precision
from crazyflow_ros.sim.integrator import Integrator
from crazyflow_ros.sim.reset import reset_fn
from crazyflow_ros.sim.stages import Stage, control_stages

_MOST = 16  # kinds of simulations whose functions stay compiled

common_derivative = lru_cache(_MOST)(compiled_derivative)
common_step_fn = lru_cache(_MOST)(step_fn)
common_reset_fn = lru_cache(_MOST)(reset_fn)


def derivative(data: SimData, forces: tuple[External, ...] = ()) -> SimStateDeriv:
    """Return the time derivative of `data.states` under the commands in force."""
    check_precision(data)
    rate = motion.derivative(data, data.states.components, forces)
    return SimStateDeriv.from_components(rate)


def rate_of(forces: tuple[External, ...]) -> Derivative:
    """Return `derivative` with these forces."""
    return partial(derivative, forces=forces)


common_rate_of = lru_cache(_MOST)(rate_of)


@lru_cache(_MOST)
def common_ending(forces: tuple[External, ...]) -> Ending:
    """Return the ending of a step that evaluates `common_rate_of`."""
    return deriving(common_rate_of(forces))


def are_shared(forces: tuple[External, ...]) -> bool:
    """Return whether simulations with these forces share what is compiled."""
    return all(getattr(force, "is_shared", False) for force in forces)


def step_stages(
    dynamics: Dynamics,
    control: Control,
    integrator: Integrator,
    forces: tuple[External, ...],
    estimated: bool,
    clipped: bool,
) -> tuple[Stage, ...]:
    """Return the stages of a tick.

    Args:
        dynamics: The model.
        control: Meaning of commands.
        integrator: The integrator.
        forces: External forces.
        estimated: Whether the controllers use an estimate of the state.
        clipped: Whether the floor stops drones as Crazyflow's does.

    Raises:
        ValueError: The model does not accept such commands.
    """
    return (
        *([stages.estimate_state] if estimated else []),
        *control_stages(dynamics, control),
        motion.integration(integrator, forces),
        stages.increment_steps,
        *([stages.clip_floor_pos] if clipped else []),
    )


@lru_cache(_MOST)
def common_step(
    dynamics: Dynamics,
    control: Control,
    integrator: Integrator,
    forces: tuple[External, ...],
    estimated: bool,
    clipped: bool,
) -> tuple[tuple[Stage, ...], Stepping]:
    """Return the stages of a tick, and their program.

    Arguments and errors are those of `step_stages`.
    """
    pipeline = step_stages(dynamics, control, integrator, forces, estimated, clipped)
    return pipeline, Stepping(tick_of(pipeline), is_shared=True)
