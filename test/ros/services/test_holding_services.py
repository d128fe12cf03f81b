"""What drones hold, forces on bodies and contacts, over ROS."""

from __future__ import annotations

import subprocess
import sys

import pytest
from geometry_msgs.msg import Point, PoseStamped
from ros_client import Client, own_domain
from simulation_interfaces.srv import DeleteEntity, GetEntityState
from std_srvs.srv import Trigger

from crazyflow_ros.client import SimulationError, SimulatorClient

services = pytest.importorskip("crazyflow_ros_interfaces.srv", reason="not installed")
messages = pytest.importorskip("crazyflow_ros_interfaces.msg", reason="not installed")

DOMAIN = own_domain("test_ros_holding")
WORLD = """<mujoco><worldbody>
<geom name="floor" type="plane" size="0 0 1"/>
<body name="box" pos="0.12 0 0.01"><freejoint/>
<geom type="box" size="0.03 0.03 0.01" mass="0.004"/></body>
<body name="post" pos="3 0 0"><geom name="post" type="box" size="0.03 0.03 0.5"/></body>
</worldbody></mujoco>"""


@pytest.fixture(scope="module")
def arguments(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    world = tmp_path_factory.mktemp("world") / "world.xml"
    world.write_text(WORLD)
    return [
        "drones:=[cf0,cf1]",
        "start_paused:=true",
        f"scene:={world}",
        "initial_poses:=[0.0, 0.0, 0.02, 0.0, 1.0, 0.0, 0.02, 0.0]",
    ]


@pytest.fixture(autouse=True)
def as_at_the_start(client: Client) -> None:
    client.reset()


def height(client: Client, body: str) -> float:
    answer = client.call(GetEntityState, "crazyflow/get_entity_state", entity=body)
    return float(answer.state.pose.position.z)


def fly(client: Client, drone: str, x: float, z: float) -> None:
    target = PoseStamped()
    target.pose.position.x, target.pose.position.z = x, z
    client.publish(f"{drone}/cmd_pose", target)
    client.advance(1500)


def test_a_drone_lifts_what_it_holds_and_lets_go(client: Client) -> None:
    answer = client.call(services.Attach, "cf0/attach", cable=True, length=0.3)
    assert answer.success and "cf0 holds box by a cable of 0.3 m" in answer.message
    fly(client, "cf0", 0.0, 1.0)
    assert height(client, "box") == pytest.approx(height(client, "cf0") - 0.3, abs=0.02)
    gone = client.call(DeleteEntity, "crazyflow/delete_entity", entity="box")
    assert "cf0 holds box: let it detach first" in gone.result.error_message
    answer = client.call(Trigger, "cf0/detach")
    assert answer.success and "let go of box" in answer.message
    client.advance(500)
    assert height(client, "box") == pytest.approx(0.01, abs=2e-3)
    answer = client.call(Trigger, "cf0/detach")
    assert not answer.success and answer.message == "cf0 holds nothing"


def test_refusals_say_why(client: Client) -> None:
    for request, why in (
        ({"body": "bx"}, "did you mean 'box'"),
        ({"body": "cf1"}, "the reach of cf0 is 0.1 m"),
        ({"reach": 0.001}, "nothing to hold within 0.001 m of cf0"),
        ({"body": "box", "cable": True, "length": -1.0}, "length must be 0 or more, got -1"),
        ({"body": "box", "cable": True, "length": float("nan")}, "length must be"),
        ({"body": "box", "body_point": Point(x=1e9)}, "body_point"),
    ):
        answer = client.call(services.Attach, "cf0/attach", **request)
        assert not answer.success and why in answer.message, answer.message


def test_contacts_tell_what_touches_what(client: Client) -> None:
    heard = client.listen(messages.Contacts, "crazyflow/contacts")
    client.advance(500)
    newest = client.newest(heard, client.advance(500))
    box = [one for one in newest.contacts if {one.body1, one.body2} == {"world", "box"}]
    assert sum(abs(one.force.z) for one in box) == pytest.approx(0.004 * 9.81, rel=0.01)
    assert {one.body2 for one in newest.contacts} | {one.body1 for one in newest.contacts} >= {
        "cf0",
        "cf1",
        "box",
        "world",
    }
    assert all(one.depth < 2e-3 and abs(one.normal.z) > 0.99 for one in box)


def test_wrenches_push_bodies(client: Client) -> None:
    control = pytest.importorskip("mujoco_ros2_control_msgs.srv", reason="not installed")
    msgs = pytest.importorskip("mujoco_ros2_control_msgs.msg", reason="not installed")
    request = control.ApplyExternalWrench.Request()
    push = msgs.ExternalWrench()
    push.wrench.header.frame_id = "box"
    push.wrench.wrench.force.z = 0.1
    push.duration.nanosec = 500_000_000
    request.wrenches.external_wrenches.append(push)
    future = client.send(
        control.ApplyExternalWrench, "external_wrench/apply_wrench", wrenches=request.wrenches
    )
    client.until(lambda: height(client, "box") > 0.3 or client.advance(50) < 0, "the push")
    client.advance(500)
    assert client.response(future, "apply_wrench").success


def test_client_and_command_line_attach(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROS_DOMAIN_ID", str(DOMAIN))
    with SimulatorClient(stepping=True) as simulation:
        drone = simulation.drone("cf0")
        assert "cf0 holds box by a cable of 0.25 m" in drone.attach("box", cable=True, length=0.25)
        with pytest.raises(SimulationError, match="holds box already"):
            drone.attach("box")
        assert "let go of box" in drone.detach()
    for words, said in (
        ("attach cf0 box --cable 0.4 --stiffness 2", "cf0 holds box by a cable of 0.4 m"),
        ("detach cf0", "cf0 has let go of box"),
    ):
        command = [sys.executable, "-m", "crazyflow_ros", *words.split()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0 and said in done.stdout, done
