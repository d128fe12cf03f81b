"""The drones of a running simulation as one compiled world. Uses JAX, and starts no threads."""

MODULES = ("config", "form", "initial_poses", "levels", "snapshot")
"""Modules that extensions may import, with all their public names."""
