"""The page follows its own simulator, whatever others there are."""

from contextlib import closing

import pytest
from geometry_msgs.msg import TransformStamped
from ros_client import LATCHED, Client, own_domain
from sensor_msgs.msg import MultiDOFJointState
from tf2_msgs.msg import TFMessage

from crazyflow_ros.view.follower import Follower

DOMAIN = own_domain("test_follower")


def fixed(child: str) -> TFMessage:
    edge = TransformStamped(child_frame_id=child)
    edge.header.frame_id = "cf0/base_link"
    return TFMessage(transforms=[edge])


def test_fixed_frames_come_from_the_topic_of_the_simulator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each time that it starts, under whatever name, while others publish, too."""
    monkeypatch.setenv("ROS_DOMAIN_ID", str(DOMAIN))
    with closing(Client(DOMAIN)) as other, closing(Client(DOMAIN, "/a")) as own:
        other.node.create_publisher(TFMessage, "/tf_static", LATCHED).publish(fixed("cf0/wrong"))
        name = own.node.get_name()
        with closing(Follower(name, "/a")) as follower:
            for topic, child in (("/a/tf_static", "cf0/imu_link"), ("/a/b_static", "cf0/lidar")):
                frames = own.node.create_publisher(TFMessage, topic, LATCHED)
                frames.publish(fixed(child))
                states = own.node.create_publisher(
                    MultiDOFJointState, f"{name}/display/odometry", 1
                )
                own.until(lambda child=child: child in follower.frames, f"{child} of {topic}")
                own.node.destroy_publisher(states)
                own.node.destroy_publisher(frames)
                own.until(lambda: not follower.is_there, "the end of the simulator")
            assert "cf0/wrong" not in follower.frames
            assert not other.node.count_subscribers("/tf_static")
