"""Shared memory with controller managers: the simulator's end of the lock-step. No ROS."""
