"""Policies: observation to action, as pure functions. No ROS, Gymnasium or MuJoCo."""
