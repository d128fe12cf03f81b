"""Foxglove's server, judged by a client of others, while simulators come and go."""

from __future__ import annotations

import asyncio
import json
import random
import re
import socket
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
from geometry_msgs.msg import Twist
from rclpy.serialization import serialize_message
from ros_client import Client, RosProcess, SimulatorProcess, own_domain

pytest.importorskip("foxglove", reason="foxglove-sdk is not installed")
pytest.importorskip("robo_ws_bridge", reason="robo-ws-bridge, a client, is not installed")
import websockets
from foxglove import layouts
from foxglove_client import CDR, FoxgloveClient
from websockets.exceptions import InvalidStatus

from crazyflow_ros.resources import resource
from crazyflow_ros.ros.messages.message_definitions import type_of
from crazyflow_ros.view.foxglove.guard import APPS, Refused, check_request
from crazyflow_ros.view.foxglove.server import mesh

DOMAIN = own_domain("test_foxglove")
PROTOCOL = websockets.Subprotocol("foxglove.sdk.v1")
SERVER = [sys.executable, "-m", "crazyflow_ros.view.foxglove", "--ros-args", "-p", "port:=0"]


def address(server: RosProcess) -> str:
    found = re.search(r"ready: (ws://\S+)", server.log)
    assert found, server.log
    return found[1]


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 120))


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    return wraps(test)(lambda **fixtures: run(test(**fixtures)))


@pytest.fixture(scope="module")
def server() -> Iterator[RosProcess]:
    """A server that starts before its simulator."""
    with RosProcess(SERVER, DOMAIN) as server:
        server.wait_for("ready: ")
        yield server
        assert server.end()[0] == 0
        assert "Traceback" not in server.log


@pytest.fixture(scope="module")
def simulator(server: RosProcess) -> Iterator[SimulatorProcess]:
    with SimulatorProcess(DOMAIN, ["-p", "drones:=[cf0, cf1]"]) as simulator:
        yield simulator


@pytest.fixture
def url(server: RosProcess, simulator: SimulatorProcess) -> str:
    return address(server)


def test_a_client_decodes_every_channel(url: str) -> None:
    silent = {"/parameter_events", "/crazyflow/reset_event", "/crazyflow/flight_events", "/rosout"}

    async def test() -> None:
        async with FoxgloveClient(url) as client:
            expected = "/clock", "/tf", "/tf_static", "/cf1/odom", "/cf1/robot_description"
            topics = await client.until(
                lambda: (
                    (found := {c["topic"] for c in client.bridge.channels.values()})
                    >= set(expected)
                    and found
                ),
                "topics",
            )
            for topic in topics | silent:
                await client.bridge.subscribe(topic)
            await client.set("step_ticks", 3)
            await client.until(lambda: topics - silent <= client.messages.keys(), "messages")
            while not client.messages["/crazyflow/reset_event"]:  # the first come before it listens
                await client.call("/crazyflow/reset")
                await asyncio.sleep(0.1)
            for time_ns, odometry in client.messages["/cf1/odom"]:
                stamp = odometry.header.stamp
                assert abs(time_ns - stamp.sec * 10**9 - stamp.nanosec) < 10**9
                assert odometry.child_frame_id == "cf1/base_link"
            assert client.times == sorted(client.times)
            assert "<robot" in client.messages["/cf1/robot_description"][0][1].data

    run(test())


@in_loop
async def test_a_late_client_receives_what_is_latched(url: str) -> None:
    async with FoxgloveClient(url) as first, FoxgloveClient(url) as second:
        for client in (first, second):
            assert "<robot" in (await client.latest("/cf0/robot_description")).data


@in_loop
async def test_services_answer_and_say_why_they_fail(url: str) -> None:
    async with FoxgloveClient(url) as client:
        answer = await client.call("/crazyflow/pause", data=True)
        assert answer.success
        assert not (await client.call("/crazyflow/load_checkpoint")).success
        state = await client.call("/crazyflow/get_entity_state", entity="nobody")
        assert "nobody" in state.result.error_message
        assert (await client.call("/crazyflow/pause", data=False)).success
        (pause,) = (s for s in client.bridge.services.values() if "/pause" in s["name"])
        for payload, why in ((b"", "damaged"), (bytes(300_000), "200000 bytes")):
            with pytest.raises(RuntimeError, match=why):
                await client.bridge.call_service(pause["id"], payload, encoding=CDR)


