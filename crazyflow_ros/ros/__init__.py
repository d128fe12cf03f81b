"""The node: the simulation in ROS 2, one feature per module."""
