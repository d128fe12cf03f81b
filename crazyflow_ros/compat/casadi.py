"""The dynamics models as CasADi expressions, for acados, do-mpc and other optimisers.

Without CasADi, the import raises a `ModuleNotFoundError` that says how to install it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from crazyflow_ros.checks.enum_members import member
from crazyflow_ros.drones import model_name, rotors_of
from crazyflow_ros.dynamics import Dynamics, check_rotors, first_principles, so_rpy
from crazyflow_ros.dynamics.components import (
    BodyState,
    PerRotor,
    Wrench,
    quat_from_rpy,
    quat_rate,
)
from crazyflow_ros.dynamics.rigid_body import RigidBody
from crazyflow_ros.elementwise import zeros_like
from crazyflow_ros.extras import extra

with extra("casadi"):
    import casadi as cs

__all__ = [
    "CasadiModel",
    "Signal",
    "casadi_model",
]


class Signal(NamedTuple):
    """Consecutive elements of a vector."""

    name: str
    size: int
    unit: str


@dataclass(frozen=True)
class CasadiModel:
    """Equations of motion x' = f(x, u, p) of one drone."""

    name: str
    """Dynamics model and drone."""
    states: tuple[Signal, ...]
    """Parts of x."""
    inputs: tuple[Signal, ...]
    """Parts of u."""
    parameters: tuple[Signal, ...]
    """Parts of p, see `wrench` of `casadi_model`."""
    x: Any
    """`casadi.SX` column."""
    u: Any
    """`casadi.SX` column."""
    p: Any
    """`casadi.SX` column, empty without parameters."""
    f_expl: Any
    """Time derivative of x, an expression of x, u and p."""
    f: Any
    """`casadi.Function` of x, u and p."""
    input_limits: np.ndarray
    """(2, k), smallest and largest input; infinite for angles."""
    hover_state: np.ndarray
    """Level and at rest at the origin, where f(hover_state, hover_input) = 0."""
    hover_input: np.ndarray
    """(k,)"""

    def slices(self) -> dict[str, slice]:
        """Return where the parts of x are, by name."""
        ends = np.cumsum([0, *(signal.size for signal in self.states)])
        return {s.name: slice(int(i), int(i) + s.size) for s, i in zip(self.states, ends)}


def casadi_model(
    model: str,
    drone: str,
    *,
    rotors: bool = True,
    wrench: bool = False,
    attitude: str = "quat",
) -> CasadiModel:
    """Return a dynamics model as CasADi expressions.

    They come from the equations that JAX compiles for `Sim`, with the same numbers in double
    precision.

    Args:
        model: A member of `Dynamics`.
        drone: Name of a drone, or path of a drone's folder.
        rotors: Whether rotor speeds (`first_principles`) or thrust (`so_rpy_rotor` and
            `so_rpy_rotor_drag`) are states. Otherwise they follow their commands at once.
        wrench: Whether an external force [N] and torque [N m] on the centre of mass, both in the
            world frame, are parameters; the torque with `attitude="quat"` only.
        attitude: Form of the attitude in x. `quat` is a quaternion (xyzw) of unit norm, with body
            rates; `rpy`, of the so_rpy models only, roll, pitch and yaw with their derivatives, in
            which the attitude is linear and the yaw continues beyond half a turn.

    Returns:
        x consists of pos [m] and vel [m/s] (world frame), the attitude, its rates [rad/s], and
        rotor_vel [RPM] or thrust [N] if they are states. u consists of rotor_vel [RPM], or of rpy
        [rad] and thrust [N].

    Raises:
        ValueError: There is no such model, drone or form, or they do not fit together.
    """
    kind = member(Dynamics, model)
    if attitude not in ("quat", "rpy") or (attitude == "rpy" and kind.has_rotors):
        known = "quat" if kind.has_rotors else "quat or rpy"
        raise ValueError(f"attitude must be {known} with the model {kind}, got {attitude!r}")
    check_rotors(kind, drone)
    figures = kind.params.figures(drone)
    fields: dict[str, Any] = {name: Figures(value) for name, value in figures.items()}
    params = kind.params(**fields)
    states, inputs = _states(params, rotors, attitude), _inputs(params)
    parameters = (Signal("force", 3, "N"), Signal("torque", 3, "N m"))[: 2 - (attitude == "rpy")]
    parameters = parameters if wrench else ()
    state, command, external = (_symbols(signals) for signals in (states, inputs, parameters))
    u: Any = sum(command.values(), ())
    thrust = state.get("thrust", ())
    rotor_vel = state.get("rotor_vel") or thrust * 4 or params.settled_rotors(u)
    nothing = (cs.SX(0),) * 3
    push = Wrench(external.get("force", nothing), external.get("torque", nothing))
    rates = (state_rates if attitude == "quat" else rpy_state_rates)(
        params, state, rotor_vel, u, push
    )
    x, p = (cs.vertcat(*sum(symbols.values(), ())) for symbols in (state, external))
    f_expl = cs.vertcat(*(rate for signal in states for rate in rates[signal.name]))
    numbers = kind.params(**figures)
    limits, hover_input = _limits(numbers, len(u)), _hover_input(numbers, drone)
    hover = {"quat": [0.0, 0, 0, 1], "rotor_vel": hover_input, "thrust": hover_input[3:]}
    return CasadiModel(
        name=f"{kind}_{model_name(drone)}",
        states=states,
        inputs=inputs,
        parameters=parameters,
        x=x,
        u=cs.vertcat(*u),
        p=p,
        f_expl=f_expl,
        f=cs.Function("f", [x, cs.vertcat(*u), p], [f_expl], ["x", "u", "p"], ["f"]),
        input_limits=limits,
        hover_state=np.concatenate([hover.get(s.name, [0.0] * s.size) for s in states]),
        hover_input=hover_input,
    )


