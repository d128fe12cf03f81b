"""Entities: the drones and the bodies of the scene.

~/get_entities, ~/get_entities_states, ~/get_entity_bounds, ~/get_entity_info, ~/set_entity_info,
~/get_entity_state, ~/set_entity_state.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from geometry_msgs.msg import Accel, Twist
from simulation_interfaces.msg import Bounds, EntityCategory, EntityInfo, Result
from simulation_interfaces.srv import (
    GetEntities,
    GetEntitiesStates,
    GetEntityBounds,
    GetEntityInfo,
    GetEntityState,
    SetEntityInfo,
    SetEntityState,
)

from crazyflow_ros.checks import limits
from crazyflow_ros.drones import model_name
from crazyflow_ros.ros.callback_guard import Refusal
from crazyflow_ros.ros.messages.geometry import xyz
from crazyflow_ros.ros.simulation_interfaces.entity_motion import (
    EntityMotion,
    MovingFrame,
    frame,
    message_of,
    motions,
)
from crazyflow_ros.ros.simulation_interfaces.expression import Expression
from crazyflow_ros.ros.simulation_interfaces.server import Server, same_tags
from crazyflow_ros.ros.simulation_interfaces.volumes import Volume, box_message
from crazyflow_ros.runtime import DroneState
from crazyflow_ros.scene.frames import world_to_body

_CATEGORIES = (
    EntityCategory.CATEGORY_OBJECT,
    EntityCategory.CATEGORY_ROBOT,
    EntityCategory.CATEGORY_HUMAN,
    EntityCategory.CATEGORY_DYNAMIC_OBJECT,
    EntityCategory.CATEGORY_STATIC_OBJECT,
)


class Entities:
    """Services that list and describe entities."""

    def __init__(self, server: Server) -> None:
        self._server, self._scenery = server, server.scenery
        server.serve(GetEntities, self._get)
        server.serve(GetEntitiesStates, self._get_states)
        server.supports("ENTITY_TAGS", "ENTITY_CATEGORIES", "ENTITY_BOUNDS_BOX")
        server.supports("ENTITY_BOUNDS_CONVEX")
        server.serve(GetEntityBounds, self._get_bounds, "ENTITY_BOUNDS")
        server.serve(GetEntityInfo, self._get_info, "ENTITY_INFO_GETTING")
        server.serve(SetEntityInfo, self._set_info, "ENTITY_INFO_SETTING")

    async def _get(self, request: GetEntities.Request, response: GetEntities.Response) -> None:
        found = await self._found(request.filters)
        response.entities = [motion.name for motion in found]

    async def _get_states(
        self, request: GetEntitiesStates.Request, response: GetEntitiesStates.Response
    ) -> None:
        found = await self._found(request.filters)
        response.entities = [motion.name for motion in found]
        response.states = [message_of(motion) for motion in found]

    def _get_bounds(
        self, request: GetEntityBounds.Request, response: GetEntityBounds.Response
    ) -> None:
        response.bounds = box_message(self._scenery.box(named(self._server, request.entity).body))

    def _get_info(self, request: GetEntityInfo.Request, response: GetEntityInfo.Response) -> None:
        response.info = self.info(named(self._server, request.entity))

    def _set_info(self, request: SetEntityInfo.Request, _response: SetEntityInfo.Response) -> None:
        name, category = named(self._server, request.entity).name, request.info.category.category
        if category not in _CATEGORIES:
            raise ValueError(f"category must be one of {_CATEGORIES}, got {category}")
        _check_info(request.info)
        self._server.info[name] = request.info

    def info(self, motion: EntityMotion) -> EntityInfo:
        """Return the info set by a client, or else the one from the MJCF."""
        name = motion.name
        if name in self._server.info:
            return self._server.info[name]
        if motion.is_drone:
            model = model_name(self._server.simulator.parameters.drone_model)
            category = EntityCategory(category=EntityCategory.CATEGORY_ROBOT)
            return EntityInfo(
                category=category, description=f"quadrotor {model}", tags=["drone", model]
            )
        return EntityInfo(
            category=EntityCategory(
                category=EntityCategory.CATEGORY_DYNAMIC_OBJECT
                if motion.is_free
                else EntityCategory.CATEGORY_STATIC_OBJECT
            ),
            description=self._scenery.text("description", name),
            tags=self._scenery.text("tags", name).split(),
        )

    async def _found(self, filters: Any) -> list[EntityMotion]:
        """Find matching entities; hulls need a linear program per entity, so the worker does it."""
        expression, volume = Expression(filters.filter), Volume(filters.bounds)
        if filters.bounds.type != Bounds.TYPE_CONVEX_HULL:
            return self._matching(filters, expression, volume)
        return await self._server.work(lambda: self._matching(filters, expression, volume))

    def _matching(self, filters: Any, expression: Expression, volume: Volume) -> list[EntityMotion]:
        categories = {category.category for category in filters.categories}
        found = []
        for motion in motions(self._server):
            if not expression.matches(motion.name):
                continue
            info = self.info(motion)
            if categories and info.category.category not in categories:
                continue
            box = self._scenery.box(motion.body)
            if same_tags(filters.tags, info.tags) and volume.overlaps(motion.pos, motion.quat, box):
                found.append(motion)
        return found


def _check_info(info: EntityInfo) -> None:
    """Refuse strings and lists that are too long.

    Raises:
        ValueError: A field is too long.
    """
    if len(info.description) > limits.TEXT_LENGTH:
        most = f"at most {limits.TEXT_LENGTH} characters"
        raise ValueError(f"description must have {most}, got {limits.shown(info.description)!r}")
    if len(info.tags) > limits.TAGS:
        raise ValueError(f"expected at most {limits.TAGS} tags, got {len(info.tags)}")
    for tag in info.tags:
        limits.text("a tag", tag, limits.NAME_LENGTH)


def named(server: Server, name: str) -> EntityMotion:
    """Return an entity.

    Raises:
        Refusal: There is no entity of this name.
    """
    every = {motion.name: motion for motion in motions(server)}
    if name not in every:
        raise Refusal(Result.RESULT_NOT_FOUND, limits.unknown("entity", name, every))
    return every[name]


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
        if motion.is_free:
            await server.wait(server.physics.state.set_body_state(motion.name, state))
            return
        _check_standing(motion, request)
        if state.pos is None or state.quat is None:
            return
        pose = np.asarray(state.pos), np.asarray(state.quat)
        async with server.alone():
            named(server, motion.name)  # it may have been deleted meanwhile
            await server.change_world(server.changes.with_pose(motion.name, pose))


def _check_standing(motion: EntityMotion, request: Any) -> None:
    accel, twist = request.state.acceleration, request.state.twist
    moves = getattr(request, "set_twist", True) and (twist != Twist())
    moves |= getattr(request, "set_acceleration", True) and (accel != Accel())
    if moves:
        raise ValueError(
            f"{motion.name} does not move freely: its twist and acceleration must be zero"
        )


def _drone_state(motion: EntityMotion, origin: MovingFrame, request: Any) -> DroneState:
    """Return the requested state; before version 2 of the interface, all fields are set.

    Raises:
        ValueError: The pose or twist is invalid.
    """
    state = request.state
    pos = quat = vel = ang_vel = None
    if getattr(request, "set_pose", True):
        pos, quat = origin.pose(state.pose, SetEntityState.Response.INVALID_POSE)
    if getattr(request, "set_twist", True):
        at = motion.pos if pos is None else pos
        linear = limits.vector("twist", xyz(state.twist.linear), (3,), limits.VELOCITY)
        turn = xyz(state.twist.angular)
        angular = limits.vector("twist", turn, (3,), limits.ANGULAR_VELOCITY)
        vel, rate = origin.twist(linear, angular, at)
        limits.vector("twist in the world", vel, (3,), limits.VELOCITY)
        limits.vector("twist in the world", rate, (3,), limits.ANGULAR_VELOCITY)
        ang_vel = world_to_body(motion.quat if quat is None else quat, rate)
    return DroneState(pos=pos, quat=quat, vel=vel, ang_vel=ang_vel)
