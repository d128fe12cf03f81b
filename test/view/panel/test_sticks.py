"""Keys and gamepads of several tabs become the velocity of one drone."""

import math
from collections.abc import Sequence
from typing import Any

import pytest

from crazyflow_ros.view.panel.sticks import Sticks, StickVelocity


class Clock:
    """Wall time that stands still until it is changed."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sticks(clock: Clock) -> Sticks:
    return Sticks(clock)


def message(*keys: str, axes: Sequence[Any] = ()) -> dict[str, Any]:
    return {"keys": list(keys), "axes": list(axes)}


@pytest.mark.parametrize(
    ("key", "axis", "sign"),
    [
        ("KeyW", "x", 1), ("KeyS", "x", -1), ("KeyA", "y", 1), ("KeyD", "y", -1),
        ("KeyR", "z", 1), ("KeyF", "z", -1), ("KeyQ", "turn", 1), ("KeyE", "turn", -1),
    ],
)  # fmt: skip
def test_a_key_moves_along_one_axis(sticks: Sticks, key: str, axis: str, sign: int) -> None:
    sticks.take(1, message(key))
    velocity = sticks.velocity(1.0)
    assert velocity is not None
    moves = {name: value for name, value in vars(velocity).items() if value}
    assert moves.keys() == {axis} and moves[axis] * sign > 0


W, S, NOTHING = message("KeyW"), message("KeyS"), message()
AHEAD, BACK, STOP = (StickVelocity(speed, 0.0, 0.0, 0.0) for speed in (1.0, -1.0, 0.0))


@pytest.mark.parametrize(
    ("told", "velocities"),
    [
        pytest.param([], [None], id="nobody flies at first"),
        pytest.param([(1, W), (1, NOTHING)], [AHEAD, STOP, None], id="letting go stops once"),
        pytest.param([(1, W), (1, None)], [AHEAD, STOP, None], id="a tab closes"),
        pytest.param([(1, W), (2, S), (1, W)], [AHEAD, BACK, AHEAD], id="the last tab flies"),
        pytest.param([(1, W), (2, NOTHING)], [AHEAD, AHEAD], id="another tab holds nothing"),
        pytest.param([(1, message("KeyW", "KeyS"))], [None], id="opposite keys cancel"),
    ],
)
def test_tabs_fly_until_they_let_go(
    sticks: Sticks, told: list[tuple[int, Any]], velocities: list[StickVelocity | None]
) -> None:
    """After each message, and once more after the last one."""
    for k, expected in enumerate(velocities):
        if k < len(told):
            sticks.take(*told[k])
        assert sticks.velocity(1.0) == expected


def test_a_tab_that_says_nothing_lets_go(sticks: Sticks, clock: Clock) -> None:
    sticks.take(1, W)
    sticks.velocity(1.0)
    clock.now += 0.6
    assert sticks.velocity(1.0) == STOP


def test_two_keys_are_not_faster_than_one(sticks: Sticks) -> None:
    sticks.take(1, message("KeyW", "KeyA"))
    velocity = sticks.velocity(2.0)
    assert velocity is not None
    assert math.hypot(velocity.x, velocity.y) == pytest.approx(2.0)


def test_a_gamepad_flies_as_in_mode_2(sticks: Sticks) -> None:
    sticks.take(1, message(axes=[0.0, -1.0, 0.0, 0.0]))  # left stick up
    up = sticks.velocity(1.0)
    sticks.take(1, message(axes=[0.0, 0.0, 0.5, 0.0]))  # right stick to the right
    right = sticks.velocity(1.0)
    assert up is not None and up.z > 0 and right == StickVelocity(0.0, -0.5, 0.0, 0.0)


def test_the_switch_counts_once_while_it_is_held(sticks: Sticks) -> None:
    sticks.take(1, message("Space"))
    sticks.take(1, message("Space"))
    assert sticks.switched() and not sticks.switched()
    sticks.take(1, message())
    sticks.take(1, message("Space"))
    assert sticks.switched()


@pytest.mark.parametrize(
    "content",
    [
        "", [], 3, "KeyW", {"keys": "KeyW"}, {"keys": {"KeyW": 1}}, {"axes": {}},
        *({"axes": [axis, 0, 0, 0]} for axis in (math.inf, math.nan, 5, True, "1")),
    ],
)  # fmt: skip
def test_what_is_not_understood_changes_nothing(sticks: Sticks, content: Any) -> None:
    sticks.take(1, content)
    assert sticks.velocity(1.0) is None
    sticks.take(1, W)
    sticks.take(1, content)
    assert sticks.velocity(1.0) == AHEAD


@pytest.mark.parametrize("keys", [[None], [["KeyW"]], [{"a": 1}], ["__class__"], [1e308]])
def test_unknown_keys_are_ignored(sticks: Sticks, keys: list[Any]) -> None:
    sticks.take(1, {"keys": keys})
    assert sticks.velocity(1.0) is None
