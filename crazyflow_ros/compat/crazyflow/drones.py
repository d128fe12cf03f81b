"""The drones that Crazyflow has; functions and `Sim` also accept the names of others."""

from enum import StrEnum

__all__ = ["Drone"]


class Drone(StrEnum):
    """Names of drones."""

    cf21B_500 = "cf21B_500"
    cf2x_L250 = "cf2x_L250"
    cf2x_P250 = "cf2x_P250"
    cf2x_T350 = "cf2x_T350"
    hb_x500 = "hb_x500"
