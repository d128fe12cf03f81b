"""Real flights, flown again in simulation and compared with what was recorded."""
