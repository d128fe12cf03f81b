"""Members of `PhysicsThread` in version 0.2, and where they are now."""

from __future__ import annotations

import warnings
from operator import attrgetter
from typing import Any

NOW = {"flight_states": "commands.states"} | {
    name: f"{part}.{name}"
    for part, names in (
        ("state", "reset set_drone_states edit_state capture_initial_state notify_reset"),
        ("state", "checkpoint restore"),
        ("world", "spawn despawn set_scene set_obstacles disturb set_controller"),
        ("world", "obstacles controller wind"),
        ("firmware", "restart set_upright tune untune restart_estimate tell_pose"),
        ("news", "on_reset on_restore on_change on_disturbance on_setting on_command on_wrench"),
        ("news", "on_flight_event on_failure"),
        ("mirror.requests", "apply_controls controls set_state"),
        ("loop", "busy stepping"),
        ("snapshot", "names epoch"),
    )
    for name in names.split()
}


def found(thread: object, name: str) -> Any:
    """Return what was a member of a physics thread, with a warning that says where it is.

    Raises:
        AttributeError: There was no member of that name.
    """
    if name not in NOW:
        raise AttributeError(f"{type(thread).__name__!r} object has no attribute {name!r}")
    warnings.warn(f"{name} is now {NOW[name]}", DeprecationWarning, stacklevel=3)
    return attrgetter(NOW[name])(thread)
