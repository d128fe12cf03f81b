"""Steps of walks: plain values, so that a walk can be kept, cut short and walked again."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from journeys.model import Model

if TYPE_CHECKING:
    from journeys.walk import Walk

KINDS: dict[str, type[Step]] = {}
"""All kinds of steps, by name."""


class Broken(AssertionError):
    """Something that has to hold does not.

    Args:
        what: Kind of the failure, the same for each walk that fails in this way.
        text: What is wrong.
    """

    def __init__(self, what: str, text: str = "") -> None:
        super().__init__(f"{what}: {text}" if text else what)
        self.what = what


@dataclass(frozen=True)
class Step:
    """One step of a walk."""

    weight: ClassVar[float] = 1.0
    """How often it is drawn."""

    def __init_subclass__(cls) -> None:
        if "take" in vars(cls):
            KINDS[cls.__name__] = cls

    @classmethod
    def draw(cls, model: Model, rng: random.Random) -> Self | None:
        """A random step of this kind, which need not fit; None: there is none now."""
        return cls()

    def fits(self, walk: Walk) -> bool:
        """Whether it can be taken now: a walk that was cut short lacks steps that came before."""
        return True

    def take(self, walk: Walk) -> None:
        """Do it, and say in the model what it changes.

        Raises:
            Broken: It does not do what it should.
        """
        raise NotImplementedError


def line_of(step: Step) -> str:
    """A step as a line of a file."""
    return json.dumps([type(step).__name__, asdict(step)])


def step_of(line: str) -> Step:
    """The step of a line of a file.

    Raises:
        ValueError: There is no such step.
    """
    name, values = json.loads(line)
    if name not in KINDS:
        raise ValueError(f"there is no step {name!r}, have {', '.join(sorted(KINDS))}")
    return KINDS[name](**{key: _hashable(value) for key, value in values.items()})


def _hashable(value: Any) -> Any:
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


def names_of(step: Step) -> set[str]:
    """Its kind, and all texts in it, such as names of worlds and sensors."""
    return {type(step).__name__, *re.findall(r'"(\w+)"', line_of(step))}


def save(path: Path, steps: Iterable[Step]) -> None:
    """Write a walk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line_of(step)}\n" for step in steps))


def load(path: Path) -> list[Step]:
    """Read a walk."""
    return [step_of(line) for line in path.read_text().splitlines() if line.strip()]


def choose(rng: random.Random, among: Sequence[Any] | Iterable[Any]) -> Any:
    """One of some, or None if there are none."""
    found = list(among)
    return rng.choice(found) if found else None
