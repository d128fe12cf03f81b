"""How rotors limit a thrust and torque that they cannot give."""

from __future__ import annotations

from enum import StrEnum


class PowerDistribution(StrEnum):
    """How rotors limit a thrust and torque that they cannot give together."""

    clipped = "clipped"
    """Each rotor is limited by itself, as in Crazyflow: torque is lost, and the drone may flip."""
    capped = "capped"
    """All rotors are reduced by the excess of the strongest one, as in the Crazyflie's firmware:
    thrust is lost, and the torque stays. Only the lower limit applies to each rotor by itself."""
    default = "clipped"
