"""Requests that ask for too much, to a simulator that flies on and answers others meanwhile."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from geometry_msgs.msg import Point, Pose, PoseStamped, Quaternion, Twist, Vector3
from ros_client import Client, SimulatorProcess, own_domain, time_ns
from rosgraph_msgs.msg import Clock
from simulation_interfaces.msg import (
    Bounds,
    EntityCategory,
    EntityFilters,
    EntityInfo,
    EntityState,
    Resource,
    Result,
    SpawnResult,
    TagsFilter,
)
from simulation_interfaces.msg import SpawnEntity as SpawnRequest
from simulation_interfaces.srv import (
    GetAvailableWorlds,
    GetEntities,
    GetEntityState,
    GetNamedPoseBounds,
    GetSimulationState,
    GetSpawnables,
    LoadWorld,
    SetEntityInfo,
    SetEntityState,
    SpawnEntities,
    SpawnEntity,
    StepSimulation,
)

from crazyflow_ros.checks import limits
from crazyflow_ros.client.world import LOADING
from crazyflow_ros.ros.simulation_interfaces.server import service_name

DOMAIN = own_domain("test_ros_hostile_simulation_interfaces")
GEOM = "<geom size='1'/>"
FLEX = '<flexcomp type="grid" dim="3" name="f{}" spacing=".1 .1 .1" mass="1" radius=".01"/>'
WORLD = "<mujoco><worldbody>{}</worldbody></mujoco>"
BALL = Resource(resource_string=WORLD.format(GEOM))
ANSWER = 60.0  # s; a machine may be busy
PRELUDE = "from crazyflow_ros.checks import limits\nlimits.SANDBOX_SECONDS = 4.0"


@pytest.fixture(scope="module")
def arguments(folder: Path) -> list[str]:
    return ["drones:=[cf0,cf1]", f"world_folders:=[{folder}]"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    os.mkfifo(folder / "pipe.xml")
    (folder / "part.xml").write_text('<mujoco><include file="pipe.xml" xmlns="a"/></mujoco>')
    (folder / "whole.xml").write_text('<mujoco><include file="part.xml"/></mujoco>')
    (folder / "many").mkdir()
    for i in range(limits.LISTED + 1):
        (folder / "many" / f"{i}.xml").write_text(WORLD.format(GEOM))
    return folder


def refused(client: Client, kind: Any, text: str, /, **request: Any) -> Any:
    """The answer, which comes and is no success; another request is answered before or after."""
    name = f"crazyflow/{service_name(kind).removeprefix('~/')}"
    future = client.send(kind, name, **request)
    other = client.send(GetSimulationState, "crazyflow/get_simulation_state")
    client.response(other, "another request", ANSWER)
    answer = client.response(future, name, ANSWER)
    result = answer.result
    assert result.result != Result.RESULT_OK, text
    assert text in result.error_message
    assert len(result.error_message) < 2000
    return answer


def test_descriptions(client: Client, folder: Path) -> None:
    replicate = WORLD.format(f"<replicate count='3000'>{GEOM}</replicate>")
    for uri, text in (
        ("/dev/zero", "in no folder from which files are read"),
        (str(folder / "pipe.xml"), "not a regular file"),
        (str(folder), "not a regular file"),
        (str(folder / "whole.xml"), "not a regular file"),
        ("file:///%00", "null"),
        (f"{folder}/{'a' * 300}", "too long"),
        ("a" * 20_000, "at most 4096 characters"),
    ):
        refused(client, SpawnEntity, text, name="x", entity_resource=Resource(uri=uri))
        refused(client, LoadWorld, text, world_resource=Resource(uri=uri))
    for description, text in (
        (replicate, "at most 2000 bodies"),
        (WORLD.format(GEOM * 100_000), "at most 1048576"),
        (WORLD.format("<geom type='mesh' mesh='m'/>"), "mesh"),
        (WORLD.format(FLEX.format(0)), "at most 2000 bodies"),
        ("<mujoco><size nuserdata='900000000'/></mujoco>", "memory"),
    ):
        given = Resource(resource_string=description)
        refused(client, SpawnEntity, text, name="x", entity_resource=given)
        refused(client, LoadWorld, text, world_resource=given)


def test_what_mujoco_builds_for_minutes_is_given_up_while_time_goes_on(client: Client) -> None:
    world = WORLD.format("".join(FLEX.format(i) for i in range(200)))
    began = time_ns(client.latest(Clock, "/clock").clock)
    given = Resource(resource_string=world)
    refused(client, LoadWorld, "must not need more than 4 s", world_resource=given)
    assert time_ns(client.latest(Clock, "/clock").clock) - began > 2e9
    refused(client, SpawnEntity, "a name must have", name="?", entity_resource=BALL)


def test_files_elsewhere_are_refused_with_the_same_words_as_if_there_were_none(
    client: Client, folder: Path, tmp_path: Path
) -> None:
    """By their names, and by those in a text; whatever way leads there."""
    (tmp_path / "secret").write_text(WORLD.format(GEOM))
    for inner in ("closet", "room"):
        (tmp_path / inner).mkdir()
    (folder / "way_out").symlink_to(tmp_path)
    depth = "../" * 30
    for way in (
        str(tmp_path), f"file://{tmp_path}", f"{depth}{tmp_path}", f"{folder}/way_out",
        f"{folder}/{depth}{tmp_path}", f"package://rclpy/{depth}{tmp_path}", "way_out",
        f"package://../../../{depth}{tmp_path}", f"file://{tmp_path}/room/%2e%2e",
    ):  # fmt: skip
        told = [said_of(client, f"{way}/{name}") for name in ("secret", "nobody", "closet")]
        assert told[0] == told[1] == told[2], way


def said_of(client: Client, path: str) -> list[tuple[int, str]]:
    """What all services say that can read a file, without the name of the file."""
    mesh = f"<mujoco><asset><mesh file='{path}'/></asset></mujoco>"
    text = WORLD.format(f"<include file='{path}'/>{GEOM}")
    results = []
    for one in ({"uri": path}, {"resource_string": text}, {"resource_string": mesh}):
        for kind, field in ((LoadWorld, "world_resource"), (SpawnEntity, "entity_resource")):
            results.append(refused(client, kind, "", **{field: Resource(**one)}).result)
    for kind, field in ((GetSpawnables, "sources"), (GetAvailableWorlds, "additional_sources")):
        name = f"crazyflow/{service_name(kind).removeprefix('~/')}"
        results.append(client.call(kind, name, **{field: [path]}).result)
    hidden = limits.shown(path), path.rpartition("/")[2]
    return [
        (one.result, re.sub("|".join(map(re.escape, hidden)), "*", one.error_message))
        for one in results
    ]


def test_files_in_the_folders_are_read(client: Client, folder: Path) -> None:
    """By a path below the folder, also in a text."""
    (folder / "inner").mkdir()
    (folder / "inner" / "yard.xml").write_text(WORLD.format(GEOM))
    text = WORLD.format("<include file='inner/../inner/yard.xml'/>")
    included = text.replace("<worldbody>", "").replace("</worldbody>", "")
    for resource in (
        Resource(uri="inner/yard.xml"),
        Resource(uri=str(folder / "inner" / ".." / "inner" / "yard.xml")),
        Resource(resource_string=included),
    ):
        answer = client.call(LoadWorld, "crazyflow/load_world", LOADING, world_resource=resource)
        assert answer.result.result == Result.RESULT_OK, answer.result.error_message


def test_sources(client: Client, folder: Path) -> None:
    for kind, field in ((GetSpawnables, "sources"), (GetAvailableWorlds, "additional_sources")):
        refused(client, kind, "at most 100 sources", **{field: ["a"] * 5000})
        refused(client, kind, "more than 200 files", **{field: [str(folder / "many")]})
    answer = client.call(
        GetSpawnables, "crazyflow/get_spawnables", sources=[str(folder / "pipe.xml"), "\x00"]
    )
    assert "pipe.xml" in answer.result.error_message and len(answer.spawnables) == 4


def test_names_and_numbers(client: Client) -> None:
    long = "a" * 300
    for name, namespace, code in (
        (long, "", SpawnResult.NAME_INVALID),
        ("a" * 200, "b" * 200, SpawnResult.NAME_INVALID),
        ("a", long, SpawnResult.NAMESPACE_INVALID),
    ):
        answer = refused(
            client, SpawnEntity, "at most 255 characters", name=name, entity_namespace=namespace,
            entity_resource=BALL,
        )  # fmt: skip
        assert answer.result.result == code
    for x in (1e308, 1e5, float("inf"), float("nan")):
        pose = Pose(position=Point(x=x), orientation=Quaternion(w=1.0))
        answer = refused(
            client, SpawnEntity, "position", name="far", entity_resource=BALL,
            initial_pose=PoseStamped(pose=pose),
        )  # fmt: skip
        assert answer.result.result == SpawnResult.INVALID_POSE
        refused(
            client, SetEntityState, "position", entity="cf0", set_pose=True,
            state=EntityState(pose=pose),
        )  # fmt: skip
    for twist in (Twist(linear=Vector3(x=1e300)), Twist(angular=Vector3(z=1e9))):
        state = EntityState(twist=twist)
        refused(client, SetEntityState, "twist", entity="cf0", set_twist=True, state=state)
    refused(client, GetEntityState, "there is no entity", entity=long)
    refused(client, GetNamedPoseBounds, "there is no pose", name=long)


def test_filters(client: Client) -> None:
    too_long = EntityFilters(filter="(" * 30_000 + ")" * 30_000)
    refused(client, GetEntities, "at most 4096 characters", filters=too_long)
    points = [Vector3(x=float(i)) for i in range(5000)]
    hull = EntityFilters(bounds=Bounds(type=Bounds.TYPE_CONVEX_HULL, points=points))
    refused(client, GetEntities, "at most 1000 points", filters=hull)
    many = EntityFilters(tags=TagsFilter(tags=["a"] * 5000))
    refused(client, GetEntities, "100 tags", filters=many)
    fine = Bounds(type=Bounds.TYPE_CONVEX_HULL, points=points[: limits.POINTS])
    found = client.call(
        GetEntities, "crazyflow/get_entities", filters=EntityFilters(bounds=fine)
    ).entities
    assert found == []


def test_info(client: Client) -> None:
    robot = EntityCategory(category=EntityCategory.CATEGORY_ROBOT)
    for info, text in (
        (EntityInfo(category=robot, description="a" * 10**6), "at most 4096 characters"),
        (EntityInfo(category=robot, tags=["a"] * 5000), "100 tags"),
        (EntityInfo(category=robot, tags=["a" * 300]), "at most 255 characters"),
    ):
        refused(client, SetEntityInfo, text, entity="cf0", info=info)


def test_numbers_of_things(client: Client) -> None:
    wish = SpawnRequest(name="a", entity_resource=Resource(resource_string=WORLD.format(GEOM)))
    refused(client, SpawnEntities, "at most 100 requests", spawn_requests=[wish] * 1000)
    refused(client, StepSimulation, "at most 1000000000 steps", steps=2**64 - 1)
    assert client.call(GetEntities, "crazyflow/get_entities").entities == ["cf0", "cf1"]


SLOW = """
import pathlib, time
from crazyflow_ros.ros.simulation_interfaces import server, spawning
server.LOADING_TIMEOUT = spawning.LOADING_TIMEOUT = 3.0
read = spawning._read
def read_slowly(reader, wanted):
    if "held" in wanted.resource_string:
        pathlib.Path({held!r}).read_text()  # a pipe, into which the test writes
    if "slow" in wanted.resource_string:
        time.sleep(server.LOADING_TIMEOUT)
    return read(reader, wanted)
