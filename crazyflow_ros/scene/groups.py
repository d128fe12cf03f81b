"""Geom groups with a meaning; MuJoCo's viewers and cameras show the groups 0, 1 and 2."""

COLLISION_GROUP = 3
"""Collision shapes of bodies that other geoms draw."""
DRAWINGS = 2
"""Geoms that are only visual, by MuJoCo's convention; range sensors do not see them."""
UNUSED_GROUP = 5
"""Collision shapes of drones that are not in use."""
