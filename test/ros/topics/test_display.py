"""~/display/odometry and ~/display/joint_states, from another process."""

from __future__ import annotations

from ros_client import Client, own_domain, time_ns
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState, MultiDOFJointState
from simulation_interfaces.msg import Resource
from simulation_interfaces.srv import SpawnEntity

DOMAIN = own_domain("test_display")
TOPICS = {"odometry": MultiDOFJointState, "joint_states": JointState}
ARGUMENTS = ["drones:=[cf0, cf1]", "start_paused:=true", "real_time_factor:=0.0"]


def test_a_paused_simulator_shows_each_newcomer_where_its_drones_are(client: Client) -> None:
    same = {name: client.collect(kind, f"crazyflow/{name}") for name, kind in TOPICS.items()}
    tick = client.advance(5)
    for _ in range(3):
        newcomer = Client(DOMAIN)
        for name, kind in TOPICS.items():
            shown = newcomer.collect(kind, f"crazyflow/display/{name}")
            assert newcomer.newest(shown, tick) == client.newest(same[name], tick)
        newcomer.close()


def test_each_step_is_shown(client: Client) -> None:
    shown = client.collect(MultiDOFJointState, "crazyflow/display/odometry")
    for _ in range(5):
        client.newest(shown, client.advance(1))


def test_most_messages_are_left_out_at_full_speed(client: Client) -> None:
    shown = client.collect(MultiDOFJointState, "crazyflow/display/odometry")
    clock = client.collect(Clock, "/clock")
    client.newest(shown, client.advance(5))
    shown.clear()
    clock.clear()
    client.pause(False)
    client.until(lambda: len(shown) >= 10, "messages")
    last = client.pause(True)
    client.newest(shown, last)  # the last of all is not left out
    times = [time_ns(message.header.stamp) for message in shown]
    assert times == sorted(times)
    client.until(lambda: time_ns(clock[-1].clock) >= times[-1], "the clock")
    assert len(shown) < len({time_ns(message.clock) for message in clock})


def test_drones_that_come_are_shown(client: Client) -> None:
    shown = client.collect(MultiDOFJointState, "crazyflow/display/odometry")
    resource = Resource(uri="cf2x_L250")
    response = client.call(
        SpawnEntity, "crazyflow/spawn_entity", name="cf2", entity_resource=resource
    )
    assert response.result.result == response.result.RESULT_OK, response.result.error_message
    client.until(lambda: shown and shown[-1].joint_names == ["cf0", "cf1", "cf2"], "the drone")
