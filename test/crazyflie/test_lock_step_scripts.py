"""Scripts of cflib in simulated time: the same flight each time, and each packet at its time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent, indent

import numpy as np
import pytest
from crazyflie_helpers import free_port
from lock_step_flights import Flight, Flights, flights

from benchmark.scripts import CFLIB, cflib
from crazyflow_ros.crazyflie import LinkConfig
from crazyflow_ros.crazyflie.crtp import Port

pytestmark = pytest.mark.skipif(find_spec("cflib") is None, reason="cflib is not installed")


CONNECTED = """
import time
import cflib.crtp
from cflib.crazyflie import Crazyflie
from cflib.crazyflie.log import LogConfig
from cflib.crazyflie.syncCrazyflie import SyncCrazyflie
from cflib.utils import uri_helper
cflib.crtp.init_drivers()
with SyncCrazyflie(uri_helper.uri_from_env(), cf=Crazyflie(rw_cache="cache")) as scf:
    cf = scf.cf
"""


def connected(text: str) -> str:
    """A script that does something with a connected Crazyflie."""
    return CONNECTED + indent(dedent(text), "    ")


@pytest.fixture(scope="module")
def fleet() -> Iterator[Flights]:
    with flights(4) as found:
        yield found


def fly(fleet: Flights, text: str, folder: Path, link: LinkConfig | None = None) -> Flight:
    """Let a script fly that has to succeed."""
    flight = fleet.fly(text, folder, link)
    assert flight.code == 0, flight.err
    return flight


def test_a_loop_keeps_its_rate_exactly(fleet: Flights, tmp_path: Path) -> None:
    """On a busy computer too, where 100 Hz of wall time become less."""
    flight = fly(
        fleet,
        connected(
            """
            begin = time.monotonic()
            for i in range(300):
                cf.commander.send_hover_setpoint(0, 0, 0, 0.4)
                time.sleep(begin + 0.01 * (i + 1) - time.monotonic())
            """
        ),
        tmp_path / "1",
    )
    times = [d.time_ns for d in flight.sent if d.data[0] >> 4 == Port.setpoint]
    assert len(times) == 300
    assert set(np.diff(times)) <= {*range(9_999_000, 10_001_001)}


def test_values_arrive_at_the_time_of_their_stamp(fleet: Flights, tmp_path: Path) -> None:
    """Of blocks with several periods, also while the script sleeps, waits or computes."""
    flight = fly(
        fleet,
        connected(
            """
            from threading import Event
            for name, period in (("a", 10), ("b", 30), ("c", 1000)):
                block = LogConfig(name, period)
                block.add_variable("stateEstimate.z", "float")
                cf.log.add_config(block)
                def show(stamp, data, block):
                    print(block.name, stamp, round(time.monotonic() * 1e3))
                block.data_received_cb.add_callback(show)
                block.start()
            time.sleep(1.5)
            Event().wait(1.5)
            sum(range(10_000_000))
            time.sleep(0.0995)
            """
        ),
        tmp_path / "1",
    )
    rows = [line.split() for line in flight.out.splitlines()]
    assert all(stamp == now for _, stamp, now in rows)
    stamps = {name: [int(stamp) for n, stamp, _ in rows if n == name] for name in "abc"}
    assert set(np.diff(stamps["a"])) == {10} and 305 <= len(stamps["a"]) <= 315
    # The first one comes at once, the others at multiples of the period.
    assert set(np.diff(stamps["b"][1:])) == {30} and set(np.diff(stamps["c"][1:])) == {1000}


def test_a_late_link_is_late_in_simulated_time(fleet: Flights, tmp_path: Path) -> None:
    """Answers come after twice the latency."""
    text = connected(
        """
        scf.wait_for_params()
        cf.high_level_commander.takeoff(0.5, 1.0)
        time.sleep(3.0)
        name, done, begin = "stabilizer.estimator", [], time.monotonic()
        cf.param.request_param_update(name)
        cf.param.add_update_callback(*name.split("."), lambda *_: done.append(time.monotonic()))
        time.sleep(1.0)
        print(*(round(at - begin, 3) for at in done))
        """
    )
    flight = fly(fleet, text, tmp_path / "1", LinkConfig(latency=0.01))
    assert flight.out.split() == ["0.02"]


def test_the_same_packets_are_sent_again_each_time(fleet: Flights, tmp_path: Path) -> None:
    """None gets lost; the retries take time."""
    text = """
import os, socket, time
drone = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
drone.connect(("127.0.0.1", int(os.environ["CFLIB_URI"].rpartition(":")[2])))
begin = time.monotonic()
for i in range(256):
    drone.send(bytes([0xFC, i]))  # an echo
    assert drone.recv(64)[1] == i
    print(round(time.monotonic() - begin, 6))
"""
    heard = [
        fly(fleet, text, tmp_path / name, LinkConfig(loss=0.2, seed=seed)).out
        for name, seed in (("1", 1), ("2", 1), ("3", 2))
    ]
    assert heard[0] == heard[1] != heard[2]


@pytest.mark.parametrize("sender", ["loc", "supervisor"])
def test_texts_and_the_watchdog_of_an_emergency_come_in_simulated_time(
    fleet: Flights, tmp_path: Path, sender: str
) -> None:
    flight = fly(
        fleet,
        connected(
            f"""
            cf.console.receivedChar.add_callback(
                lambda text: print(round(time.monotonic() - begin, 3), text, end="")
            )
            begin = time.monotonic()
            cf.{sender}.send_emergency_stop_watchdog()
            cf.high_level_commander.takeoff(0.5, 0.5)
            time.sleep(5.0)
            """
        ),
        tmp_path / "1",
    )
    said = [line for line in flight.out.splitlines() if "watchdog" in line]
    assert len(said) == 1 and 1.0 < float(said[0].split()[0]) < 1.11, flight.out


def test_other_programs_are_refused_by_name(fleet: Flights, tmp_path: Path) -> None:
    """A process of the script has its own time: what it sends would come at any moment."""
    flight = fly(
        fleet,
        connected(
            """
            import subprocess, sys
            send = "import socket, sys; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); " \\
                "s.sendto(b'\\\\x3c', ('127.0.0.1', int(sys.argv[1])))"
            port = cf.link_uri.rpartition(":")[2]
            subprocess.run([sys.executable, "-c", send, port], check=True)
            for _ in range(50): time.sleep(1.0)
            """
        ),
        tmp_path / "1",
    )
    assert any(
        re.fullmatch(
            r"cf0: packets of another program, 127\.0\.0\.1:\d+, are ignored: in lock-step, only "
            "the process of the script flies drones",
            line,
        )
        for line in flight.log
    ), flight.log


@pytest.mark.soak
@pytest.mark.parametrize("options", ["", "--estimator kalman --wind 1 0 0"])
@pytest.mark.parametrize("name", CFLIB)
def test_every_example_ends_at_the_same_place(tmp_path: Path, name: str, options: str) -> None:
    """As `python -m benchmark.scripts cflib` flies them."""
    first, second = (cflib(name, tmp_path / i, *options.split(), port=free_port(10)) for i in "12")
    assert first.code == second.code == 0, first.text
    assert first.ends and first.ends == second.ends
