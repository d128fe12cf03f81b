"""What goes wrong with a real controller manager, and what is said of it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from real_manager import ACCURACY, CHAIN, Flight, Manager, State, flight
from ros_client import LATCHED, own_domain
from std_msgs.msg import Float64MultiArray, String

from crazyflow_ros.description.ros2_control import Hardware
from crazyflow_ros.description.urdf import urdf

DOMAIN = own_domain(__name__)
RATE = 500  # Hz
POSITION = [f"cf0_{name}" for name in CHAIN]
WAITING = [f"cf0_waiting_{name}" for name in CHAIN]
HOME = (0.5, 0.3, 1.0)


@pytest.fixture
def flown(tmp_path: Path) -> Iterator[tuple[Flight, Manager]]:
    """A drone that hovers at `HOME` under its position controller."""
    with (
        flight(DOMAIN, **{"ros2_control.rate": RATE}) as flying,
        Manager(flying.client, tmp_path, ["cf0"], RATE) as manager,
    ):
        manager.start(*POSITION)
        flying.fly_to(HOME)
        yield flying, manager


def test_the_manager_ends_at_ctrl_c_and_does_not_crash(flown: tuple[Flight, Manager]) -> None:
    """It would while its executor knows anything whose code is in the plugin's library."""
    flying, manager = flown
    code, _ = manager.end(signal.SIGINT)
    # The statistics thread of ros2_control_node 5.16 sometimes aborts it.
    assert code in (0, -signal.SIGABRT), manager.log
    flying.simulator.wait_for("cf0: its controller manager, process ")  # has left, in flight
    flying.positions(0.5)  # time runs on


def test_hardware_that_was_unconfigured_under_active_controllers_is_flown_on(
    flown: tuple[Flight, Manager],
) -> None:
    flying, manager = flown
    for _ in range(2):
        assert manager.set_hardware("cf0", State.PRIMARY_STATE_UNCONFIGURED), manager.log
        flying.positions(0.1)
        held = flying.positions(0.5)
        assert (held == held[0]).all()
        assert manager.states()["cf0_position"] == "active"
        assert not manager.switch(stop=POSITION)  # the manager's rule; else claims would be wrong
        assert manager.set_hardware("cf0", State.PRIMARY_STATE_ACTIVE), manager.log
        manager.wait_for("cf0: its controllers, active all the time, go on with accelerations")
        np.testing.assert_allclose(flying.positions(1.0)[-1], held[0], atol=ACCURACY)
        for goal in ((0.0, 0.0, 0.7), HOME):
            flying.fly_to(goal)
    assert manager.switch(stop=POSITION) and manager.switch(start=POSITION)
    flying.fly_to(HOME)
    assert flying.control()["refused_commands"] == 0


def test_ordinary_switches_are_not_refused_but_an_absurd_command_is(
    flown: tuple[Flight, Manager],
) -> None:
    flying, manager = flown
    manager.load(*WAITING, "cf0_attitude", "cf0_heading")
    for start, stop in (
        (["cf0_heading"], []),
        (WAITING, POSITION),  # of the same level, and without a command
        (POSITION, WAITING),
        (["cf0_attitude"], [*POSITION, "cf0_heading"]),
        (POSITION, ["cf0_attitude"]),
    ):
        assert manager.switch(start=start, stop=stop), manager.log
        flying.positions(0.1)
    assert flying.control()["refused_commands"] == 0
    assert "refused" not in flying.simulator.log
    flying.fly_to(HOME)
    assert manager.switch(start=["cf0_attitude"], stop=POSITION)
    # Stock controllers drop messages with NaN themselves.
    refusal = (
        "cf0: command roll 10000 rad, pitch 0 rad, yaw 0 rad, thrust 0.35 N is refused: level 2"
    )

    def refused() -> bool:
        # Their reader is best-effort: it may miss the first messages of a publisher.
        for values in ((0.35, 0.0, 0.0, 0.0), (0.35, 1e4, 0.0, 0.0)):
            message = Float64MultiArray(data=values)
            flying.client.publish("/cf0_attitude/commands", message)
            flying.positions(0.2)
        return refusal in flying.simulator.log

    flying.client.until(refused, "the refusal")
    held = flying.positions(0.5)
    assert (held == held[0]).all()  # `on_loss`
    assert flying.control()["refused_commands"] > 0
    assert manager.switch(start=POSITION, stop=["cf0_attitude"])
    flying.fly_to(HOME)


def test_an_impossible_shared_memory_is_refused_by_name(tmp_path: Path) -> None:
    """At once, and not when the plugin has looked for it for half a minute."""
    with flight(DOMAIN, **{"ros2_control.rate": RATE}) as flying:
        text = urdf("cf2x_L250", ["cf0"], Hardware.native, {"shared_memory": "/a/b"})
        publisher = flying.client.node.create_publisher(String, "/impossible", LATCHED)
        publisher.publish(String(data=text))
        with Manager(flying.client, tmp_path, ["cf0"], RATE, description="/impossible") as manager:
            manager.wait_for(
                "shared_memory: expected 1 to 200 letters, digits, '_', '.' or '-', got '/a/b'"
            )
