"""The drones of a running simulation as one compiled world. JAX, and no thread."""
