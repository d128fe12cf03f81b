"""Errors of the client."""


class SimulationError(RuntimeError):
    """A request that the simulator did not fulfil; the message has the reason."""


class NoSimulator(SimulationError):
    """There is no simulator of the wanted name; the message has the names of others."""
