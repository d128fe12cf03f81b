"""The values of the parameter `interfaces`."""

from __future__ import annotations

from enum import StrEnum


class Interfaces(StrEnum):
    """When a drone has topics and services of its own."""

    each = "each"
    """Always."""
    swarm = "swarm"
    """While another node publishes, subscribes or calls below the name of the drone."""
    none = "none"
    """Never."""
