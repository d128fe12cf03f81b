"""The sliders of failures show what a user has chosen only as long as the simulator has it."""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("viser", reason="the page needs viser")

from page_tab import frame_of

from crazyflow_ros.view.frame import Frame
from crazyflow_ros.view.panel.air_panel import AirPanel

MOTOR = "Rear left"


class Control:
    """An input of the page."""

    def __init__(self, label: str, value: Any = None) -> None:
        self.label, self.value, self.visible = label, value, True
        self._change: Any = None

    def on_update(self, change: Any) -> None:
        self._change = change

    def set(self, value: float) -> None:
        """Have a user set it."""
        self.value = value
        asyncio.run(self._change(SimpleNamespace(client="a tab", target=self)))


class Gui:
    """The inputs of the page, by label."""

    def __init__(self) -> None:
        self.inputs: dict[str, Control] = {}

    def add_folder(self, _: str) -> Any:
        return nullcontext(SimpleNamespace(label=""))

    def add_vector3(self, label: str, value: Any, **_: Any) -> Control:
        return self.inputs.setdefault(label, Control(label, value))

    def add_slider(self, label: str, initial_value: float, **_: Any) -> Control:
        return self.inputs.setdefault(label, Control(label, initial_value))


def frame(time: float, *drones: str) -> Frame:
    return frame_of(np.zeros((len(drones), 3)), drones, time)


@pytest.fixture
def resets() -> Counter[str]:
    return Counter()


@pytest.fixture
def sliders() -> dict[str, Control]:
    return {}


@pytest.fixture
def show(resets: Counter[str], sliders: dict[str, Control]) -> Callable[..., None]:
    """Show a drone in a frame of the simulator."""
    gui, requests = Gui(), SimpleNamespace(ask=lambda *_, **__: None)
    gui.inputs = sliders
    follower = SimpleNamespace(parameters={"battery": True})
    state = SimpleNamespace(resets=resets, follower=follower, requests=requests)
    return AirPanel(gui, state).update  # type: ignore[arg-type]


def test_a_choice_is_shown_for_its_drone_until_that_is_reset(
    show: Callable[..., None], sliders: dict[str, Control], resets: Counter[str]
) -> None:
    show(frame(5.0, "cf0", "cf1"), "cf1")
    sliders[MOTOR].set(0.3)
    sliders["Battery"].set(0.1)
    show(frame(5.1, "cf0", "cf1"), "cf0")
    assert sliders[MOTOR].value == sliders["Battery"].value == 1.0
    show(frame(5.2, "cf0", "cf1"), "cf1")
    assert (sliders[MOTOR].value, sliders["Battery"].value) == (0.3, 0.1)
    resets["cf1"] += 1
    show(frame(5.3, "cf0", "cf1"), "cf1")
    assert sliders[MOTOR].value == sliders["Battery"].value == 1.0


@pytest.mark.parametrize(
    "between",
    [
        pytest.param([None], id="the simulator restarts"),
        pytest.param([frame(4.0, "cf0", "cf1")], id="a checkpoint is loaded"),
        pytest.param([frame(5.1, "cf0")], id="the drone is replaced"),
        pytest.param([frame(6.0), frame(4.0, "cf0", "cf1")], id="all drones are replaced"),
    ],
)
def test_a_choice_is_forgotten_when_the_simulator_no_longer_has_it(
    show: Callable[..., None], sliders: dict[str, Control], between: list[Frame | None]
) -> None:
    show(frame(5.0, "cf0", "cf1"), "cf1")
    sliders[MOTOR].set(0.0)
    sliders["Battery"].set(0.0)
    for one in between:
        show(one, "cf1")
    show(frame(9.0, "cf0", "cf1"), "cf1")
    assert sliders[MOTOR].value == sliders["Battery"].value == 1.0
