"""Scripts in simulated time: programs of cflib and of ROS that run while the simulation waits."""
