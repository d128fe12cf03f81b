"""The controllers as functions of arrays, and their parameters."""

from crazyflow_ros.compat.crazyflow.control.core import (
    Control,
    load_fn_params,
    load_params,
    parametrize,
)
from crazyflow_ros.compat.crazyflow.control.functions import (
    attitude2force_torque,
    body_rate2force_torque,
    state2attitude,
)

__all__ = ["Control", "available_controller", "load_fn_params", "load_params", "parametrize"]

available_controller = {
    "mellinger_state2attitude": state2attitude,
    "mellinger_attitude2force_torque": attitude2force_torque,
    "mellinger_body_rate2force_torque": body_rate2force_torque,
}