@in_loop
async def test_parameters_are_read_set_and_refused_with_the_reason(url: str) -> None:
    async with FoxgloveClient(url) as client:

        async def values() -> dict[str, Any]:
            parameters = await client.bridge.get_parameters()
            return {p["name"].removeprefix("/crazyflow."): p["value"] for p in parameters}

        deadline = asyncio.get_running_loop().time() + 60
        while not (found := await values()):
            assert asyncio.get_running_loop().time() < deadline
            await asyncio.sleep(0.1)
        assert found["drones"] == ["cf0", "cf1"] and found["freq"] == 500
        assert await client.set("gust_altitude", 7) == 7.0  # a whole number for a double
        assert await client.set("wind", [1, 0, 0]) == [1.0, 0.0, 0.0]
        assert await client.set("wind", [0, 0, 0]) == [0.0, 0.0, 0.0]
        assert await client.set("freq", 100) == 500
        assert await client.set("real_time_factor", -1.0) == 1.0
        for name in ("freq", "real_time_factor"):
            await client.until(lambda n=name: any(n in text for text in client.statuses), name)
        assert not await client.bridge.set_parameters([{"name": "/other.freq", "value": 1}])


def test_the_layout_has_panels_as_foxglove_knows_them_and_names_that_exist(url: str) -> None:
    layout = json.loads(resource("config", "foxglove_layout.json").read_text())
    kinds = {
        "3D": layouts.ThreeDeeConfig,
        "CallService": layouts.ServiceCallConfig,
        "DiagnosticSummary": layouts.DiagnosticsSummaryConfig,
        "Plot": layouts.PlotConfig,
        "Publish": layouts.PublishConfig,
        "RosOut": layouts.LogConfig,
        "Teleop": layouts.TeleopConfig,
    }
    panels = layout["configById"]
    for name, panel in panels.items():
        kind = name.partition("!")[0]
        if kind in kinds:
            assert panel.keys() <= kinds[kind]()._to_dict().keys() | {"title"}, name
    layers = panels["3D!drones"]["layers"].values()
    for layer in layers:
        kind = layer["layerId"].removeprefix("foxglove.")
        known = getattr(layouts, f"BaseRenderer{kind}LayerSettings")(instance_id="x")._to_dict()
        assert layer.keys() <= known.keys() | {"visible", "frameLocked"}

    def shown(place: Any) -> Iterator[str]:
        if isinstance(place, str):
            yield place
            for tab in panels[place].get("tabs", []):
                yield from shown(tab["layout"])
        else:
            yield from (*shown(place["first"]), *shown(place["second"]))

    assert sorted(shown(layout["layout"])) == sorted(panels)

    async def test() -> None:
        async with FoxgloveClient(url) as client:
            await client.latest("/cf0/odom")
            topics = {channel["topic"] for channel in client.bridge.channels.values()}
            services = {s["name"]: s["type"] for s in client.bridge.services.values()}
        named = set(re.findall(r'"(/cf[01]/\w+|/crazyflow/\w+|/rosout)', json.dumps(layout)))
        commands = {"/cf0/cmd_pose", "/cf0/cmd_vel", "/cf0/goal_pose", "/cf0/clicked_point"}
        assert named - commands <= topics | services.keys()
        for panel in panels.values():
            if "serviceName" in panel:
                request = type_of(services[panel["serviceName"]]).Request()
                set_fields(request, json.loads(panel["requestPayload"]))
            if "datatype" in panel:
                set_fields(type_of(panel["datatype"])(), json.loads(panel["value"]))

    run(test())


def set_fields(message: Any, values: dict[str, Any]) -> None:
    """Fill a message; it refuses fields and types that it does not have."""
    for name, value in values.items():
        if isinstance(value, dict):
            set_fields(getattr(message, name), value)
        else:
            setattr(message, name, value)


def test_a_twist_moves_the_drone(url: str) -> None:
    twist = Twist()
    twist.linear.z, twist.linear.x = 0.3, 0.3

    async def test() -> None:
        async with FoxgloveClient(url) as client:
            channel = await client.bridge.advertise(
                "/cf0/cmd_vel", encoding=CDR, schema_name="geometry_msgs/Twist"
            )
            start = (await client.latest("/cf0/odom")).pose.pose.position
            place = start
            while place.x < start.x + 0.2:
                await client.bridge.publish(channel, serialize_message(twist))
                place = (await client.latest("/cf0/odom")).pose.pose.position
            assert place.z > start.z + 0.1
            await client.bridge.unadvertise(channel)
            assert client.statuses == []

    run(test())


