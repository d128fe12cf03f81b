"""Topics that the node publishes about the drones and itself."""
