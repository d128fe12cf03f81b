"""Flying a drone with the keyboard: `make fly` starts a simulator for it.

`python -m crazyflow_ros fly` does so in a running one. It needs only a terminal. Keys are published
as velocities on `cmd_vel`, as by teleoperation programs; when no key is pressed, the drone hovers.
"""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from crazyflow_ros.client.simulator_process import SimulatorError, SimulatorProcess, choose_domain

if TYPE_CHECKING:
    from crazyflow_ros.client import DroneClient, SimulatorClient

HELP = """
  w s   ahead, back            up down     climb, sink
  a d   left, right            left right  turn
  t     take off               l           land
  r     reset the drone        q           quit

On the floor, w a s d and the arrows take off first. The drone hovers when no key is pressed.
"""
SPEED, CLIMB, TURN = 0.8, 0.4, 1.2  # m/s, m/s, rad/s
_HELD = 0.25  # s for which a key press lasts; terminals repeat keys at 30 Hz after half a second
_PERIOD = 0.05  # s between two messages
_ERASED = "\r\x1b[K"  # erases the line of the cursor and moves to its start
_KEYS = {
    "w": (SPEED, 0.0, 0.0, 0.0),
    "s": (-SPEED, 0.0, 0.0, 0.0),
    "a": (0.0, SPEED, 0.0, 0.0),
    "d": (0.0, -SPEED, 0.0, 0.0),
    "\x1b[A": (0.0, 0.0, CLIMB, 0.0),
    "\x1b[B": (0.0, 0.0, -CLIMB, 0.0),
    "\x1b[D": (0.0, 0.0, 0.0, TURN),
    "\x1b[C": (0.0, 0.0, 0.0, -TURN),
}


def main() -> int:
    """Start a simulator, fly, and return the exit code."""
    if not sys.stdin.isatty():
        print("make fly needs a terminal with a keyboard", file=sys.stderr)
        return 2
    choose_domain()
    from crazyflow_ros.client import SimulationError, SimulatorClient
    from crazyflow_ros.ros.middleware import configure_middleware

    configure_middleware()
    log = Path("out") / "simulator.log"
    print(f"starting the simulator, which takes up to a minute the first time (log: {log})")
    try:
        with (
            SimulatorProcess({"drones": "[cf0]", "true_mass": "true"}, log) as simulator,
            SimulatorClient(check=simulator.check) as simulation,
        ):
            fly(simulation, simulation.drone("cf0"))
    except (SimulatorError, SimulationError) as error:
        print(f"\nFAILED: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        pass
    return 0


def fly(simulation: SimulatorClient, drone: DroneClient) -> None:
    """Fly a drone until a key ends it."""
    from geometry_msgs.msg import TwistStamped

    with _raw_keyboard():
        publisher = simulation.node.create_publisher(TwistStamped, f"{drone.name}/cmd_vel", 1)
        print(HELP.replace("\n", "\r\n"))
        velocity, until = (0.0, 0.0, 0.0, 0.0), 0.0
        while True:
            text = ""
            key, now = _key(_PERIOD), time.monotonic()
            if key in ("q", "\x03"):
                return
            if key in _KEYS:
                velocity, until = _KEYS[key], now + _HELD
            elif key in ("t", "l", "r"):
                until = 0.0  # otherwise the last velocity would override the command
                text = _command(drone, key)
            if now < until:
                message = TwistStamped()
                linear = message.twist.linear
                linear.x, linear.y, linear.z, message.twist.angular.z = velocity
                publisher.publish(message)
            if text := simulation.warnings() or text:
                print(f"{_ERASED}{text}")
            x, y, z = drone.position
            place = f"  x {x:6.2f}  y {y:6.2f}  z {z:6.2f} m"
            # A line as long as the terminal is wide would wrap. The variable COLUMNS may be
            # outdated.
            columns = os.get_terminal_size(sys.stdin.fileno()).columns or 80
            print(f"{_ERASED}{place[: columns - 1]}", end="", flush=True)


def _command(drone: DroneClient, key: str) -> str:
    """Make the drone take off or land, or reset it; return a refusal."""
    from crazyflow_ros.client import SimulationError

    try:
        match key:
            case "t":
                drone.start_takeoff(1.0)
            case "l":
                drone.start_landing()
            case "r":
                drone.reset()
    except SimulationError as error:
        return str(error)
    return ""


def _key(seconds: float) -> str:
    if not select.select([sys.stdin], [], [], seconds)[0]:
        return ""
    pressed = os.read(sys.stdin.fileno(), 64).decode(errors="replace")
    # Use the latest of several queued keys.
    return pressed[-3:] if pressed[-3:-1] == "\x1b[" else pressed[-1:]


@contextmanager
def _raw_keyboard() -> Iterator[None]:
    """Read keys without waiting for Enter; restore the terminal afterwards."""
    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
        print()


if __name__ == "__main__":
    sys.exit(main())
