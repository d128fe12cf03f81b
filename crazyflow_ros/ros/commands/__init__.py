"""Topics and services that command drones."""
