"""What the mirror asks of the physics thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crazyflow_ros.scene import MirrorState

if TYPE_CHECKING:
    from crazyflow_ros.runtime.physics_thread import PhysicsThread

_TIMEOUT = 10.0  # s


class MirrorRequests:
    """See `scene.mirror.PhysicsRequests`; each call returns when it is done."""

    def __init__(self, physics: PhysicsThread) -> None:
        self._physics = physics

    def set_state(self, state: MirrorState) -> None:
        """Go on from a state."""
        self._physics.set_state(state).result(_TIMEOUT)

    def capture_initial_state(self) -> None:
        """Make the present state the initial one."""
        self._physics.capture_initial_state().result(_TIMEOUT)

    def reset(self) -> None:
        """Reset all drones."""
        self._physics.reset().result(_TIMEOUT)

    def notify_reset(self) -> None:
        """Drop staged controls and run the mirror's reset callback."""
        self._physics.notify_reset().result(_TIMEOUT)
