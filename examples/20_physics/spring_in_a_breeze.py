"""A force and a controller of your own, for the node and `Sim`."""

import jax.numpy as jnp
from jax import Array

from crazyflow_ros.control import Controller, Memory
from crazyflow_ros.dynamics import BodyState, Force, RigidBody, Wrench
from crazyflow_ros.dynamics import components as c

PUSH, STIFFNESS, DAMPING = 0.02, 0.4, 0.2  # N towards x, N/m, N/(m/s)
POSITION_MEMORY, GAINS, PARAMETERS = {}, {}, {}  # nothing that integrates, or changes in flight
mellinger = Controller.mellinger.cascade  # which the attitude follows
ATTITUDE_MEMORY, HAS_RATE_MODES = mellinger.ATTITUDE_MEMORY, mellinger.HAS_RATE_MODES
load_params, firmware_units = mellinger.load_params, mellinger.firmware_units
attitude2force_torque = mellinger.attitude2force_torque


def breeze(drone: str, freq: float) -> Force:
    """A force that pushes every drone aside."""

    def force(state: BodyState, params: RigidBody) -> Wrench:
        zero = jnp.zeros_like(state.pos[0])
        return Wrench(force=(zero + PUSH, zero, zero), torque=(zero, zero, zero))

    return force


def true_to_mass(params: dict[str, Array], hover_thrust: Array) -> dict[str, Array]:
    """The parameters, with the mass that the drone has."""
    return params | {"mass": hover_thrust[..., 0] / -params["gravity_vec"][..., 2]}


def state2attitude(
    body: BodyState, setpoint: tuple, memory: Memory, dt: float, params: dict[str, Array]
) -> tuple[c.Vec3, Array, Memory]:
    """Attitude and thrust that pull a drone to its setpoint like a spring and a damper."""
    pos, vel, acc, quat = setpoint
    lift = c.scale(c.subtract(acc, c.vector(params["gravity_vec"])), params["mass"])
    spring = c.scale(c.subtract(pos, body.pos), STIFFNESS)
    damper = c.scale(c.subtract(vel, body.vel), DAMPING)
    force, up = c.add(lift, c.add(spring, damper)), c.transpose(c.rotation_matrix(body.quat))[2]
    z = c.normalize(force, up)
    y = c.normalize(c.cross(z, c.heading(quat)), (0 * z[0], 0 * z[0] + 1, 0 * z[0]))
    rpy = c.rpy_from_rotation_matrix(c.transpose((c.cross(y, z), y, z)))
    return rpy, c.dot(force, up), memory
