"""Dataclasses of plain values: where defaults and ranges come from, and what is refused."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any

import numpy as np
import pytest

from crazyflow_ros.checks.plain_values import (
    Names,
    Spec,
    convert,
    declarations,
    from_values,
    plain,
    values_of,
)


class Colour(StrEnum):
    red = "red"
    blue = "blue"


Share = Annotated[float, Spec("share", 0.0, 1.0)]


@dataclass(frozen=True)
class Lamp:
    power: Annotated[int, Spec("W", 1, 10**12)] = 40
    rooms: Annotated[Names, Spec("where")] = ("hall",)
    serial: int = 7


@dataclass(frozen=True)
class House:
    lit: Annotated[bool, Spec("whether it is lit")] = False
    lamp: Lamp = field(default_factory=Lamp)


@dataclass(frozen=True)
class LitHouse(House):
    lit: bool = True


@dataclass(frozen=True)
class Kept:
    colour: Colour
    point: tuple[int, float, float]
    shares: dict[str, Share | None]
    anything: Any = None

    def __post_init__(self) -> None:
        if self.colour is Colour.blue and not self.shares:
            raise ValueError("blue needs shares")


GOOD = {"colour": "red", "point": [1, 2, 3.5], "shares": {"a": 0.5, "b": None}}


def test_a_subclass_changes_a_default_and_keeps_the_rest() -> None:
    dark, lit = (list(declarations(kind)) for kind in (House, LitHouse))
    assert [d.name for d in lit] == ["lit", "lamp.power", "lamp.rooms"]  # and no serial
    assert [d._replace(default=None) for d in lit] == [d._replace(default=None) for d in dark]
    assert [d.default for d in dark] == [False, 40, ("hall",)]
    assert [d.default for d in lit] == [True, 40, ("hall",)]


def test_values_are_those_with_a_spec() -> None:
    house = LitHouse(lamp=Lamp(60, serial=8))
    values = values_of(house)
    assert values == {"lit": True, "lamp.power": 60, "lamp.rooms": ("hall",)}
    assert from_values(LitHouse, values) == LitHouse(lamp=Lamp(60))


def test_plain_values_have_lists() -> None:
    given = {"a": (1, np.arange(3)), "b": [np.float64(0.5), None], "c": "text"}
    assert plain(given) == {"a": [1, [0, 1, 2]], "b": [0.5, None], "c": "text"}


def test_a_dataclass_says_what_is_taken() -> None:
    kept = convert(GOOD, Kept, "kept")
    assert kept == Kept(Colour.red, (1, 2.0, 3.5), {"a": 0.5, "b": None})
    assert isinstance(kept.colour, Colour)
    assert convert(GOOD | {"anything": [{}]}, Kept, "").anything == [{}]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"colour": "green"}, "kept.colour: expected one of red, blue, got 'green'"),
        ({"colour": []}, "kept.colour: expected one of red, blue, got []"),
        ({"point": [1, 2]}, "kept.point: expected a list of a whole number and 2 numbers, got [1"),
        ({"point": [1.5, 2, 3]}, "kept.point: expected a whole number, got 1.5"),
        ({"shares": {"a": 2}}, "kept.shares.a: expected a number from 0 to 1, got 2"),
        ({"shares": {"a": float("nan")}}, "kept.shares.a: expected a number from 0 to 1, got nan"),
        ({"shares": {"a": "all"}}, "kept.shares.a: expected a number, got 'all'"),
        ({"shares": [0.5]}, "kept.shares: expected values by name, got [0.5]"),
        ({"shares": {1: 0.5}}, "kept.shares: expected values by name, got {1: 0.5}"),
        ({"shapes": {}}, "kept: there is no field 'shapes', only colour, point, shares, anything;"),
        ({"colour": "blue", "shares": {}}, "kept: blue needs shares"),
    ],
)
def test_what_does_not_fit_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        convert(GOOD | changes, Kept, "kept")


def test_what_is_missing_is_named() -> None:
    with pytest.raises(ValueError, match=r"kept: 'point' is missing in \{'colour': 'red'\}"):
        convert({"colour": "red"}, Kept, "kept")
