"""Random walks across the features of a simulator: `make journeys`."""

from journeys import (  # noqa: F401  all kinds of steps
    air_steps,
    flight_steps,
    side_steps,
    time_steps,
    world_steps,
)
