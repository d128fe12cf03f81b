"""Demonstrations: clients that fly the simulated drones through ROS 2."""
