"""Geom groups with a meaning; MuJoCo's viewers and cameras show the groups 0, 1 and 2."""

COLLISION_GROUP = 3
"""Collision shapes of what is drawn by other geoms."""
UNUSED_GROUP = 5
"""The collision shape of a drone that is not used."""
