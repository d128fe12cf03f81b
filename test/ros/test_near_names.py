"""Which names of other nodes are ours, misspelt, and which are theirs."""

from __future__ import annotations

import pytest

from crazyflow_ros.ros.near_names import NearNames

POSE, TWIST, STAMPED = (
    f"geometry_msgs/msg/{kind}" for kind in ("PoseStamped", "Twist", "TwistStamped")
)
HOVER, TAKEOFF, TRIGGER = (
    "crazyflie_interfaces/msg/Hover",
    "crazyflie_interfaces/srv/Takeoff",
    "std_srvs/srv/Trigger",
)
OF_DRONES = {
    "cmd_pose": [POSE],
    "cmd_vel": [STAMPED, TWIST],
    "cmd_vel_legacy": [TWIST],
    "cmd_hover": [HOVER],
    "goal_pose": [POSE],
    "command": ["std_msgs/msg/Float64MultiArray"],
    "takeoff": [TAKEOFF],
    "land": ["crazyflie_interfaces/srv/Land"],
    "reset": [TRIGGER],
}


def near(prefix: str = "", drones: tuple[str, ...] = ("cf0", "cf1", "eva")) -> NearNames:
    ours = {
        f"{prefix}/{drone}/{last}": kinds for drone in drones for last, kinds in OF_DRONES.items()
    }
    ours |= {f"{prefix}/sim/{last}": [TRIGGER] for last in ("reset", "step", "save_checkpoint")}
    ours |= {f"{prefix}/sim/get_parameters": ["rcl_interfaces/srv/GetParameters"]}
    return NearNames(ours, [f"{prefix}/{drone}" for drone in drones], f"{prefix}/sim")


@pytest.mark.parametrize(
    ("name", "kind", "meant"),
    [
        # the last part is misspelt
        ("/eva/cmd_psoe", POSE, "/eva/cmd_pose"),
        ("/cf1/cmdpose", POSE, "/cf1/cmd_pose"),
        ("/cf1/cmd_vell", STAMPED, "/cf1/cmd_vel"),
        ("/cf0/take_off", TAKEOFF, "/cf0/takeoff"),
        ("/cf0/Land", TRIGGER, "/cf0/land"),
        ("/sim/save_checkpoints", TRIGGER, "/sim/save_checkpoint"),
        # the drone is
        ("/cf7/cmd_vel", TWIST, "/cf0/cmd_vel"),
        ("/ewa/goal_pose", POSE, "/eva/goal_pose"),
        ("/CF1/takeoff", TAKEOFF, "/cf1/takeoff"),
        ("/cf_1/cmd_hover", HOVER, "/cf1/cmd_hover"),
        ("/simu/get_parameters", "rcl_interfaces/srv/GetParameters", "/sim/get_parameters"),
        # both are
        ("/cf3/cmd_hovr", HOVER, "/cf0/cmd_hover"),
        # there is a namespace too many, or the drone is missing
        ("/sim/eva/cmd_pose", POSE, "/eva/cmd_pose"),
        ("/world/cf1/cmd_vel", STAMPED, "/cf1/cmd_vel"),
        ("/cmd_vel", TWIST, "/cf0/cmd_vel"),
        ("/sim/takeoff", TAKEOFF, "/cf0/takeoff"),
        ("/reset", TRIGGER, "/cf0/reset"),
        # nobody else has such a topic
        ("/quad/cmd_pose", POSE, "/cf0/cmd_pose"),
        ("/quad/takeoff", TAKEOFF, "/cf0/takeoff"),
    ],
)
def test_what_was_meant_is_found(name: str, kind: str, meant: str) -> None:
    assert near().meant(name, kind) == meant


def test_a_namespace_that_is_missing_is_found() -> None:
    assert near("/lab").meant("/cf1/cmd_pose", POSE) == "/lab/cf1/cmd_pose"
    assert near("/lab").meant("/lab/cf1/cmd_pse", POSE) == "/lab/cf1/cmd_pose"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("/cf0/cmd_pose", POSE),  # is ours
        ("/turtle1/cmd_vel", TWIST),
        ("/tb3/cmd_vel", STAMPED),
        ("/husky/goal_pose", POSE),
        ("/goal_pose", POSE),  # RViz
        ("/initialpose", POSE),
        ("/uav/command", "std_msgs/msg/Float64MultiArray"),
        ("/cf0/camera/image", "sensor_msgs/msg/Image"),
        ("/cf0/pose", POSE),
        ("/eva/target", POSE),
        ("/eva/cmd_led", "std_msgs/msg/Int32"),
        ("/odom", "nav_msgs/msg/Odometry"),
        ("/scan", "sensor_msgs/msg/LaserScan"),
        ("/robot/takeoff", TRIGGER),
        ("/arm_controller/reset", TRIGGER),
        ("/camera/get_parameters", "rcl_interfaces/srv/GetParameters"),
        ("/rosout_agg", "rcl_interfaces/msg/Log"),
        ("/", ""),
    ],
)
def test_what_is_theirs_is_left_alone(name: str, kind: str) -> None:
    assert near().meant(name, kind) == ""


def test_without_names_of_ours_nothing_resembles_them() -> None:
    assert NearNames({}, (), "/sim").meant("/cf0/cmd_pose", POSE) == ""
