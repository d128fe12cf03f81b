"""Descriptions of drones for ROS: URDF, xacro and ros2_control blocks. No ROS."""
