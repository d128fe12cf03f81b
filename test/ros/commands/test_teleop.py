"""The program teleop_twist_keyboard, as it is, in a terminal of its own: keys fly a drone."""

from __future__ import annotations

import os
import pty
import signal
import sys
from collections.abc import Callable, Iterator

import pytest
from nav_msgs.msg import Odometry
from ros_client import Client, RosProcess, numbers, own_domain

pytest.importorskip("teleop_twist_keyboard", reason="teleop_twist_keyboard is not installed")

DOMAIN = own_domain("test_teleop")
PERIOD = 0.05  # s, between two keys that are held down
WAIT = 60.0  # s


class Keyboard(RosProcess):
    """The program, and the terminal in which somebody types."""

    def __init__(self) -> None:
        self._keys, terminal = pty.openpty()
        remapping = ["--ros-args", "-r", "cmd_vel:=/cf0/cmd_vel"]
        program = [sys.executable, "-m", "teleop_twist_keyboard", *remapping]
        super().__init__(program, DOMAIN, stdin=terminal)
        os.close(terminal)

    def press(self, key: str) -> None:
        """Press a key."""
        os.write(self._keys, key.encode())


@pytest.fixture
def keyboard() -> Iterator[Keyboard]:
    with Keyboard() as keyboard:
        yield keyboard


def test_keys_fly_a_drone_and_it_hovers_when_the_program_dies(
    client: Client, keyboard: Keyboard
) -> None:
    odometry = client.collect(Odometry, "cf0/odom")

    def place() -> tuple[float, float, float]:
        odometry.clear()
        client.until(lambda: odometry, "odometry")
        x, y, z = numbers(odometry[-1].pose.pose.position)
        return x, y, z

    def hold(key: str, until: str, condition: Callable[..., bool]) -> None:
        def there() -> bool:
            keyboard.press(key)
            client.spin_for(PERIOD)
            return condition(*place())

        client.until(there, until, WAIT)

    hold("t", "a drone that has risen", lambda x, y, z: z > 0.8)
    hold("i", "a drone that is ahead", lambda x, y, z: x > 0.5)
    hold("J", "a drone that is on the left", lambda x, y, z: y > 0.5)
    keyboard.process.send_signal(signal.SIGKILL)

    def still() -> bool:
        place()
        return float(abs(numbers(odometry[-1].twist.twist.linear)).max()) < 0.02

    client.until(still, "a drone at rest", WAIT)
    x, y, z = place()
    assert x > 0.5 and y > 0.5 and z > 0.7
    client.pass_time(1.0)
    assert place() == pytest.approx((x, y, z), abs=0.05)
