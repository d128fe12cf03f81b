"""Where sensors get their data: the mirror, MuJoCo, MJX, a Sim or the state of drones."""
