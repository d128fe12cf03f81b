"""On the path of programs of ROS in simulated time."""
