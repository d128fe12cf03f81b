"""Topics that the node publishes about the drones and itself."""

MODULES = ("clock", "display", "drone_states", "state_topics", "tf", "world_states")
"""Modules that extensions may import, with all their public names."""