def _states(params: RigidBody, rotors: bool, attitude: str) -> tuple[Signal, ...]:
    turn, rate = ("quat", 4), "ang_vel"
    if attitude == "rpy":
        turn, rate = ("rpy", 3), "rpy_rate"
    states = [
        Signal("pos", 3, "m"),
        Signal(*turn, "" if attitude == "quat" else "rad"),
        Signal("vel", 3, "m/s"),
        Signal(rate, 3, "rad/s"),
    ]
    of_rotors = {4: list(_inputs(params)), 1: [Signal("thrust", 1, "N")], 0: []}
    return (*states, *(of_rotors[params.ROTOR_STATES] if rotors else []))


def _inputs(params: RigidBody) -> tuple[Signal, ...]:
    if isinstance(params, first_principles.Params):
        return (Signal("rotor_vel", params.mixing_matrix.shape[-1], "RPM"),)
    return (Signal("rpy", 3, "rad"), Signal("thrust", 1, "N"))


def _symbols(signals: Iterable[Signal]) -> dict[str, tuple[Any, ...]]:
    return {
        name: tuple(cs.SX.sym(f"{name}_{i}" if size > 1 else name) for i in range(size))
        for name, size, _ in signals
    }


def state_rates(
    params: RigidBody, state: dict[str, Any], rotor_vel: PerRotor, command: PerRotor, push: Wrench
) -> dict[str, Any]:
    """Return the time derivatives of the states."""
    fields = {name: state[name] for name in ("pos", "quat", "vel", "ang_vel")}
    body = BodyState(**fields, rotor_vel=rotor_vel)
    rate = params.derivative(body, command, push)
    return {
        "pos": rate.vel,
        "quat": quat_rate(body.quat, body.ang_vel),
        "vel": rate.acc,
        "ang_vel": rate.ang_acc,
        "rotor_vel": rate.rotor_acc,
        "thrust": rate.rotor_acc[:1],
    }


def rpy_state_rates(
    params: RigidBody, state: dict[str, Any], rotor_vel: PerRotor, command: PerRotor, push: Wrench
) -> dict[str, Any]:
    """Return the time derivatives of the states with roll, pitch and yaw among them."""
    rpy, rates = state["rpy"], state["rpy_rate"]
    level = {"quat": quat_from_rpy(rpy), "ang_vel": (zeros_like(rpy[0]),) * 3}
    of_body = state_rates(params, state | level, rotor_vel, command, push)
    assert isinstance(params, so_rpy.Params)
    return of_body | {
        "rpy": rates,
        "rpy_rate": so_rpy.rpy_acceleration(rpy, rates, command, params),
    }


def _limits(params: Any, n_inputs: int) -> np.ndarray:
    if isinstance(params, so_rpy.Params):
        angles = np.outer([-1, 1], [np.inf] * 3)
        return np.column_stack([angles, np.asarray(params.thrust_limits)])
    return np.repeat(np.asarray(params.rotor_vel_limits)[:, None], n_inputs, axis=1)


def _hover_input(params: Any, drone: str) -> np.ndarray:
    thrust = float(params.hover_thrust[0])
    if isinstance(params, so_rpy.Params):
        return np.array([0, 0, 0, thrust])
    return rotors_of(drone).hover_speeds(thrust)


class Figures:
    """An array of parameters whose elements are numbers, not arrays, as CasADi needs them."""

    def __init__(self, values: np.ndarray) -> None:
        self._values = values
        self.shape = values.shape

    def __getitem__(self, index: Any) -> Any:
        part = self._values[index]
        return part.item() if part.ndim == 0 else Figures(part)
