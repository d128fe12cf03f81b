"""Descriptions of drones for ROS: URDF, xacro and ros2_control blocks. No ROS."""

MODULES = ("urdf",)
"""Modules that extensions may import, with all their public names."""
