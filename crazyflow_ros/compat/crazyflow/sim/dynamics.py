"""The derivative of the state in each model, as functions of `SimData`."""

from crazyflow_ros.sim.data import SimData, SimStateDeriv
from crazyflow_ros.sim.motion import derivative

__all__ = [
    "first_principles_dynamics",
    "so_rpy_dynamics",
    "so_rpy_rotor_drag_dynamics",
    "so_rpy_rotor_dynamics",
]


def first_principles_dynamics(data: SimData) -> SimStateDeriv:
    """Return the derivative under `controls.rotor_vel`; of the other models, `attitude.cmd`."""
    controls, command = data.controls, data.controls.rotor_vel
    if controls.rpy_thrust is not None:
        assert controls.attitude is not None
        command = controls.attitude.cmd
    data = data.replace(controls=controls.replace(actuators=command))
    return SimStateDeriv.from_components(derivative(data, data.states.components, ()))


so_rpy_dynamics = so_rpy_rotor_dynamics = so_rpy_rotor_drag_dynamics = first_principles_dynamics
