"""The models as expressions of CasADi, which is imported where they are made."""

from __future__ import annotations

from typing import Any

import numpy as np

from crazyflow_ros.compat.crazyflow.dynamics.core import Dynamics
from crazyflow_ros.compat.crazyflow.dynamics.model import PARAMETERS, further
from crazyflow_ros.compat.crazyflow.functions import figure, with_parameters
from crazyflow_ros.dynamics.components import Wrench

_PUSHES = ("dist_f", "dist_t")


def symbolic_of(model: Dynamics, module: str, euler: bool = False) -> Any:
    """Return the function `symbolic_dynamics` of a model, or with `euler` `..._euler`.

    It returns expressions of CasADi: the derivative of the state, the state, the input and the
    output (position and attitude), see `symbols`. An external force [N] and torque [N m] are at the
    end of the state, without derivatives.
    """

    def symbolic_dynamics(
        model_rotor_vel: bool = True,
        model_dist_f: bool = False,
        model_dist_t: bool = False,
        **params: Any,
    ) -> tuple[Any, Any, Any, Any]:
        import casadi as cs

        from crazyflow_ros.compat.casadi import Figures, rpy_state_rates, state_rates
        from crazyflow_ros.compat.crazyflow.dynamics import symbols

        def parts(name: str) -> tuple[Any, ...]:
            return tuple(cs.vertsplit(getattr(symbols, name)))

        # Only an external torque needs the inertia.
        figures = {"J": np.eye(3), "J_inv": np.eye(3)} | params | further(model)
        fields: Any = {name: Figures(figure(name, np.asarray(x))) for name, x in figures.items()}
        kind = model.params(**fields)
        turn, turning = ("rpy", "drpy") if euler else ("quat", "ang_vel")
        names = ["pos", turn, "vel", turning, *(["rotor_vel"] if model_rotor_vel else [])]
        pushes = dict(zip(_PUSHES, (model_dist_f, model_dist_t)))
        push = Wrench(*(parts(k) if given else (cs.MX(0),) * 3 for k, given in pushes.items()))
        u = symbols.cmd_rotor_vel if model.has_rotors else symbols.cmd_rpyt
        command: Any = tuple(cs.vertsplit(u))
        state: Any = {name: parts(name) for name in (*names, "drpy", "rotor_vel")}
        state["rpy_rate"] = state["drpy"]
        rotor_vel = state["rotor_vel"] if model_rotor_vel else kind.settled_rotors(command)
        rates = (rpy_state_rates if euler else state_rates)(kind, state, rotor_vel, command, push)
        rates["drpy"] = rates.get("rpy_rate")
        x_dot = cs.vertcat(*(rate for name in names for rate in rates[name]))
        x = [*names, *(name for name, given in pushes.items() if given)]
        output = cs.vertcat(symbols.pos, getattr(symbols, turn))
        return x_dot, cs.vertcat(*(getattr(symbols, name) for name in x)), u, output

    names: Any = PARAMETERS[model]
    fixed: dict[str, Any] = {"model_dist_f": False, "model_dist_t": False} if euler else {}
    if model is Dynamics.so_rpy:
        fixed["model_rotor_vel"] = False
        names = [name for name in names if not (euler and name in ("J", "J_inv"))]
    made: Any = with_parameters(symbolic_dynamics, module, names, **fixed)
    made.__name__ = made.__qualname__ = "symbolic_dynamics" + "_euler" * euler
    return made
