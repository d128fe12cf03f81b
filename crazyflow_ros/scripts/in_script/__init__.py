"""On the path of scripts in simulated time."""
