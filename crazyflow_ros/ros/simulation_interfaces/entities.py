"""Entities: the drones and the bodies of the scene.

~/get_entities, ~/get_entities_states, ~/get_entity_bounds, ~/get_entity_info, ~/set_entity_info.
"""

from __future__ import annotations

from typing import Any

from simulation_interfaces.msg import Bounds, EntityCategory, EntityInfo, Result
from simulation_interfaces.srv import (
    GetEntities,
    GetEntitiesStates,
    GetEntityBounds,
    GetEntityInfo,
    SetEntityInfo,
)

from crazyflow_ros.checks import limits
from crazyflow_ros.drones import model_name
from crazyflow_ros.ros.callback_guard import Refusal
from crazyflow_ros.ros.simulation_interfaces.expression import Expression
from crazyflow_ros.ros.simulation_interfaces.motion import EntityMotion, message_of, motions
from crazyflow_ros.ros.simulation_interfaces.server import Server, same_tags
from crazyflow_ros.ros.simulation_interfaces.volumes import Volume, box_message

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
        response.bounds = box_message(self._scenery.box(self._named(request.entity).body))

    def _get_info(self, request: GetEntityInfo.Request, response: GetEntityInfo.Response) -> None:
        response.info = self.info(self._named(request.entity))

    def _set_info(self, request: SetEntityInfo.Request, _response: SetEntityInfo.Response) -> None:
        name, category = self._named(request.entity).name, request.info.category.category
        if category not in _CATEGORIES:
            text = f"category must be one of {_CATEGORIES}, got {category}"
            raise Refusal(Result.RESULT_OPERATION_FAILED, text)
        try:
            _check_info(request.info)
        except ValueError as error:
            raise Refusal(Result.RESULT_OPERATION_FAILED, str(error)) from None
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
            category=EntityCategory(category=EntityCategory.CATEGORY_STATIC_OBJECT),
            description=self._scenery.text("description", name),
            tags=self._scenery.text("tags", name).split(),
        )

    def _named(self, name: str) -> EntityMotion:
        return named(self._server, name)

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


def declare(server: Server) -> None:
    """Create the services."""
    Entities(server)
