"""How service calls are answered: late, again, and after the end of a drone."""
