"""Errors of Crazyflow's; those in arguments are also a ValueError, as elsewhere in this package."""


class CrazyflowError(Exception):
    """Base class of Crazyflow's errors."""


class ConfigError(CrazyflowError, ValueError):
    """Arguments that do not fit together."""


class NotInitializedError(CrazyflowError):
    """Something was used before it was built."""
