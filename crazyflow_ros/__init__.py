"""Quadrotor simulator for ROS 2, and a batched, differentiable one for plain Python."""
