"""The Mellinger controller as functions of arrays of NumPy, torch and JAX, as in Crazyflow 0.4.

Each function takes its parameters as keyword arguments; `compat.dynamics.parametrize` sets those of
a drone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from crazyflow_ros.compat.dynamics import parts
from crazyflow_ros.control import mellinger
from crazyflow_ros.control.commands import check_size
from crazyflow_ros.control.memory import INTEGRAL, RATES
from crazyflow_ros.control.modes import Control
from crazyflow_ros.dynamics.components import BodyState, sin_cos, split, stack
from crazyflow_ros.elementwise import like, zeros_like

__all__ = [
    "attitude2force_torque",
    "body_rate2force_torque",
    "force_torque2rotor_vel",
    "state2attitude",
]


def _of(stage: str) -> Callable[[Any], Any]:
    """Give a function the parameters of a stage of the controller, for `parametrize`."""

    def with_figures(function: Any) -> Any:
        function.figures = partial(mellinger.load_figures, stage)
        return function

    return with_figures


@_of("state")
def state2attitude(
    pos: Any,
    quat: Any,
    vel: Any,
    cmd: Any,
    pos_err_i: Any = None,
    ctrl_freq: float = 100,
    **params: Any,
) -> tuple[Any, Any]:
    """Run the position controller.

    Args:
        pos: (..., 3) m, world frame.
        quat: (..., 4) xyzw.
        vel: (..., 3) m/s, world frame.
        cmd: (..., 16) or (..., 13) state command, see `Control.state`.
        pos_err_i: (..., 3) m s, integral of the position error; None: 0.
        ctrl_freq: Rate of the controller, Hz.
        **params: Those of `mellinger.load_figures("state", ...)`.

    Returns:
        (..., 4) roll, pitch, yaw [rad] and collective thrust [N]; the new `pos_err_i`.

    Raises:
        ValueError: The last axis of an array has another length.
    """
    check_size(Control.state, cmd)
    if cmd.shape[-1] == 16:
        attitude = split(cmd[..., 9:13])
    else:
        sine, cosine = sin_cos(cmd[..., 9] / 2)
        attitude = (zeros_like(sine), zeros_like(sine), sine, cosine)
    still = (zeros_like(pos[..., 0]),) * 4
    body = BodyState(
        parts("pos", pos, 3), parts("quat", quat, 4), parts("vel", vel, 3), still[:3], still
    )
    rpy, thrust, memory = mellinger.state2attitude(
        body,
        (split(cmd[..., :3]), split(cmd[..., 3:6]), split(cmd[..., 6:9]), attitude),  # type: ignore[arg-type]
        {INTEGRAL: _memory("pos_err_i", pos_err_i, pos)},
        1 / ctrl_freq,
        {name: like(value, pos) for name, value in params.items()},
    )
    return stack((*rpy, thrust)), stack(memory[INTEGRAL])


@_of("attitude")
def attitude2force_torque(
    quat: Any,
    ang_vel: Any,
    cmd: Any,
    prev_ang_vel: Any = None,
    r_int_error: Any = None,
    ctrl_freq: float = 500,
    **params: Any,
) -> tuple[Any, Any, Any]:
    """Run the attitude controller.

    Args:
        quat: (..., 4) xyzw.
        ang_vel: (..., 3) rad/s, body frame.
        cmd: (..., 4) roll, pitch, yaw [rad], collective thrust [N].
        prev_ang_vel: (..., 3) rad/s, `ang_vel` of the previous call; None: 0.
        r_int_error: (..., 3) s, integral of the attitude error; None: 0.
        ctrl_freq: Rate of the controller, Hz.
        **params: Those of `mellinger.load_figures("attitude", ...)`.

    Returns:
        (..., 1) collective thrust [N], (..., 3) torque about the body axes [N m], the new
        `r_int_error`.

    Raises:
        ValueError: The last axis of an array has another length.
    """
    *rpy, thrust = parts("cmd", cmd, 4)
    still = (zeros_like(thrust),) * 3
    setpoint = (tuple(rpy), still, thrust)
    return _force_torque(
        quat, ang_vel, setpoint, still, prev_ang_vel, r_int_error, ctrl_freq, params
    )


@_of("attitude")
def body_rate2force_torque(
    quat: Any,
    ang_vel: Any,
    cmd: Any,
    prev_ang_vel: Any = None,
    prev_cmd: Any = None,
    r_int_error: Any = None,
    ctrl_freq: float = 500,
    **params: Any,
) -> tuple[Any, Any, Any]:
    """Run the attitude controller with body rates as the command; it also levels the drone.

    Args:
        quat: (..., 4) xyzw.
        ang_vel: (..., 3) rad/s, body frame.
        cmd: (..., 4) body rates [rad/s], collective thrust [N].
        prev_ang_vel: (..., 3) rad/s, `ang_vel` of the previous call; None: 0.
        prev_cmd: (..., 4) `cmd` of the previous call; None: the same as `cmd`.
        r_int_error: (..., 3) s, integral of the attitude error; None: 0.
        ctrl_freq: Rate of the controller, Hz.
        **params: Those of `mellinger.load_figures("attitude", ...)`.

    Returns:
        As for `attitude2force_torque`.

    Raises:
        ValueError: The last axis of an array has another length.
    """
    *rates, thrust = parts("cmd", cmd, 4)
    *before, _ = parts("prev_cmd", cmd if prev_cmd is None else prev_cmd, 4)
    setpoint = (None, tuple(rates), thrust)
    return _force_torque(
        quat, ang_vel, setpoint, before, prev_ang_vel, r_int_error, ctrl_freq, params
    )


@_of("force_torque")
def force_torque2rotor_vel(force: Any, torque: Any, **params: Any) -> Any:
    """Compute rotor speeds for a thrust and torque, each rotor's thrust clipped to its range.

    Args:
        force: (..., 1) collective thrust, N; exactly 0 stops the rotors.
        torque: (..., 3) torque about the body axes, N m.
        **params: Those of `mellinger.load_figures("force_torque", ...)`.

    Returns:
        (..., 4) RPM.

    Raises:
        ValueError: The last axis of an array has another length.
    """
    (thrust,) = parts("force", force, 1)
    figures = {name: like(value, force) for name, value in params.items()}
    return stack(mellinger.force_torque2rotor_vel(thrust, parts("torque", torque, 3), figures))


def _force_torque(
    quat: Any,
    ang_vel: Any,
    setpoint: Any,
    prev_rates: Any,
    prev_ang_vel: Any,
    r_int_error: Any,
    ctrl_freq: float,
    params: dict[str, Any],
) -> tuple[Any, Any, Any]:
    """Run the attitude controller; `prev_rates` are the body rates of the previous setpoint."""
    now = parts("ang_vel", ang_vel, 3)
    still = (zeros_like(now[0]),) * 4
    force, torque, memory = mellinger.attitude2force_torque(
        BodyState(still[:3], parts("quat", quat, 4), still[:3], now, still),
        setpoint,
        {
            "r_int_error": _memory("r_int_error", r_int_error, ang_vel),
            "prev_ang_vel": _memory("prev_ang_vel", prev_ang_vel, ang_vel),
            RATES: tuple(prev_rates),
        },
        1 / ctrl_freq,
        {name: like(value, quat) for name, value in params.items()},
    )
    return force[..., None], stack(torque), stack(memory["r_int_error"])


def _memory(name: str, array: Any, like_this: Any) -> Any:
    return parts(name, zeros_like(like_this) if array is None else array, 3)