@in_loop
async def test_playback_pauses_resumes_and_changes_the_speed(url: str) -> None:
    async with FoxgloveClient(url) as client:
        paused, now, *_ = await client.control(paused=True, speed=1.0)
        assert paused
        stamps = [(await client.latest("/clock")).clock for _ in range(2)]
        assert stamps[0].sec == stamps[1].sec and stamps[0].nanosec == stamps[1].nanosec
        paused, _, speed, _ = await client.control(paused=False, speed=0.1)
        assert not paused and speed == pytest.approx(0.1)
        ((parameter),) = await client.bridge.get_parameters(["/crazyflow.real_time_factor"])
        assert parameter["value"] == 0.1
        for refused in (0.0, float("nan"), 1e30):
            assert (await client.control(paused=False, speed=refused))[2] == speed
        assert (await client.control(paused=False, speed=1.0, seek_ns=5))[1] > now > 5
        assert any("another time" in text for text in client.statuses)
        # What others change is shown, too.
        assert (await client.call("/crazyflow/pause", data=True)).success
        await client.until(lambda: client.playback[-1][0], "paused by a service")
        assert (await client.call("/crazyflow/pause", data=False)).success


def test_hostile_messages_cost_a_client_at_most_its_connection(url: str) -> None:
    generator = random.Random(0)
    adverts = (
        ("no topic!", CDR, "std_msgs/String"),
        ("/x", CDR, "../../os/System"),
        ("/y", "json", "std_msgs/String"),
    )
    channels = [
        {"id": 1, "topic": topic, "encoding": encoding, "schemaName": kind}
        for topic, encoding, kind in adverts
    ]
    texts: list[Any] = [
        [],
        {"op": 3},
        *({"op": "advertise", "channels": [channel]} for channel in channels),
        {"op": "subscribe", "subscriptions": [{"id": 1, "channelId": 4000000000}]},
        {"op": "unsubscribe", "subscriptionIds": [77]},
        {"op": "setParameters", "parameters": [{"name": "", "value": {"a": [None]}}]},
        {"op": "getParameters", "parameterNames": ["x" * 100_000]},
        {"op": "fetchAsset", "uri": "file:///etc/passwd", "requestId": 1},
    ]

    async def send(*messages: str | bytes) -> None:
        try:
            async with websockets.connect(url, subprotocols=[PROTOCOL]) as connection:
                for message in messages:
                    await connection.send(message)
                await connection.ping()
        except websockets.ConnectionClosed:
            pass

    async def test() -> None:
        for text in texts:
            await send(json.dumps(text))
        for _ in range(50):
            await send(bytes([generator.randrange(8)]) + generator.randbytes(20))
        await send(bytes(40_000_000))
        async with FoxgloveClient(url) as client:
            channel = await client.bridge.advertise(
                "/cf0/cmd_vel", encoding=CDR, schema_name="geometry_msgs/msg/Twist"
            )
            await client.bridge.publish(channel, generator.randbytes(30))
            await client.until(lambda: any("ignored" in s for s in client.statuses), "a refusal")
            twist = serialize_message(Twist())
            for _ in range(3000):
                await client.bridge.publish(channel, twist)
            await client.until(
                lambda: any("messages per second" in s for s in client.statuses), "a limit"
            )
            assert (await client.latest("/cf1/odom")).pose.pose.position.z < 0.1

    run(test())


def test_from_other_machines_a_token_is_needed() -> None:
    viewer = "https://viewer.example"
    given = ["-p", "address:=0.0.0.0", "-p", f"origins:=['{viewer}']"]
    with RosProcess([*SERVER, *given], DOMAIN) as server:
        server.wait_for("ready: ")
        place, _, token = address(server).replace("0.0.0.0", "127.0.0.1").partition("/?token=")
        assert len(token) > 20

        async def test() -> None:
            for query in ("", "/?token=", f"/?token={token[:-1]}", f"/{token}"):
                with pytest.raises(InvalidStatus, match="401"):
                    async with websockets.connect(place + query, subprotocols=[PROTOCOL]):
                        pass
            headers = {"Authorization": f"Bearer {token}"}
            for query, header in ((f"/?token={token}", {}), ("", headers)):
                async with websockets.connect(
                    place + query, subprotocols=[PROTOCOL], origin=viewer, additional_headers=header
                ) as connection:
                    assert "serverInfo" in await connection.recv()

        run(test())
        assert server.end()[0] == 0


def test_what_is_no_websocket_is_refused_and_silence_holds_nobody_up(url: str) -> None:
    host, port = url.removeprefix("ws://").split(":")
    silent = [socket.create_connection((host, int(port))) for _ in range(5)]
    for head in (
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST / HTTP/1.1\r\n\r\n",
        b"GET /" + b"x" * 20_000,
        b"\0\xff\r\n\r\n",
    ):
        with socket.create_connection((host, int(port)), timeout=60) as connection:
            connection.sendall(head)
            assert b"400" in connection.recv(100)

    async def test() -> None:
        async with FoxgloveClient(url) as client:
            await client.latest("/clock")

    run(test())
    for connection in silent:
        connection.close()


