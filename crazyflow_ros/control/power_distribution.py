"""What rotors do when they cannot give what a controller wants."""

from __future__ import annotations

from enum import StrEnum


class PowerDistribution(StrEnum):
    """What becomes of a thrust and torque that the rotors cannot give together."""

    clipped = "clipped"
    """Each rotor is limited by itself, as in Crazyflow: torque is lost, and the drone may flip."""
    capped = "capped"
    """All rotors are lowered by what the strongest exceeds its limit, as in the Crazyflie's
    firmware: thrust is lost, and the torque stays. Only at the bottom is each rotor limited by
    itself."""
    default = "clipped"
