"""Memory of controllers."""

from __future__ import annotations

from jax import Array

Memory = dict[str, tuple[Array, ...]]
"""Component arrays of one shape by name."""

RATES = "rates"
"""Name of the body rates that an attitude controller wants [rad/s], which nothing depends on."""
