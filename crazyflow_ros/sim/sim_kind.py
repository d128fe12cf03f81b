"""The functions that simulations of one kind share, so that only the first one compiles them.

Forces and stages of users may close over values that change, so nobody can tell whether two of them
compute the same. Simulations therefore share pipelines without such stages, and only with forces
that declare that they depend on nothing else, as the package's own do.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import NamedTuple

from crazyflow_ros.control import Control
from crazyflow_ros.dynamics import Dynamics
from crazyflow_ros.dynamics.forces.external import External
from crazyflow_ros.sim import motion, stages
from crazyflow_ros.sim.compile.programs import Stepping
from crazyflow_ros.sim.compile.stepping import (
    Derivative,
    StepFn,
    compiled_derivative,
    deriving,
    step_fn,
    tick_of,
)
from crazyflow_ros.sim.compile.ticks import Ending
from crazyflow_ros.sim.data import SimData, SimStateDeriv, check_precision
from crazyflow_ros.sim.integrator import Integrator
from crazyflow_ros.sim.randomize import ResetStage
from crazyflow_ros.sim.reset import ResetFn, reset_fn
from crazyflow_ros.sim.stages import Stage, control_stages
from crazyflow_ros.sim.worlds import Worlds

_MOST = 16  # kinds of simulations whose functions stay compiled

_common_derivative = lru_cache(_MOST)(compiled_derivative)
_common_step_fn = lru_cache(_MOST)(step_fn)
_common_reset_fn = lru_cache(_MOST)(reset_fn)


class SimKind(NamedTuple):
    """What the simulations of a kind run."""

    pipeline: tuple[Stage, ...]
    """The stages of a tick."""
    stepping: Stepping
    """The program of these stages."""
    rate: Derivative
    """Evaluates the time derivative of `data.states` under the commands in force."""
    ending: Ending
    """Ending of a step that evaluates `rate`."""
    is_shared: bool
    """Whether simulations share what is compiled."""

    def compiled_rate(self, worlds: Worlds) -> Derivative:
        """Return the compiled `rate`."""
        return (_common_derivative if self.is_shared else compiled_derivative)(self.rate, worlds)

    def step_fn(self, stepping: Stepping, last: Ending | None, worlds: Worlds) -> StepFn:
        """Return the ticks of a program, and an ending, as a pure function."""
        own = last is None or last is self.ending
        make = _common_step_fn if stepping.is_shared and own else step_fn
        return make(stepping.tick, last, worlds)

    def reset_fn(
        self, pipeline: tuple[ResetStage, ...], with_rate: bool, worlds: Worlds
    ) -> ResetFn:
        """Return a reset as a pure function; see `reset.reset_fn`."""
        common = not pipeline and (self.is_shared or not with_rate)
        make = _common_reset_fn if common else reset_fn
        return make(pipeline, self.rate if with_rate else None, worlds)


def kind_of(
    dynamics: Dynamics,
    control: Control,
    integrator: Integrator,
    forces: tuple[External, ...],
    estimated: bool,
    clipped: bool,
) -> SimKind:
    """Return a kind of simulations.

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
    shared = all(getattr(force, "is_shared", False) for force in forces)
    make = _common_kind if shared else _kind
    return make(dynamics, control, integrator, forces, estimated, clipped)


def _kind(
    dynamics: Dynamics,
    control: Control,
    integrator: Integrator,
    forces: tuple[External, ...],
    estimated: bool,
    clipped: bool,
    is_shared: bool = False,
) -> SimKind:
    pipeline = (
        *([stages.estimate_state] if estimated else []),
        *control_stages(dynamics, control),
        motion.integration(integrator, forces),
        stages.increment_steps,
        *([stages.clip_floor_pos] if clipped else []),
    )
    stepping = Stepping(tick_of(pipeline), is_shared=is_shared)
    rate, ending = (_common_rate if is_shared else _rate)(forces)
    return SimKind(pipeline, stepping, rate, ending, is_shared)


_common_kind = lru_cache(_MOST)(partial(_kind, is_shared=True))


def _rate(forces: tuple[External, ...]) -> tuple[Derivative, Ending]:
    rate = partial(_derivative, forces=forces)
    return rate, deriving(rate)


_common_rate = lru_cache(_MOST)(_rate)


def _derivative(data: SimData, forces: tuple[External, ...]) -> SimStateDeriv:
    check_precision(data)
    rate = motion.derivative(data, data.states.components, forces)
    return SimStateDeriv.from_components(rate)
