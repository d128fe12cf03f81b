"""The firmware's supervisor over drones that others push, put and command. Time is stepped."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
import pytest
from crazyflie_helpers import Crazyflies, Link, crazyflies, until

from crazyflow_ros.crazyflie.crtp import Packet, Port
from crazyflow_ros.flight import (
    Arm,
    Emergency,
    FlightConfig,
    FlightState,
    Hover,
    NotifySetpointsStop,
    NullSetpoint,
    Takeoff,
)
from crazyflow_ros.flight.firmware_setpoints import unplanned
from crazyflow_ros.runtime import DroneState

T = 60.0  # s
FREQ = 500
UPSIDE_DOWN = (np.sin(1.6), 0.0, 0.0, np.cos(1.6))
CAN_BE_ARMED, ARMED, AUTO, CAN_FLY, FLYING, TUMBLED, LOCKED, CRASHED = (1 << i for i in range(8))
READY = ARMED | AUTO | CAN_FLY
ECHO = Packet(Port.link, 0, b"echo")


@pytest.fixture(scope="module")
def served() -> Iterator[Crazyflies]:
    flight = FlightConfig(exact_durations=True)
    options = {"setpoint_modes": True, "controller": "pid", "flight": flight}
    with crazyflies(2, start_paused=True, **options) as found:
        yield found


@pytest.fixture
def link(served: Crazyflies) -> Iterator[Link]:
    served.physics.state.reset().result(T)
    served.log.clear()
    found = Link(served.uris[0])
    yield found
    found.close()


def step(served: Crazyflies, seconds: float) -> None:
    served.physics.step(round(seconds * FREQ)).result(T)


def state(served: Crazyflies) -> FlightState:
    return served.physics.commands.states.get("cf0", FlightState.idle)


def info(link: Link) -> int:
    """The bits that the state of the supervisor decides."""
    data = link.ask(Packet(Port.supervisor, 0, b"\x0c")).data
    return int.from_bytes(data[1:], "little") & 0xFF


def takeoff(served: Crazyflies, link: Link) -> None:
    order = struct.pack("<BBff?f", 7, 0, 1.0, 0.0, True, 2.0)
    assert link.ask(Packet(Port.high_level, 0, order)).data[3] == 0
    step(served, 3.0)
    assert info(link) == READY | FLYING
    assert served.physics.snapshot.pos[0, 2] == pytest.approx(1.0, abs=0.15)  # the PID overshoots


def put(served: Crazyflies, **values: object) -> None:
    still = {"vel": np.zeros(3), "ang_vel": np.zeros(3)}
    fallen = DroneState(**still | values)  # type: ignore[arg-type]
    served.physics.state.set_drone_states({"cf0": fallen}).result(T)


def test_a_drone_that_lies_on_its_back_is_stopped_by_its_firmware(
    served: Crazyflies, link: Link
) -> None:
    """Its pilot hears of the crash before. It recovers once somebody has set it upright."""
    takeoff(served, link)
    put(served, pos=(0.0, 0.0, 0.03), quat=UPSIDE_DOWN)
    step(served, 1.0)
    assert info(link) == AUTO | TUMBLED | CRASHED
    assert state(served) is FlightState.crashed
    told = [line for line in served.log if "crash" in line or "firmware" in line]
    assert "upside down; its rotors turn until its firmware stops them" in told[0]
    assert any("its firmware stops its rotors: it tumbled" in line for line in told)
    step(served, 3.0)
    assert link.ask(Packet(Port.supervisor, 1, b"\x02")).data == b"\x82\x01\x01"
    step(served, 0.5)
    assert info(link) == READY and state(served) is FlightState.landed
    takeoff(served, link)


def test_a_drone_that_is_put_on_its_feet_is_not_recovered(served: Crazyflies, link: Link) -> None:
    """Until its program asks for it: commands are refused as the firmware does."""
    takeoff(served, link)
    put(served, pos=(0.0, 0.0, 0.03), quat=UPSIDE_DOWN)
    step(served, 1.0)
    put(served, pos=(0.0, 0.0, 0.014), quat=(0.0, 0.0, 0.0, 1.0))
    step(served, 1.0)
    assert info(link) == AUTO | CRASHED
    order = struct.pack("<BBff?f", 7, 0, 1.0, 0.0, True, 2.0)
    assert link.ask(Packet(Port.high_level, 0, order)).data[3] == 16  # EBUSY
    assert link.ask(Packet(Port.platform, 0, b"\x02")).data == b"\x02\x01\x01"
    step(served, 0.5)
    assert info(link) == READY


def test_what_others_command_counts_too(served: Crazyflies, link: Link) -> None:
    """As a node's services and topics do: an emergency stop, arming, a stream and its end."""
    takeoff(served, link)
    served.physics.fly({"cf0": Arm(False)}).result(T)
    step(served, 0.1)
    assert state(served) is FlightState.landed
    step(served, 3.0)  # it arms itself, and flies in its own eyes for 2 s after the last thrust
    assert info(link) == READY
    assert not served.physics.fly({"cf0": Takeoff(0.5, 1.0)}).result(T).refused
    step(served, 2.0)
    assert info(link) == READY | FLYING
    served.physics.command("cf0", unplanned(Hover((0.0, 0.0), 0.0, 0.5)))
    step(served, 0.4)
    served.physics.fly({"cf0": NullSetpoint()}).result(T)
    step(served, 0.1)
    assert served.physics.snapshot.vel[0, 2] < -0.2  # it falls
    step(served, 3.0)
    assert info(link) == READY and state(served) is FlightState.landed
    served.physics.fly({"cf0": Emergency()}).result(T)
    until(lambda: state(served) is FlightState.locked, "an emergency stop")
    step(served, 4.0)  # a landed drone waits for its disarming
    assert info(link) == AUTO | LOCKED
    (refused,) = served.physics.fly({"cf0": Takeoff(0.5)}).result(T).refused
    assert "it is locked" in refused


