"""The controllers that each control mode runs."""

from __future__ import annotations

from crazyflow_ros.control import Control, Controller
from crazyflow_ros.dynamics import Dynamics
from crazyflow_ros.sim import stages
from crazyflow_ros.sim.stages import Stage


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
        ValueError: They do not.
    """
    if control not in (modes := modes_of(controller, dynamics)):
        raise ValueError(
            f"controller={controller} needs control={' or '.join(modes)} with dynamics={dynamics}, "
            f"got {control}"
        )


def control_stages(dynamics: Dynamics, control: Control) -> tuple[Stage, ...]:
    """Return the controllers of a control mode, from the command to the input of the model.

    Raises:
        ValueError: The model does not accept such commands.
    """
    if not dynamics.has_rotors:
        fitted: dict[Control, tuple[Stage, ...]] = {
            Control.state: (stages.control_state, stages.commit_attitude, stages.limit_thrust),
            Control.attitude: (stages.commit_attitude, stages.limit_thrust),
        }
        if control not in fitted:
            known = f"dynamics={dynamics} takes {' or '.join(fitted)}"
            raise ValueError(f"control={control} needs dynamics=first_principles, {known}")
        return fitted[control]
    cascade: dict[Control, tuple[Stage, ...]] = {
        Control.state: (stages.control_state, stages.control_attitude, stages.control_force_torque),
        Control.attitude: (stages.control_attitude, stages.control_force_torque),
        Control.body_rate: (stages.control_body_rate, stages.control_force_torque),
        Control.force_torque: (stages.control_force_torque,),
        Control.rotor_vel: (),
    }
    return (*cascade[control], stages.limit_rotor_vel)


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
