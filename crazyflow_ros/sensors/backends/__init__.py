"""Sources of data for sensors: the mirror, MuJoCo, MJX, a Sim or the state of drones."""
