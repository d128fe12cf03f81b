"""The parameter `policy` of the node."""

from __future__ import annotations

from pathlib import Path

from crazyflow_ros.checks.plain_values import ParameterError
from crazyflow_ros.control import Control
from crazyflow_ros.drones import model_name
from crazyflow_ros.dynamics import Dynamics
from crazyflow_ros.policy import load

_PLACE = ("position", "position_error")


def usable_policy(
    file: str, drone_model: str, *, freq: int, control: str, dynamics: str, flown_by: str
) -> str:
    """Return the absolute path of a policy that can fly the drones.

    Args:
        file: Value of the parameter.
        drone_model: Value of the parameter of this name, like the next three arguments.
        freq: Ticks per second.
        control: Control mode.
        dynamics: Dynamics.
        flown_by: The parameter with which others fly the drones, and its value; empty for none.

    Raises:
        ParameterError: The policy cannot be read, or cannot fly the drones.
    """
    if control != Control.state:
        raise ParameterError("control", f"a policy needs state, got {control!r}")
    if flown_by:
        name, _, value = flown_by.partition(" ")
        raise ParameterError(
            name, f"a policy needs {'off' if name != 'door' else 'none'}, got {value!r}"
        )
    path = Path(file).expanduser().absolute()
    try:
        policy = load(path, drone_model)
    except (ValueError, ModuleNotFoundError) as error:
        raise ParameterError("policy", str(error)) from None
    if policy.observation.eye is not None:
        raise ParameterError(
            "policy", f"{path} sees pictures: fly it over topics, with the program `policy`"
        )
    if freq % policy.freq:
        raise ParameterError("freq", f"a multiple of the policy's {policy.freq} Hz", freq)
    own = policy.action.control
    if own is not Control.attitude and dynamics != Dynamics.first_principles:
        need = f"a policy that commands {own} needs first_principles"
        raise ParameterError("dynamics", f"{need}, got {dynamics!r}")
    return str(path)


def described(file: str, drone_model: str) -> str:
    """Describe the policy that flies the drones, for the log.

    Args:
        file: Path of the policy.
        drone_model: Model of the drones.
    """
    policy = load(file, drone_model)
    text = f"the policy {file} flies the drones, {policy.freq} actions a second"
    if policy.drone != model_name(drone_model):
        text += f"; it was made for {policy.drone}, and they are {model_name(drone_model)}"
    if not any(part.removeprefix("body_") in _PLACE for part in policy.observation.parts):
        text += "; it does not observe where its goal is, so that drones only fly as fast as it"
    return text
