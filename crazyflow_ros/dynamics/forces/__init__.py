"""Forces and contacts that act on drones."""
