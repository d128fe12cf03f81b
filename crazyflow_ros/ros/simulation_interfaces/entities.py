"""Entities: the drones, and the bodies of the scene.

~/get_entities, ~/get_entities_states, ~/get_entity_bounds, ~/get_entity_info, ~/set_entity_info.
"""

from __future__ import annotations

from typing import Any

from simulation_interfaces.msg import EntityCategory, EntityInfo, Result
from simulation_interfaces.srv import (
    GetEntities,
    GetEntitiesStates,
    GetEntityBounds,
    GetEntityInfo,
    SetEntityInfo,
)

from crazyflow_ros.ros.simulation_interfaces.expression import Expression
from crazyflow_ros.ros.simulation_interfaces.motion import Motion, message_of, motions
from crazyflow_ros.ros.simulation_interfaces.server import Refusal, Server, same_tags
from crazyflow_ros.ros.simulation_interfaces.volumes import Volume, box_message

_CATEGORIES = (
    EntityCategory.CATEGORY_OBJECT,
    EntityCategory.CATEGORY_ROBOT,
    EntityCategory.CATEGORY_HUMAN,
    EntityCategory.CATEGORY_DYNAMIC_OBJECT,
    EntityCategory.CATEGORY_STATIC_OBJECT,
)


class Entities:
    """Answers what is there."""

    def __init__(self, server: Server) -> None:
        self._server, self._scenery = server, server.scenery
        server.serve(GetEntities, self._get)
        server.serve(GetEntitiesStates, self._get_states)
        server.supports("ENTITY_TAGS", "ENTITY_CATEGORIES", "ENTITY_BOUNDS_BOX")
        server.supports("ENTITY_BOUNDS_CONVEX")
        server.serve(GetEntityBounds, self._get_bounds, "ENTITY_BOUNDS")
        server.serve(GetEntityInfo, self._get_info, "ENTITY_INFO_GETTING")
        server.serve(SetEntityInfo, self._set_info, "ENTITY_INFO_SETTING")

    def _get(self, request: GetEntities.Request, response: GetEntities.Response) -> None:
        response.entities = [motion.name for motion in self._matching(request.filters)]

    def _get_states(
        self, request: GetEntitiesStates.Request, response: GetEntitiesStates.Response
    ) -> None:
        found = self._matching(request.filters)
        response.entities = [motion.name for motion in found]
        response.states = [message_of(motion) for motion in found]

    def _get_bounds(
        self, request: GetEntityBounds.Request, response: GetEntityBounds.Response
    ) -> None:
        response.bounds = box_message(self._scenery.box(self._named(request.entity).body))

    def _get_info(self, request: GetEntityInfo.Request, response: GetEntityInfo.Response) -> None:
        response.info = self.info(self._named(request.entity))

    def _set_info(self, request: SetEntityInfo.Request, response: SetEntityInfo.Response) -> None:
        name, category = self._named(request.entity).name, request.info.category.category
        if category not in _CATEGORIES:
            text = f"category is one of {_CATEGORIES}, got {category}"
            raise Refusal(Result.RESULT_OPERATION_FAILED, text)
        self._server.info[name] = request.info

    def info(self, motion: Motion) -> EntityInfo:
        """What was set, else what the MJCF says."""
        name = motion.name
        if name in self._server.info:
            return self._server.info[name]
        if motion.is_drone:
            model = self._server.simulator.parameters.drone_model
            category = EntityCategory(category=EntityCategory.CATEGORY_ROBOT)
            return EntityInfo(
                category=category, description=f"quadrotor {model}", tags=["drone", model]
            )
        return EntityInfo(
            category=EntityCategory(category=EntityCategory.CATEGORY_STATIC_OBJECT),
            description=self._scenery.text("description", name),
            tags=self._scenery.text("tags", name).split(),
        )

    def _named(self, name: str) -> Motion:
        return named(self._server, name)

    def _matching(self, filters: Any) -> list[Motion]:
        expression, volume = Expression(filters.filter), Volume(filters.bounds)
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


def named(server: Server, name: str) -> Motion:
    """An entity.

    Raises:
        Refusal: There is none of this name.
    """
    every = {motion.name: motion for motion in motions(server)}
    if name not in every:
        have = ", ".join(every)
        raise Refusal(Result.RESULT_NOT_FOUND, f"there is no entity {name!r}, have {have}")
    return every[name]


def declare(server: Server) -> None:
    """Add the services."""
    Entities(server)
