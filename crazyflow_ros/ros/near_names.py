"""Names that resemble our topics and services: tells typos from names of other programs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import SequenceMatcher, get_close_matches

_LIKE = 0.75  # least similarity of the last parts of two names
_NEAR = 0.6  # least similarity of their namespaces

# What other robots have as well: a topic of that name in another namespace is theirs.
_COMMON = {
    *("cmd_vel", "goal_pose", "clicked_point", "command", "wrench", "poses"),
    *("arm", "land", "reset", "pause", "step", "emergency"),
    *("describe_parameters", "get_parameter_types", "get_parameters", "list_parameters"),
    *("set_parameters", "set_parameters_atomically", "get_type_description"),
}
_OF_RVIZ = ("goal_pose", "clicked_point")  # it publishes them, whether or not somebody uses them


class NearNames:
    """Finds the name of ours that was probably meant.

    Args:
        ours: Types that we take, by full name, such as /cf0/cmd_pose.
        drones: Full names of the drones, such as /cf0.
        node: Full name of the simulator, such as /crazyflow.
    """

    def __init__(
        self, ours: Mapping[str, Collection[str]], drones: Sequence[str], node: str
    ) -> None:
        self._ours, self._drones, self._node = ours, drones, node
        self._owners: dict[str, dict[str, Collection[str]]] = {}  # by last part, by namespace
        for name, kinds in ours.items():
            owner, _, last = name.rpartition("/")
            self._owners.setdefault(last, {})[owner] = kinds
        self._like: dict[str, list[str]] = {}

    def meant(self, name: str, kind: str) -> str:
        """Return the name probably meant; empty for one that is ours or somebody else's."""
        if name in self._ours:
            return ""
        owner, _, last = name.rpartition("/")
        for like in self._similar(last):
            found = self._owner(owner, like, kind, exact=like == last)
            if found is not None:
                return f"{found}/{like}"
        return ""

    def _similar(self, last: str) -> list[str]:
        if last not in self._like:
            known = [last] if last in self._owners else []
            self._like[last] = known or get_close_matches(last, self._owners, cutoff=_LIKE)
        return self._like[last]

    def _owner(self, owner: str, last: str, kind: str, *, exact: bool) -> str | None:
        """Return the namespace that was probably meant, or None.

        Args:
            owner: The namespace that was given.
            last: Last part of a name of ours.
            kind: The type that was given.
            exact: Whether that last part was given, too.
        """
        owners = self._owners[last]
        if owner in owners:
            return owner
        first = next((drone for drone in self._drones if drone in owners), next(iter(owners)))
        is_own = last not in _COMMON
        if owner in ("", self._node):  # the drone is missing
            fits = exact and last not in _OF_RVIZ and (is_own or kind in owners[first])
            return first if fits else None
        # A namespace too many, or one that is missing.
        if parts := [own for own in owners if own and (owner.endswith(own) or own.endswith(owner))]:
            return max(parts, key=len)
        nearest = _nearest(owner, owners)
        if nearest is None and exact and is_own and kind in owners[first]:
            return first
        return nearest


def _nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the most similar name, the first of several, if one is similar."""
    matcher = SequenceMatcher(b=name.casefold())
    found, best = None, _NEAR
    for other in known:
        matcher.set_seq1(other.casefold())
        if matcher.quick_ratio() > best and matcher.ratio() > best:
            found, best = other, matcher.ratio()
    return found
