"""Names of drones in messages and requests for several drones, and what some of them refuse."""

from __future__ import annotations

from collections.abc import Sequence

from crazyflow_ros.checks import limits

_LISTED = 5  # drones in a message


def check_names(field: str, names: Sequence[str], present: Sequence[str]) -> None:
    """Refuse names of drones that are missing, unknown or duplicate.

    Raises:
        ValueError: They are; the message names the field.
    """
    if not names:
        raise ValueError(f"{field} is empty, expected names of drones")
    known = frozenset(present)
    for name in names:
        if name not in known:
            raise ValueError(f"{field}: {limits.unknown('drone', name, present)}")
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise ValueError(f"{field}: {twice} is there twice")


def refusal(refused: Sequence[str], n_drones: int) -> str:
    """Return a message with the first refusals of drones, when the others are commanded."""
    more = f"; and {len(refused) - _LISTED} more" if len(refused) > _LISTED else ""
    others = "; the others are commanded" if len(refused) < n_drones else ""
    return f"{'; '.join(refused[:_LISTED])}{more}{others}"