def test_a_client_that_reads_nothing_holds_nobody_up(simulator: SimulatorProcess) -> None:
    with RosProcess(SERVER, DOMAIN) as server, socket.socket() as deaf:
        url = address(server.wait_for("ready: "))
        host, port = url.removeprefix("ws://").split(":")
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        deaf.connect((host, int(port)))

        async def test() -> None:
            async with FoxgloveClient(url) as client:
                await client.until(lambda: len(client.bridge.channels) > 15, "topics")
                wanted = [{"id": i, "channelId": i} for i in client.bridge.channels]
                connection = await websockets.connect(url, sock=deaf, subprotocols=[PROTOCOL])
                await connection.send(json.dumps({"op": "subscribe", "subscriptions": wanted}))
                connection.transport.pause_reading()
                for _ in range(100):
                    await client.latest("/cf0/odom")
                connection.transport.abort()

        run(test())
        assert server.end()[0] == 0


def request(*origins: str) -> bytes:
    headers = "".join(f"origin : {origin}\r\n" for origin in origins)
    return f"GET / HTTP/1.1\r\nUpgrade: websocket\r\n{headers}\r\n".encode()


def test_programs_and_known_pages_may_connect() -> None:
    for known in ([], *([one] for one in (*APPS, "http://localhost:8080", "http://127.0.0.1"))):
        check_request(request(*known), "", APPS)


@pytest.mark.parametrize(
    "origins",
    [
        ["https://evil.example"], ["null"], ["http://localhost.evil.example"], ["http://[::1"],
        ["foxglove"], ["file://", "https://evil.example"],
    ],
)  # fmt: skip
def test_other_pages_may_not_connect(origins: list[str]) -> None:
    with pytest.raises(Refused) as caught:
        check_request(request(*origins), "", APPS)
    assert caught.value.status == 403


def test_only_meshes_of_the_simulator_are_served(tmp_path: Path) -> None:
    meshes = tmp_path / "urdf_mjcf" / "objects"
    meshes.mkdir(parents=True)
    (meshes / "gate.stl").write_bytes(b"solid")
    (meshes / "gate.xml").write_bytes(b"secret")
    (tmp_path / "other.stl").write_bytes(b"secret")
    (meshes / "link.stl").symlink_to(tmp_path / "other.stl")
    own = "package://crazyflow_ros/urdf_mjcf/objects"
    assert mesh(f"{own}/gate.stl", tmp_path) == b"solid"
    for uri in (
        f"{own}/gate.xml",
        f"{own}/link.stl",
        f"{own}/../../other.stl",
        f"{own}/%2e%2e/%2e%2e/other.stl",
        f"{own}/gate.stl\0",
        f"package://crazyflow_ros/{tmp_path}/other.stl",
        f"file://{meshes}/gate.stl",
        "package://other/gate.stl",
        "x" * 100_000,
        f"{own}/" + "a" * 5000 + ".stl",
    ):
        assert mesh(uri, tmp_path) is None, uri[:100]


def test_a_taken_port_is_said(url: str) -> None:
    port = url.rpartition(":")[2]
    command = [*SERVER[:-1], f"port:={port}"]
    with RosProcess(command, DOMAIN) as server:
        assert server.wait() == 2
        assert f"127.0.0.1:{port}" in server.log and "Traceback" not in server.log


def test_it_leaves_ros_when_it_ends() -> None:
    command = [*SERVER, "-r", "__node:=leaving"]
    with RosProcess(command, DOMAIN) as server, closing(Client(DOMAIN)) as client:

        def is_known() -> bool:
            return "leaving" in client.node.get_node_names()

        client.until(is_known, "the server")
        assert server.end()[0] == 0
        # One that vanishes is known until its lease ends after 20 s, and slows publishers.
        client.until(lambda: not is_known(), "its end", timeout=10)


@in_loop
async def test_clients_see_a_simulator_that_starts_again(
    server: RosProcess, simulator: SimulatorProcess
) -> None:
    async with FoxgloveClient(address(server)) as client:
        sessions: list[str | None] = []
        client.bridge.on_server_info(lambda _name, _capabilities, s: sessions.append(s))
        before = (await client.latest("/clock")).clock.sec
        assert before > 1
        simulator.end()
        await client.until(
            lambda: all(c["topic"] != "/clock" for c in client.bridge.channels.values()),
            "no clock",
        )
        with SimulatorProcess(DOMAIN, ["-p", "drones:=[other]", "-p", "start_paused:=true"]):
            client.bridge._subscribed_topics.clear()
            assert (await client.latest("/clock")).clock.sec <= before
            assert (await client.latest("/other/odom")).child_frame_id == "other/base_link"
            assert sessions, "clients were not told to begin anew"
            assert (await client.call("/crazyflow/step")).success

            def drones() -> Any:
                return client.bridge.get_parameters(["/crazyflow.drones"])

            while (await drones())[0]["value"] != ["other"]:
                await asyncio.sleep(0.1)
