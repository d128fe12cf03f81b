"""~/get_entity_state and ~/set_entity_state."""

from __future__ import annotations

from typing import Any

import numpy as np
from geometry_msgs.msg import Accel, Twist
from simulation_interfaces.msg import Result
from simulation_interfaces.srv import GetEntityState, SetEntityState

from crazyflow_ros.checks import limits
from crazyflow_ros.ros.callback_guard import Refusal
from crazyflow_ros.ros.messages.geometry import xyz
from crazyflow_ros.ros.simulation_interfaces.entities import named
from crazyflow_ros.ros.simulation_interfaces.frames import MovingFrame, frame
from crazyflow_ros.ros.simulation_interfaces.motion import EntityMotion, message_of
from crazyflow_ros.ros.simulation_interfaces.server import Server
from crazyflow_ros.runtime import DroneState
from crazyflow_ros.scene.frames import world_to_body


class EntityStates:
    """Services that read and set the state of an entity."""

    def __init__(self, server: Server) -> None:
        self._server = server
        server.serve(GetEntityState, self._get, "ENTITY_STATE_GETTING")
        server.serve(SetEntityState, self._set, "ENTITY_STATE_SETTING")

    def _get(self, request: GetEntityState.Request, response: GetEntityState.Response) -> None:
        response.state = message_of(named(self._server, request.entity))

    async def _set(
        self, request: SetEntityState.Request, _response: SetEntityState.Response
    ) -> None:
        server = self._server
        motion, origin = named(server, request.entity), frame(server, request.state)
        state = _drone_state(motion, origin, request)
        if motion.is_drone:
            await server.wait(server.physics.state.set_drone_states({motion.name: state}))
            return
        _check_standing(motion, request)
        if state.pos is None or state.quat is None:
            return
        pose = np.asarray(state.pos), np.asarray(state.quat)
        async with server.alone():
            named(server, motion.name)  # it may have been deleted meanwhile
            await server.change_world(server.changes.with_pose(motion.name, pose))


def _check_standing(motion: EntityMotion, request: Any) -> None:
    """Refuse a motion of an object."""
    accel, twist = request.state.acceleration, request.state.twist
    moves = getattr(request, "set_twist", True) and (twist != Twist())
    moves |= getattr(request, "set_acceleration", True) and (accel != Accel())
    if moves:
        text = f"{motion.name} is static: its twist and acceleration must be zero"
        raise Refusal(Result.RESULT_OPERATION_FAILED, text)


def _drone_state(motion: EntityMotion, origin: MovingFrame, request: Any) -> DroneState:
    """Return the requested state; before version 2 of the interface, all fields are set.

    Raises:
        Refusal: The pose or twist is invalid.
    """
    state = request.state
    pos = quat = vel = ang_vel = None
    if getattr(request, "set_pose", True):
        pos, quat = origin.pose(state.pose, SetEntityState.Response.INVALID_POSE)
    if getattr(request, "set_twist", True):
        at = motion.pos if pos is None else pos
        try:
            linear = limits.vector("twist", xyz(state.twist.linear), (3,), limits.VELOCITY)
            turn = xyz(state.twist.angular)
            angular = limits.vector("twist", turn, (3,), limits.ANGULAR_VELOCITY)
            vel, rate = origin.twist(linear, angular, at)
            limits.vector("twist in the world", vel, (3,), limits.VELOCITY)
            limits.vector("twist in the world", rate, (3,), limits.ANGULAR_VELOCITY)
        except ValueError as error:
            raise Refusal(Result.RESULT_OPERATION_FAILED, str(error)) from None
        ang_vel = world_to_body(motion.quat if quat is None else quat, rate)
    return DroneState(pos=pos, quat=quat, vel=vel, ang_vel=ang_vel)


def declare(server: Server) -> None:
    """Create the services."""
    EntityStates(server)
