"""crazyswarm2's own programs, unmodified, against our server.

The variable CRAZYSWARM2 names a checkout of https://github.com/IMRCLab/crazyswarm2; nothing has to
be built there.
"""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from crazyswarm import SERVER, ServerProcess, configuration
from geometry_msgs.msg import Twist
from ros_client import Client, RosProcess, numbers, own_domain, stamp_ns, tick_of, time_ns
from std_srvs.srv import Trigger
from tf2_msgs.msg import TFMessage

CHECKOUT = Path(os.environ.get("CRAZYSWARM2", ""))
pytestmark = [
    pytest.mark.skipif(
        "CRAZYSWARM2" not in os.environ, reason="CRAZYSWARM2 names no checkout of crazyswarm2"
    ),
    pytest.mark.skipif(find_spec("rowan") is None, reason="crazyflie_py needs the package rowan"),
]

DOMAIN = own_domain(__name__)
FACTOR = float(os.environ.get("CRAZYSWARM2_FACTOR", "3"))
FIGURE8_FACTOR = float(os.environ.get("CRAZYSWARM2_FIGURE8_FACTOR", "0.5"))
STANDING = 0.014  # m
PATHS = [CHECKOUT / name for name in ("crazyflie_py", "crazyflie_examples", "systemtests")]
LIMIT = 120.0  # s of wall time
FIRST, SECOND = "cf231", "cf5"  # whom `swap` knows by their numbers


