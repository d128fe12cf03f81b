"""Policies: pure functions from observations to actions. They need no ROS, Gymnasium or MuJoCo."""

from crazyflow_ros.policy.action import Action
from crazyflow_ros.policy.eye import Eye
from crazyflow_ros.policy.flight import follow_policy
from crazyflow_ros.policy.network import Dense, Gru, Network, Patches, mlp
from crazyflow_ros.policy.observation import Motion, Observation
from crazyflow_ros.policy.policy import Policy, PolicyState
from crazyflow_ros.policy.policy_files import load, save

__all__ = [
    "Action",
    "Dense",
    "Eye",
    "Gru",
    "Motion",
    "Network",
    "Observation",
    "Patches",
    "Policy",
    "PolicyState",
    "follow_policy",
    "load",
    "mlp",
    "save",
]
