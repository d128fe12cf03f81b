"""Gains of the controllers that can be changed in flight."""

from __future__ import annotations

from crazyflow_ros.control.modes import Controller

GAINS: dict[Controller, tuple[str, ...]] = {
    Controller.mellinger: (
        *("state.kp", "state.kd", "state.ki", "state.int_err_max"),
        *("state.mass", "state.mass_thrust"),
        *("attitude.kR", "attitude.kw", "attitude.ki_m", "attitude.kd_omega"),
        "attitude.int_err_max",
    ),
    Controller.pid: (
        *("state.kp", "state.ki", "state.vel_max", "state.vel_kp", "state.vel_ki"),
        *("state.thrust_base", "state.thrust_min"),
        *("attitude.kp", "attitude.ki", "attitude.kd"),
        *("attitude.rate_kp", "attitude.rate_ki", "attitude.rate_kd"),
    ),
}
"""Names of parameters by stage, as in `load_params` of the controllers, in SI units."""
