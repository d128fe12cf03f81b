"""Policies, which fly drones in place of the controllers. An extension reads their files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from crazyflow_ros.checks.entry_points import load

if TYPE_CHECKING:
    from crazyflow_ros.sim.sim import Sim

POLICY = "policy"
"""Name of a policy's memory in `SimData.plugins`, (N, M, k). After an output that is not a number,
the memory and all further commands are NaN until a reset, and the rotors stand still."""
MOST_BYTES = 16 * 2**20
"""Largest size of a file with a policy."""


class FlyingPolicy(Protocol):
    """A policy as the controller of drones in state control, whose commands are its goals."""

    @property
    def freq(self) -> int:
        """Commands per second."""

    @property
    def description(self) -> str:
        """What flies the drones, for the log."""

    def check(self, freq: int, control: str, dynamics: str, flown_by: str) -> None:
        """Check that the policy can fly the drones of a node.

        Args:
            freq: Ticks per second, the value of the parameter, like the next two.
            control: Control mode.
            dynamics: Dynamics.
            flown_by: Name and value of the parameter by which others fly the drones; may be empty.

        Raises:
            ParameterError: The policy cannot fly them.
        """

    def fly(self, sim: Sim) -> None:
        """Fly the drones of a simulation in state control.

        Raises:
            ValueError: The policy cannot fly them.
        """


def policy_of(file: str, drone: str) -> FlyingPolicy:
    """Read a policy from a file, whose content is not trusted.

    Args:
        file: Path of the file.
        drone: Model of the drones to fly.

    Raises:
        ParameterError: The file is missing or is not a policy, or files of this kind need a package
            that is not installed; the message says what is wrong.
    """
    policy: FlyingPolicy = load("crazyflow_ros.policies", "file", "reader of policies")(file, drone)
    return policy
