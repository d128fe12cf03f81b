"""Mellinger's controller as functions of arrays of NumPy, torch and JAX."""

from crazyflow_ros.compat import control
from crazyflow_ros.compat.crazyflow.functions import with_parameters

__all__ = [
    "attitude2force_torque",
    "body_rate2force_torque",
    "force_torque2rotor_vel",
    "state2attitude",
]

_MODULE = "crazyflow_ros.compat.crazyflow.control.mellinger"
_ATTITUDE = (
    *("kR", "kw", "ki_m", "kd_omega", "int_err_max", "torque_pwm_max", "thrust_max", "pwm_min"),
    *("pwm_max", "L", "thrust2torque", "mixing_matrix"),
)

state2attitude = with_parameters(
    control.state2attitude,
    _MODULE,
    (
        *("mass", "kp", "kd", "ki", "gravity_vec", "mass_thrust"),
        *("int_err_max", "thrust_max", "pwm_max"),
    ),
)
attitude2force_torque = with_parameters(control.attitude2force_torque, _MODULE, _ATTITUDE)
body_rate2force_torque = with_parameters(control.body_rate2force_torque, _MODULE, _ATTITUDE)
force_torque2rotor_vel = with_parameters(
    control.force_torque2rotor_vel,
    _MODULE,
    ["thrust_min", "thrust_max", "L", "rpm2thrust", "thrust2torque", "mixing_matrix"],
    idle_thrust=0.0,
)
