"""The drones of a running simulation as one compiled world. Uses JAX, and starts no threads."""
