"""Shared memory with controller managers: the simulator's side of the lock-step. No ROS."""