class Flights:
    """What both drones have done since the last reset."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._messages = client.collect(TFMessage, "/tf")

    def reset(self) -> None:
        tick = tick_of(self.client.call(Trigger, f"{SERVER}/reset"))
        self._begin = stamp_ns(tick) * 1e-9
        self._messages.clear()

    def of(self, drone: str) -> np.ndarray:
        """Times and positions of a drone, (K, 4)."""
        found = [
            (time_ns(transform.header.stamp) * 1e-9, *numbers(transform.transform.translation))
            for message in self._messages
            for transform in message.transforms
            if transform.child_frame_id == drone
        ]
        return np.array([row for row in found if row[0] > self._begin])

    def heights(self, drone: str = FIRST) -> np.ndarray:
        return self.of(drone)[:, 3]

    def end(self, drone: str) -> np.ndarray:
        return self.of(drone)[-1, 1:]


def program(example: str, stdin: int | None = None) -> RosProcess:
    """One of the examples."""
    path = os.pathsep.join([*map(str, PATHS), os.environ.get("PYTHONPATH", "")])
    script = f"from crazyflie_examples.{example} import main; main()"
    arguments = ("--ros-args", "-p", "use_sim_time:=true")
    command = [sys.executable, "-c", script, *arguments]
    return RosProcess(command, DOMAIN, {"PYTHONPATH": path, "MPLBACKEND": "Agg"}, stdin)


def run(flights: Flights, example: str) -> None:
    """Run an example to its end; meanwhile note how the drones fly."""
    with program(example) as process:
        flights.client.until(lambda: process.process.poll() is not None, example, LIMIT)
        assert process.process.returncode == 0, process.log
        assert "exception raised" not in process.log and "keyError" not in process.log, process.log


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    content = configuration(FIRST, SECOND)
    content["robots"][SECOND]["uri"] = "radio://0/80/2M/E7E7E7E705"
    with ServerProcess(DOMAIN, tmp_path_factory.mktemp("server"), content) as process:
        yield process


@pytest.fixture(scope="module")
def client(server: ServerProcess) -> Iterator[Client]:
    client = Client(DOMAIN, simulator=SERVER)
    yield client
    client.close()


@pytest.fixture
def flights(client: Client) -> Flights:
    assert client.set_parameter("real_time_factor", FACTOR).successful
    flights = Flights(client)
    flights.reset()
    return flights


def stand(flights: Flights) -> bool:
    ends = [flights.end(drone)[2] for drone in (FIRST, SECOND)]
    return ends == pytest.approx([STANDING, STANDING], abs=5e-3)


def until_they_stand(flights: Flights) -> None:
    """Scripts end when the landing should; a drone then sinks to the floor."""
    flights.client.until(lambda: stand(flights), "standing on the floor")


def test_hello_world(flights: Flights) -> None:
    run(flights, "hello_world")
    highest = max(flights.heights(drone).max() for drone in (FIRST, SECOND))
    assert highest == pytest.approx(1.0, abs=0.05)
    until_they_stand(flights)


def test_nice_hover(flights: Flights) -> None:
    """It waits for a key."""
    ours, theirs = pty.openpty()
    with program("nice_hover", theirs) as process:

        def hovers() -> bool:
            return flights.of(SECOND).size and abs(flights.heights(SECOND)[-50:] - 1.0).max() < 0.03

        flights.client.until(hovers, "hovering", LIMIT)

        def has_ended() -> bool:
            os.write(ours, b"x")  # again and again: the script drops keys that come too early
            return process.process.poll() is not None

        flights.client.until(has_ended, "landing", LIMIT)
        assert process.process.returncode == 0, process.log
    until_they_stand(flights)
    os.close(ours)


def test_figure8(flights: Flights, tmp_path: Path) -> None:
    """Their system test, with the condition that it means: it asserts a tuple, which is true."""
    # What the script asks for has to come at the times of the plan, also from a busy computer.
    assert flights.client.set_parameter("real_time_factor", FIGURE8_FACTOR).successful
    run(flights, "figure8")
    until_they_stand(flights)
    record = flights.of(FIRST)
    # Their plotter takes it that a recording of a simulation begins 0.15 s before the take-off,
    # of which half of the way and of the time are over at 0.5 m.
    takeoff = record[np.argmax(record[:, 3] > 0.5), 0] - 1.0
    record = record[record[:, 0] >= takeoff - 0.15]
    record[:, 0] -= record[0, 0]
    table = tmp_path / "figure8.csv"
    lines = [",".join(map(str, row)) for row in record.tolist()]
    table.write_text("\n".join(["# t, x, y, z", *lines, "### takeoff time : None"]))
    script = (
        "import sys; from plotter_class import Plotter; plotter = Plotter(sim_backend=True); "
        "plotter.create_figures('figure8_ideal_traj.csv', sys.argv[1], sys.argv[2]); "
        "sys.exit(not plotter.test_passed()[0])"
    )
    command = [sys.executable, "-c", script, str(table), str(tmp_path / "figure8.pdf")]
    path = os.pathsep.join(map(str, PATHS))
    environment = {**os.environ, "PYTHONPATH": path, "MPLBACKEND": "Agg"}
    plotter = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert plotter.returncode == 0, plotter.stdout + plotter.stderr
    print(plotter.stdout)


def test_multi_trajectory(flights: Flights) -> None:
    run(flights, "multi_trajectory")
    for drone in (FIRST, SECOND):
        way = flights.of(drone)
        in_the_air = way[way[:, 3] > 0.9]
        assert np.ptp(in_the_air[:, 1:3], axis=0).max() > 0.5
    until_they_stand(flights)


def test_cmd_full_state(flights: Flights) -> None:
    run(flights, "cmd_full_state")
    ways = {drone: flights.of(drone) for drone in (FIRST, SECOND)}
    flown = max(ways, key=lambda drone: ways[drone][:, 3].max())
    assert np.ptp(ways[flown][:, 1]) > 1.5  # the width of the figure eight
    until_they_stand(flights)


def test_swap(flights: Flights) -> None:
    run(flights, "swap")
    for drone, side in ((FIRST, 1), (SECOND, -1)):
        y = flights.of(drone)[:, 2]
        # They pass 10 cm above one another: the air pushes and tilts the lower one.
        assert y.min() == pytest.approx(-0.2, abs=0.1)
        assert y.max() == pytest.approx(0.4 if drone == SECOND else 0.2, abs=0.1)
        assert flights.end(drone)[1] == pytest.approx(0.2 * side, abs=0.05)
    until_they_stand(flights)


def test_goto_unicast(flights: Flights) -> None:
    run(flights, "goto_unicast")
    for drone, begin in ((FIRST, 0.0), (SECOND, 0.4)):
        way = flights.of(drone)
        assert way[:, 1].max() == pytest.approx(0.5, abs=0.05)
        assert way[:, 2].max() == pytest.approx(begin + 0.5, abs=0.05)
    until_they_stand(flights)


def test_group_mask(flights: Flights) -> None:
    """The first take-off is for others, the second one for these."""
    run(flights, "group_mask")
    for drone in (FIRST, SECOND):
        way = flights.of(drone)
        assert way[:, 3].max() == pytest.approx(0.5, abs=0.05)
        assert (way[:, 3] > 0.1).sum() < 100 * 7.0  # of 12 s in all
    until_they_stand(flights)


def test_arming(flights: Flights) -> None:
    run(flights, "arming")
    until_they_stand(flights)


def test_set_param(flights: Flights, server: ServerProcess) -> None:
    with program("set_param") as process:
        assert process.wait() == 0, process.log
        assert "keyError" not in process.log


def test_vel_mux(flights: Flights) -> None:
    """Teleoperation: takes off, flies ahead at 0.5 m, turns, and lands.

    As in the firmware, Mellinger's controller would hold the height and not fly ahead.
    """
    controller = "all.params.stabilizer.controller"
    assert flights.client.set_parameter(controller, 1).successful
    publisher = flights.client.node.create_publisher(Twist, "/cmd_vel", 10)

    def send(**linear: float) -> None:
        twist = Twist()
        for axis, value in linear.items():
            setattr(twist.linear, axis, value)
        publisher.publish(twist)

    def flies_ahead() -> bool:
        send(x=0.3)
        ways = [flights.of(drone) for drone in (FIRST, SECOND)]
        return any(found.size and found[-1, 1] > 0.5 for found in ways)

    def has_landed() -> bool:
        send(z=-0.1)
        return stand(flights)

    with program("vel_mux") as process:
        flights.client.until(flies_ahead, "flying ahead", LIMIT)
        assert process.process.poll() is None, process.log
        flights.client.until(has_landed, "landing", LIMIT)
    flights.client.node.destroy_publisher(publisher)
    assert flights.client.set_parameter(controller, 2).successful
