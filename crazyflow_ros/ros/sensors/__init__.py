"""Topics of the sensors that the sensors file adds."""
