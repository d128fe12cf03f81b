"""The commands with which people begin, typed as the README and guides/fly.md have them.

A journey fails on any line above INFO, in the terminal or in the simulator's log, and on a drone
that did not land where its commands bring it down. Time is faster than in front of the users, and
most commands run in this process: that they are processes, too, the shorter journeys tell.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from above_info import complaints
from browser import COARSE, Tab, needs_browser
from command_processes import command
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from keyboard_pilot import ANSWER, START, Keyboard
from page_commands import blocks
from paths import ROOT
from ros_client import Client, RosProcess, own_domain, time_ns
from rosgraph_msgs.msg import Clock

from benchmark.chromium import open_chromium

pytest.importorskip("crazyflie_interfaces.srv", reason="crazyflie_interfaces is not installed")

README, FLY = ROOT / "README.md", ROOT / "docs" / "guides" / "fly.md"
DOMAIN = own_domain(__name__)
T = 300.0  # s, a machine may be slow and busy
AFTER = 12.0  # s of simulated time for which drones are looked at that have landed
LOG, PLOT = ROOT / "out" / "simulator.log", ROOT / "out" / "flight.png"
BUSY = "sensors: readings were left out"  # as on a machine that does other things, too
# Of a `make test`: make gives them to its children, as variables of the environment, too.
NO_OPTIONS = {"MAKEFLAGS": "", "ARGS": "", "CAMERAS": "", "VIEW": ""}

IS_MADE = subprocess.run(["make", "-q", ".venv/.ready"], cwd=ROOT, check=False).returncode == 0
pytestmark = pytest.mark.skipif(not IS_MADE, reason="make has no environment here, make setup")


def complaints_of_the_simulator() -> list[str]:
    """The lines above INFO in the log of the simulator of the latest demonstration."""
    return [line for line in LOG.read_text().splitlines() if not line.startswith("[INFO] ")]


def states(status: DiagnosticArray) -> dict[str, str]:
    """What each drone does, by its name."""
    values = {pair.key: pair.value for pair in status.status[0].values}
    prefix = "state of "
    return {k.removeprefix(prefix): v for k, v in values.items() if k.startswith(prefix)}


def test_the_readme_begins_with_these_commands() -> None:
    """The last one is what runs this."""
    first, second = blocks(README)[:2]
    assert first[:4] == ["make sim", "make sim VIEW=1", "make fly", "make demo-sensors"]
    assert first[4:] == ["make docs", "make test"]
    assert len(second) == 3


def accelerate(client: Client, factor: float) -> None:
    """Let time pass so many times as fast as on a wall; 0: as fast as it can."""
    assert client.set_parameter("real_time_factor", factor).successful


def test_make_sim() -> None:
    PLOT.unlink(missing_ok=True)
    with (
        RosProcess(["make", "sim"], DOMAIN, NO_OPTIONS) as made,
        closing(Client(DOMAIN)) as client,
    ):
        made.wait_for(" ready\n", T)
        accelerate(client, 0.0)
        assert made.wait(T) == 0
        assert "cf3" in made.log and "messages received" in made.log
        assert complaints(made.log) == [] and complaints_of_the_simulator() == []
    assert PLOT.stat().st_size > 10_000


@needs_browser
def test_make_sim_with_a_page() -> None:
    pytest.importorskip("viser", reason="the extra view is not installed")
    with (
        RosProcess(["make", "sim", "VIEW=1"], DOMAIN, NO_OPTIONS) as made,
        closing(Client(DOMAIN)) as client,
        open_chromium() as browser,
    ):
        made.wait_for("The page is at ", T)
        (url,) = re.findall(r"The page is at (\S+)", made.log)
        tab = Tab(browser, f"{url}?{COARSE}")
        made.wait_for(" ready\n", T)
        accelerate(client, 4.0)
        status = client.collect(DiagnosticArray, "crazyflow/status")
        events = client.collect(DiagnosticStatus, "crazyflow/flight_events")
        clock = client.collect(Clock, "/clock")
        drones = [f"cf{i}" for i in range(4)]
        client.until(
            lambda: status and states(status[-1]) == dict.fromkeys(drones, "flying"), "a flight", T
        )
        client.until(lambda: "the simulation goes on" in made.log, "the end of the flight", T)
        end = time_ns(clock[-1].clock) + round(AFTER * 1e9)
        client.until(lambda: time_ns(clock[-1].clock) > end, "the time after the flight", T)
        status.clear()
        assert states(client.until(lambda: status, "a status", T)[0]) == dict.fromkeys(
            drones, "landed"
        )
        tab.page.get_by_text("running", exact=True).wait_for()
        assert tab.page.locator(".alarm").count() == 0 and tab.errors == [] and not events
        tab.close()
        (demo,) = (
            Path(f"/proc/{made.process.pid}/task/{made.process.pid}/children").read_text().split()
        )
        os.kill(int(demo), signal.SIGINT)
        made.wait(T)
        assert complaints(made.log) == [] and complaints_of_the_simulator() == []


def test_make_fly() -> None:
    with Keyboard(["make", "fly"], DOMAIN, ROOT) as pilot:
        pilot.until(lambda: True, timeout=START)
        pilot.type(b"t")
        pilot.until(lambda: pilot.place[2] > 0.9)
        pilot.until(lambda: pilot.place[0] > 0.5, b"w")
        pilot.until(lambda: pilot.place[2] < 0.03, b"\x1b[B")  # held down, as one lands by hand
        for _ in range(5):
            pilot.until(lambda: True, b"\x1b[B")
        pilot.type(b"q")
        assert pilot.process.wait(ANSWER) == 0
        assert complaints(pilot.shown.decode()) == [] and complaints_of_the_simulator() == []


def test_make_demo_sensors() -> None:
    with (
        RosProcess(["make", "demo-sensors"], DOMAIN, NO_OPTIONS) as made,
        closing(Client(DOMAIN)) as client,
    ):
        made.wait_for("flying through the room", T)
        accelerate(client, 4.0)
        assert made.wait(T) == 0
        said = complaints(made.log) + complaints_of_the_simulator()
        assert [line for line in said if BUSY not in line] == []


class Terminals:
    """A simulator in one terminal, and a second terminal for all else.

    Args:
        start: The command that starts the simulator.
    """

    def __init__(self, start: str) -> None:
        self.simulator = RosProcess(shlex.split(start), DOMAIN)
        self.client = Client(DOMAIN)

    def type(self, line: str) -> str:
        """Carry out a command to its end; returns what it has printed."""
        with RosProcess(shlex.split(line), DOMAIN) as done:
            assert done.wait(T) == 0, f"{line}: {done.log}"
            assert complaints(done.log) == []
            return done.log

    def ask(self, line: str) -> str:
        """As `type`, in this process; one of `ros2` by that of ours which has the same words."""
        match shlex.split(line):
            case [".venv/bin/python", "-m", "crazyflow_ros", *words]:
                pass
            case ["ros2", "service", "call", name, _, *request]:
                words = ["call", name, *request]
            case ["ros2", "topic", "pub", "--once", name, kind, message]:
                words = ["pub", name, "--once", "--type", kind, message]
            case _:
                raise AssertionError(f"no command of ours is like {line}")
        done = command(shlex.join(words))
        assert done.returncode == 0, f"{line}: {done.stderr}"
        assert complaints(done.stdout + done.stderr) == []
        return done.stdout

    def states(self) -> dict[str, str]:
        """What each drone does now, as the command `list` says."""
        rows = self.ask(".venv/bin/python -m crazyflow_ros list").splitlines()[1:]
        return {row.split()[0]: re.split(r"  +", row)[1] for row in rows}

    def close(self) -> None:
        """Ctrl-C in the first terminal, in which nothing above INFO may be."""
        self.client.close()
        with self.simulator as simulator:
            assert simulator.end(signal.SIGINT)[0] == 0
            assert complaints(simulator.log) == []


@pytest.fixture
def terminals(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Terminals]:
    monkeypatch.setenv("ROS_DOMAIN_ID", str(DOMAIN))  # of commands in this process
    with closing(Terminals(request.param)) as opened:
        opened.simulator.wait_for("ready: ", T)
        yield opened


@pytest.mark.parametrize("terminals", [blocks(README)[1][0]], indirect=True)
def test_the_simulator_alone_and_a_second_terminal(terminals: Terminals) -> None:
    _, takeoff, get_help = blocks(README)[1]
    assert "cf0 hovers at" in terminals.type(takeoff)
    assert "takeoff" in terminals.type(get_help)
    assert terminals.states() == {"cf0": "flying", "cf1": "idle"}
    terminals.ask(".venv/bin/python -m crazyflow_ros land cf0")
    assert terminals.states() == {"cf0": "landed", "cf1": "idle"}


@pytest.mark.parametrize("terminals", [".venv/bin/python -m crazyflow_ros"], indirect=True)
def test_the_guide_to_commands(terminals: Terminals) -> None:
    square, gamepad, pause = blocks(FLY)
    assert gamepad[0].startswith("ros2 run teleop_twist_keyboard ")  # of another package
    accelerate(terminals.client, 4.0)
    for line in square:
        terminals.ask(line)
        terminals.client.pass_time(6.0)  # "wait until the drone has arrived"
    assert terminals.states() == {"cf0": "landed"}

    accelerate(terminals.client, 1.0)  # for keys that a terminal repeats
    assert f"`{BY_HAND}`" in FLY.read_text()
    with Keyboard(shlex.split(BY_HAND), DOMAIN, ROOT) as pilot:
        pilot.until(lambda: pilot.place[2] > 0.4, b"\x1b[A")
        pilot.type(b"l")
        pilot.until(lambda: pilot.place[2] < 0.03)
        pilot.type(b"q")
        assert pilot.process.wait(ANSWER) == 0
        assert complaints(pilot.shown.decode()) == []

    for line in pause:
        terminals.ask(line)
    for word in ("pause", "step 5", "reset", "resume"):
        terminals.ask(f".venv/bin/python -m crazyflow_ros {word}")
    assert terminals.states() == {"cf0": "idle"}


BY_HAND = ".venv/bin/python -m crazyflow_ros fly cf0"
