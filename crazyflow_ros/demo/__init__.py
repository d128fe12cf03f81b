"""A demonstration: a client that flies the simulated drones through ROS 2."""
