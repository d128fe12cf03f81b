"""The firmware's supervisor in flight: scripts of cflib end as on a real drone.

Each situation of supervisor_situations.toml that a script can bring about is flown in simulated
time, with cflib as it is; its course is that of the firmware's sources.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from lock_step_flights import Flight, Flights, flights
from supervisor_situations import situations

from crazyflow_ros.flight import FlightConfig, FlightState

pytestmark = pytest.mark.skipif(find_spec("cflib") is None, reason="cflib is not installed")

SUPERVISOR = 0x0FF  # bits that the supervisor's state decides
LATE = 120  # ms by which rotors that start and packets may delay what follows
UNFLOWN = ("acc", "rpm")  # of events: no script can bring them about
# The plan begins when the stream ends here, and when the command comes in the firmware.
LATER = "a landing, and then the end of the stream"
SCRIPT = """
import json, sys, time
import cflib.crtp
from cflib.crazyflie import Crazyflie
from cflib.crazyflie.log import LogConfig
from cflib.crazyflie.syncCrazyflie import SyncCrazyflie
from cflib.utils import uri_helper
cflib.crtp.init_drivers()
events = json.loads(sys.argv[1])
with SyncCrazyflie(uri_helper.uri_from_env(), cf=Crazyflie(rw_cache="cache")) as scf:
    cf = scf.cf
    scf.wait_for_params()
    hl, c, s, param = cf.high_level_commander, cf.commander, cf.supervisor, cf.param
    bits, said = [], []
    block = LogConfig("bits", 20)
    block.add_variable("supervisor.info", "uint16_t")
    block.add_variable("stateEstimate.z", "float")
    cf.log.add_config(block)
    def show(stamp, data, _):
        bits.append((stamp, data["supervisor.info"], data["stateEstimate.z"]))
    block.data_received_cb.add_callback(show)
    text = [""]
    def hear(part):
        text[0] += part
        while "\\n" in text[0]:
            line, _, text[0] = text[0].partition("\\n")
            said.append((round(time.monotonic() * 1e3), line))
    cf.console.receivedChar.add_callback(hear)
    block.start()
    # The updates of the supervisor are at multiples of 40 ms.
    while round(time.monotonic() * 1e3) % 40:
        time.sleep(1e-3)
    begin = time.monotonic()
    do = {
        "takeoff": lambda t: hl.takeoff(0.5, float(t)),
        "land": lambda t: hl.land(0.0, float(t)),
        "go_to": lambda t: hl.go_to(0.3, 0, 0.5, 0, float(t)),
        "stop": hl.stop,
        "setpoint": lambda: c.send_position_setpoint(0, 0, 0.5, 0),
        "thrust": lambda: (c.send_setpoint(0, 0, 0, 0), c.send_setpoint(0, 0, 0, 40000)),
        "zero": c.send_stop_setpoint,
        "notify": c.send_notify_setpoint_stop,
        "arm": lambda: s.send_arming_request(True),
        "disarm": lambda: s.send_arming_request(False),
        "recover": s.send_crash_recovery_request,
        "emergency": s.send_emergency_stop,
        "watchdog": s.send_emergency_stop_watchdog,
        "set": lambda name, value: param.set_value(name, value),
        "end": lambda: None,
    }
    for at, what, values in events:
        time.sleep(max(0.0, begin + at * 1e-3 - time.monotonic()))
        do[what](*values)
    time.sleep(0.3)
    ms = round(begin * 1e3)
    print(json.dumps([[(at - ms, *rest) for at, *rest in rows] for rows in (bits, said)]))
    cf.close_link()
"""


def flown(platform: str) -> list[dict[str, Any]]:
    """The situations of a platform that scripts bring about."""
    return [
        situation
        for situation in situations()
        if situation["platform"] == platform
        and situation["name"] != LATER
        and not any(event.split()[1] in UNFLOWN for event in situation["events"])
    ]


BRUSHED, BRUSHLESS = flown("brushed"), flown("brushless")


@pytest.fixture(scope="module")
def brushed() -> Iterator[Flights]:
    with flights(1) as found:
        yield found


@pytest.fixture(scope="module")
def brushless() -> Iterator[Flights]:
    flight = FlightConfig(exact_durations=True, auto_arm=False)
    with flights(1, drone_model="cf21B_500", flight=flight) as found:
        yield found


def fly(fleet: Flights, situation: Mapping[str, Any], folder: Path) -> Flight:
    events = []
    for line in situation["events"]:
        at, what, *values = line.split()
        if what == "stream":
            for time in range(int(at), int(at) + int(values[0]), 20):
                events.append((time, "setpoint", []))
        else:
            events.append((int(at), what, values))
    flight = fleet.fly(SCRIPT, folder, arguments=[json.dumps(sorted(events, key=lambda e: e[0]))])
    assert flight.code == 0, flight.err
    return flight


def changes(rows: Sequence[tuple[int, int]], until: int) -> list[tuple[int, int]]:
    """When the supervisor's bits change, and to what, from time 0 on."""
    now = [(at, bits & SUPERVISOR) for at, bits in rows if at <= until]
    begin = [each for each in now if each[0] <= 0][-1:]
    rows = begin + [each for each in now if each[0] > 0]
    return [next(iter(group)) for _, group in groupby(rows, key=lambda each: each[1])]


def check(fleet: Flights, situation: Mapping[str, Any], folder: Path) -> list[list[float]]:
    """Fly a situation, and compare its course with the firmware's; return the log."""
    flight = fly(fleet, situation, folder)
    log, console = json.loads(flight.out)
    end = int(situation["events"][-1].split()[0])
    table = [line.split() for line in situation["bits"]]
    expected = changes([(int(at), int(bits, 16)) for at, bits in table], end)
    found = changes([(at, bits) for at, bits, _ in log], end + LATE)
    assert [bits for _, bits in found][: len(expected)] == [bits for _, bits in expected]
    for (at, bits), (due, _) in list(zip(found, expected))[1:]:
        assert -40 <= at - due <= LATE, (hex(bits), at, due)
    says = [line for at, line in console if line.startswith("SUP: ") and 0 <= at <= end + LATE]
    due = [line.partition(" ")[2] for line in situation["console"]]
    assert says == due or says[: len(due)] == due
    return log


@pytest.mark.parametrize("situation", BRUSHED, ids=[each["name"] for each in BRUSHED])
def test_a_brushed_drone_does_as_the_firmware(
    brushed: Flights, situation: Mapping[str, Any], tmp_path: Path
) -> None:
    check(brushed, situation, tmp_path)


@pytest.mark.parametrize("situation", BRUSHLESS, ids=[each["name"] for each in BRUSHLESS])
def test_a_brushless_drone_does_as_the_firmware(
    brushless: Flights, situation: Mapping[str, Any], tmp_path: Path
) -> None:
    check(brushless, situation, tmp_path)


def test_enough_situations_are_flown() -> None:
    assert len(BRUSHED) + len(BRUSHLESS) >= 50


def test_a_flight_in_silence_is_the_same_each_time(
    brushed: Flights, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    situation = next(each for each in BRUSHED if each["name"] == "silence after a stream")
    first, second = (fly(brushed, situation, tmp_path / name) for name in "12")
    assert first == second
    assert any("locks it: no setpoint for 2 s" in line for line in caplog.messages)
    assert brushed.physics.commands.states["cf0"] is FlightState.locked
