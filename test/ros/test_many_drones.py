"""A swarm without topics of single drones: each request and each message is for all of them."""

from __future__ import annotations

import numpy as np
import pytest
from crazyflow_ros_interfaces.srv import ChangeHeight, CommandDrones
from geometry_msgs.msg import Transform, Vector3
from ros_client import Client, SimulatorProcess, own_domain
from sensor_msgs.msg import MultiDOFJointState

DOMAIN = own_domain("test_many_drones")
COMPILING = 1800.0  # s, for a thousand drones on a busy machine
MOST_MEMORY = 4096  # MB
HEIGHT = 0.5  # m


def heights(state: MultiDOFJointState) -> np.ndarray:
    return np.array([transform.translation.z for transform in state.transforms])


def above(state: MultiDOFJointState, height: float) -> MultiDOFJointState:
    """A command to all drones: at a height above where they are."""
    command = MultiDOFJointState(joint_names=state.joint_names)
    for place in state.transforms:
        goal = Vector3(x=place.translation.x, y=place.translation.y, z=height)
        command.transforms.append(Transform(translation=goal))
    return command


@pytest.mark.soak
def test_a_swarm_flies_and_goes_by_one_message_each() -> None:
    names = [f"cf{i}" for i in range(1000)]
    arguments = [f"drones:=[{','.join(names)}]", "interfaces:=swarm", "publish_rates.swarm:=50"]
    starts = SimulatorProcess(DOMAIN, arguments, ready_timeout=COMPILING)
    with starts as process, Client(DOMAIN) as client:
        states = client.collect(MultiDOFJointState, "crazyflow/odometry")
        first = client.until(lambda: states and states[0], "message with all drones")
        assert first.joint_names == names
        client.publish("crazyflow/drones/cmd_pose", above(first, HEIGHT))
        client.until(
            lambda: np.abs(heights(states[-1]) - HEIGHT).max() < 0.1, "all drones in the air"
        )
        landing = client.call(
            ChangeHeight, "crazyflow/drones/land", drones=names[::2], height=0.0, duration=1.0
        )
        assert landing.success, landing.message
        client.until(
            lambda: heights(states[-1])[::2].max() < 0.1, "every second drone on the floor"
        )
        assert heights(states[-1])[1::2].min() > HEIGHT - 0.1
        assert process.memory < MOST_MEMORY
        topics = [name for name, _ in client.node.get_topic_names_and_types()]
        assert not [name for name in topics if name.startswith("/cf")]
        gone = client.call(CommandDrones, "crazyflow/drones/delete", drones=names[1:])
        assert gone.success, gone.message
        client.until(
            lambda: states[-1].joint_names == ["cf0"], "message with the drone that is left"
        )
