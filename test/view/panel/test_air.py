"""The sliders of failures show what a user has chosen only as long as the simulator has it."""

from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("viser", reason="the page needs viser")

from page_tab import frame_of

from crazyflow_ros.view.controls import PageControl, PageControls, User
from crazyflow_ros.view.frame import Frame
from crazyflow_ros.view.panel.air_panel import AirPanel
from crazyflow_ros.view.shell import Shell

MOTOR = "Rear left"
USER = User(Shell(), 1)


def use(slider: PageControl, value: float) -> None:
    """Have a user set a slider."""
    slider.set(value=value)
    for listener in slider.listeners:
        listener(USER, value)


def frame(time: float, *drones: str) -> Frame:
    return frame_of(np.zeros((len(drones), 3)), drones, time)


@pytest.fixture
def resets() -> Counter[str]:
    return Counter()


@pytest.fixture
def sliders() -> dict[str, PageControl]:
    return {}


@pytest.fixture
def show(resets: Counter[str], sliders: dict[str, PageControl]) -> Callable[..., None]:
    """Show a drone in a frame of the simulator."""
    panel, requests = PageControls(Shell()), SimpleNamespace(ask=lambda *_, **__: None)
    follower = SimpleNamespace(parameters={"battery": True})
    state = SimpleNamespace(resets=resets, follower=follower, requests=requests)
    shown = AirPanel(panel, state)  # type: ignore[arg-type]
    sliders |= {control.label: control for control in shown._controls}
    return shown.update


def test_a_choice_is_shown_for_its_drone_until_that_is_reset(
    show: Callable[..., None], sliders: dict[str, PageControl], resets: Counter[str]
) -> None:
    show(frame(5.0, "cf0", "cf1"), "cf1")
    use(sliders[MOTOR], 0.3)
    use(sliders["Battery"], 0.1)
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
    show: Callable[..., None], sliders: dict[str, PageControl], between: list[Frame | None]
) -> None:
    show(frame(5.0, "cf0", "cf1"), "cf1")
    use(sliders[MOTOR], 0.0)
    use(sliders["Battery"], 0.0)
    for one in between:
        show(one, "cf1")
    show(frame(9.0, "cf0", "cf1"), "cf1")
    assert sliders[MOTOR].value == sliders["Battery"].value == 1.0