def test_the_end_of_a_stream_that_never_was_changes_nothing(served: Crazyflies, link: Link) -> None:
    takeoff(served, link)
    for end in (NullSetpoint(), NotifySetpointsStop()):
        served.physics.fly({"cf0": end}).result(T)
        link.send(Packet(Port.setpoint, 1, bytes(5)))
        step(served, 0.5)
        assert served.physics.snapshot.pos[0, 2] == pytest.approx(1.0, abs=0.15)


def test_a_checkpoint_brings_a_flight_back_and_a_lock(served: Crazyflies, link: Link) -> None:
    takeoff(served, link)
    flies = served.physics.state.checkpoint().result(T)
    link.send(Packet(Port.supervisor, 1, b"\x03"))
    assert info(link) & FLYING
    step(served, 0.1)
    assert info(link) == AUTO | LOCKED
    locked = served.physics.state.checkpoint().result(T)
    served.physics.state.restore(flies).result(T)
    step(served, 0.5)
    assert info(link) == READY | FLYING and state(served) is FlightState.flying
    served.physics.state.restore(locked).result(T)
    step(served, 0.5)
    assert info(link) == AUTO | LOCKED and state(served) is FlightState.locked


def test_another_drone_is_not_concerned(served: Crazyflies, link: Link) -> None:
    other = Link(served.uris[1])
    takeoff(served, link)
    link.send(Packet(Port.localisation, 1, b"\x03"))
    assert info(link) & FLYING
    step(served, 0.1)
    assert info(link) == AUTO | LOCKED and info(other) == READY
    other.close()


def test_the_farewell_of_cflib_changes_nothing(served: Crazyflies, link: Link) -> None:
    """It closes its link with a setpoint of zeros, which a radio does not transmit any more."""
    takeoff(served, link)
    zeros = Packet(Port.attitude_setpoint, 0, bytes(14))
    link.send(zeros)
    assert link.ask(ECHO) == ECHO  # as the thread that measures the latency may
    step(served, 3.0)
    assert served.physics.snapshot.pos[0, 2] > 0.9
    link.send(zeros)  # a stream of zeros is meant
    assert link.ask(ECHO) == ECHO
    step(served, 0.5)
    assert served.physics.snapshot.pos[0, 2] < 0.6