spawning._read = read_slowly
"""


def test_what_waits_too_long_for_its_turn_is_given_up_and_disturbs_nobody(tmp_path: Path) -> None:
    site = "<worldbody><site/></worldbody>"  # for which nothing has to be compiled
    os.mkfifo(held := tmp_path / "held")
    held_up, slow, quick = (
        Resource(resource_string=f"<mujoco model='{model}'>{site}</mujoco>")
        for model in ("held", "slow", "quick")
    )
    prelude = SLOW.replace("{held!r}", repr(str(held)))
    with SimulatorProcess(DOMAIN, ["-r", "__ns:=/slow"], prelude) as simulator:
        client = Client(DOMAIN, "/slow")
        spawn, wish = "crazyflow/spawn_entity", {"entity_resource": quick, "allow_renaming": True}
        first = client.send(SpawnEntity, spawn, entity_resource=held_up)
        late = client.response(client.send(SpawnEntity, spawn, **wish), spawn, ANSWER)
        assert not first.done()
        assert "not done within 3 s and cancelled" in late.result.error_message
        held.write_text("go on")
        assert client.response(first, spawn, ANSWER).entity_name == "held"
        assert client.call(SpawnEntity, spawn, **wish).entity_name == "quick"
        several = client.call(
            SpawnEntities,
            "crazyflow/spawn_entities",
            ANSWER,
            spawn_requests=[
                SpawnRequest(entity_resource=each, allow_renaming=True)
                for each in (slow, quick, quick)
            ],
        )
        assert several.results[0].entity_name == "slow"
        for given_up in several.results[1:]:
            assert "not started within 3 s and cancelled" in given_up.result.error_message
        client.close()
        assert "has failed" not in simulator.log
