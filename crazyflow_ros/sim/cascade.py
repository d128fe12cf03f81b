"""The controllers that each control mode runs."""

from __future__ import annotations

from crazyflow_ros.control import Control, Controller
from crazyflow_ros.dynamics import Dynamics


def modes_of(controller: Controller, dynamics: Dynamics) -> tuple[Control, ...]:
    """Return the control modes whose commands pass through the controller.

    Every mode accepts the default controller, even if the controller has nothing to do there.
    """
    if controller is Controller.default:
        return tuple(Control)
    # Fitted models include a controller of the attitude.
    return (Control.state, Control.attitude) if dynamics.has_rotors else (Control.state,)


def check_controller(controller: Controller, control: Control, dynamics: Dynamics) -> None:
    """Check that commands of a control mode pass through the controller.

    Raises:
        ValueError: Commands of this mode bypass the controller.
    """
    if control not in (modes := modes_of(controller, dynamics)):
        raise ValueError(
            f"controller={controller} needs control={' or '.join(modes)} with dynamics={dynamics}, "
            f"got {control}"
        )


CASCADE = Control.state, Control.attitude, Control.body_rate, Control.force_torque
"""Levels of control that can have a rate of their own."""


def levels(control: Control, dynamics: Dynamics) -> tuple[Control, ...]:
    """Return the control levels of a mode that have their own rate."""
    if not dynamics.has_rotors:
        return (Control.state, Control.attitude)[control is Control.attitude :]
    chain = {
        Control.state: (Control.state, Control.attitude, Control.force_torque),
        Control.attitude: (Control.attitude, Control.force_torque),
        Control.body_rate: (Control.body_rate, Control.force_torque),
        Control.force_torque: (Control.force_torque,),
        Control.rotor_vel: (),
    }
    return chain[control]
