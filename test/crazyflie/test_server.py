"""The server, packet by packet: what is refused, who is heard, and that nothing stops it."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator

import numpy as np
import pytest
from crazyflie_helpers import ECHO, Crazyflies, Link, crazyflies, free_port, until

from crazyflow_ros.checks import throttled_logger
from crazyflow_ros.crazyflie import LinkConfig
from crazyflow_ros.crazyflie.crtp import DATA_SIZE, Packet, Port
from crazyflow_ros.flight import FlightState, Takeoff

T = 60.0  # s


@pytest.fixture(scope="module")
def served() -> Iterator[Crazyflies]:
    with crazyflies(2, max_drones=3) as found:
        yield found


@pytest.fixture
def link(served: Crazyflies) -> Link:
    served.physics.state.reset().result(T)
    return Link(served.uris[0])


@pytest.fixture(scope="module")
def one_link(served: Crazyflies) -> Link:
    """The same for all bad packets: with one for each the drone would have too many clients."""
    return Link(served.uris[0])


def test_a_probe_is_answered_and_makes_no_client(link: Link) -> None:
    link.send(b"\xff")
    assert bytes(link.receive(15, 3)) == b"\xff"


def test_links_echo_and_name_themselves(link: Link) -> None:
    assert link.ask(ECHO) == ECHO
    assert link.ask(Packet(Port.link, 1, b"\0")).data.startswith(b"Bitcraze Crazyflie\0")
    assert link.ask(Packet(Port.platform, 1, b"\0")).data == b"\0\x0c\0\0\0"  # protocol 12
    assert link.ask(Packet(Port.platform, 1, b"\2")).data == b"\2CF21"


BAD = {
    "an empty setpoint": Packet(Port.setpoint, 0, b""),
    "an unknown type of setpoint": Packet(Port.setpoint, 0, b"\x0c"),
    "a position without yaw": Packet(Port.setpoint, 0, struct.pack("<Bfff", 7, 0, 0, 1)),
    "a position at NaN": Packet(Port.setpoint, 0, struct.pack("<Bffff", 7, np.nan, 0, 1, 0)),
    "an infinite velocity": Packet(Port.setpoint, 0, struct.pack("<Bffff", 8, 0, np.inf, 0, 0)),
    "an unknown command": Packet(Port.high_level, 0, b"\x63"),
    "a takeoff that is too short": Packet(Port.high_level, 0, b"\x07\0"),
    "an undefined trajectory": Packet(
        Port.high_level, 0, struct.pack("<BBBBBBf", 13, 0, 1, 0, 0, 9, 1.0)
    ),
    "a trajectory beyond the memory": Packet(
        Port.high_level, 0, struct.pack("<BBBBIB", 6, 31, 1, 0, 0, 1)
    ),
    "a memory that does not exist": Packet(Port.memory, 1, b"\x63\0\0\0\0\x10"),
    "an unknown request": Packet(Port.supervisor, 1, b"\x77"),
    "half a position from outside": Packet(Port.localisation, 0, b"123456"),
    "a position from outside at NaN": Packet(
        Port.localisation, 0, struct.pack("<fff", np.nan, 0, 0)
    ),
    "a port that does not exist": Packet(11, 0, b"\0"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_packets_are_counted_and_named(
    served: Crazyflies, one_link: Link, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(throttled_logger, "SILENCE", 0.0)  # each is logged
    before, lines = served.server.malformed, len(served.log)
    one_link.send(BAD[what])
    assert one_link.ask(ECHO) == ECHO
    assert served.server.malformed == before + 1
    until(lambda: served.log[lines:], "a line in the log")
    assert served.log[lines].startswith("cf0: ")
    assert served.physics.commands.states.get("cf0", FlightState.idle) is FlightState.idle


def test_packets_that_are_too_long_are_refused(served: Crazyflies, link: Link) -> None:
    before = served.server.malformed
    link.send(bytes(DATA_SIZE + 2))
    assert link.ask(ECHO) == ECHO
    assert served.server.malformed == before + 1


def test_each_client_has_log_blocks_of_its_own(served: Crazyflies, link: Link) -> None:
    other = Link(served.uris[0])
    create = Packet(Port.log, 1, bytes([6, 1]) + struct.pack("<BH", 7, 2))
    assert link.ask(create).data == b"\x06\x01\x00"
    assert link.ask(create).data == b"\x06\x01\x11"  # it exists
    assert other.ask(create).data == b"\x06\x01\x00"
    assert link.ask(Packet(Port.log, 1, bytes([3, 1, 2]))).data == b"\x03\x01\x00"
    stamps = [int.from_bytes(link.receive(Port.log, 2).data[1:4], "little") for _ in range(5)]
    assert stamps == sorted(set(stamps))
    assert not any(stamp % 20 for stamp in stamps[1:])  # the first one comes at once
    assert other.ask(Packet(Port.log, 1, bytes([3, 9, 2]))).data == b"\x03\x09\x02"  # no such block
    other.send(Packet(Port.log, 1, bytes([5])))
    assert other.receive(Port.log).data == b"\x05\x00\x00"


def test_blocks_have_limits(link: Link) -> None:
    link.ask(Packet(Port.log, 1, bytes([5])))
    one = struct.pack("<BH", 7, 0)
    assert link.ask(Packet(Port.log, 1, bytes([6, 0]) + 7 * one)).data[2] == 7  # too long
    unknown = struct.pack("<BH", 7, 5000)
    assert link.ask(Packet(Port.log, 1, bytes([6, 1]) + unknown)).data[2] == 2
    for number in range(2, 16):
        assert link.ask(Packet(Port.log, 1, bytes([6, number]) + one)).data[2] == 0
    assert link.ask(Packet(Port.log, 1, bytes([6, 99]) + one)).data[2] == 12  # no more
    link.ask(Packet(Port.log, 1, bytes([5])))


def test_a_drone_has_at_most_so_many_clients(
    served: Crazyflies, monkeypatch: pytest.MonkeyPatch
) -> None:
    links = [Link(served.uris[1]) for _ in range(16)]
    assert all(link.ask(ECHO) == ECHO for link in links)
    late = Link(served.uris[1])
    late.send(ECHO)
    until(lambda: "cf1: it has 16 clients already" in served.log, "a refusal")
    # The silent ones are forgotten.
    monkeypatch.setattr("crazyflow_ros.crazyflie.station._SILENCE", 500_000_000)
    until(lambda: late.answers(0.5), "room for another client")


def test_the_console_tells_each_client_at_once_and_then_now_and_then(served: Crazyflies) -> None:
    """Although the log leaves out what it has just said, also to another client."""
    for _ in range(2):
        link = Link(served.uris[1])
        for _ in range(20):
            link.send(BAD["an unknown request"])
        assert link.receive(Port.console).data.startswith(b"unknown request")
        link.send(ECHO)
        while (packet := Packet.parse(link.receive_any())) != ECHO:  # the rest of the line
            assert packet.port == Port.console and b"unknown" not in packet.data
        link.close()


def test_memory_for_tests_counts_errors(link: Link) -> None:
    count = link.ask(Packet(Port.memory, 0, b"\x01")).data[1]
    tester = next(
        i for i in range(count) if link.ask(Packet(Port.memory, 0, bytes([2, i]))).data[2] == 0x15
    )
    address = struct.pack("<BI", tester, 250)
    read = link.ask(Packet(Port.memory, 1, address + bytes([10]))).data
    assert read == address + b"\0" + bytes([250, 251, 252, 253, 254, 255, 0, 1, 2, 3])
    assert link.ask(Packet(Port.memory, 2, address + b"\xfa\xfb")).data == address + b"\0"
    too_long = link.ask(Packet(Port.memory, 1, address + bytes([25]))).data
    assert too_long == address + b"\x05"


def test_a_drone_that_is_added_is_a_crazyflie_too(served: Crazyflies, link: Link) -> None:
    served.physics.world.spawn("late", np.array([0.0, 3.0, 0.02, 0, 0, 0, 1])).result(T)
    until(lambda: "late" in served.server.uris, "a port")
    uri = served.server.uris["late"]
    assert Link(uri).ask(ECHO) == ECHO
    served.physics.world.despawn("late").result(T)
    until(lambda: "late" not in served.server.uris, "a port closed")
    assert link.ask(ECHO) == ECHO


def test_packets_are_late() -> None:
    """In wall time; in simulated time also losses are exact, see test_lock_step_scripts."""
    with crazyflies(2, LinkConfig(port=free_port(2), latency=0.15)) as served:
        began = time.monotonic()
        assert Link(served.uris[0]).ask(ECHO) == ECHO
        assert time.monotonic() - began >= 0.3


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"port": 5}, "port: .* from 1024 to 65535, got 5"),
        ({"loss": 1.0}, "loss: .* from 0 to 0.99, got 1"),
        ({"latency": -0.1}, "latency: .* from 0 to 10, got -0.1"),
        ({"decks": ("bcNone",)}, "decks: there is no deck 'bcNone', only bcLedRing"),
    ],
)
def test_links_have_limits(values: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LinkConfig(**values)  # type: ignore[arg-type]


def test_a_port_that_is_taken_is_named(served: Crazyflies) -> None:
    with (
        pytest.raises(OSError, match=r"udp://127.0.0.1:\d+: .*in use"),
        crazyflies(1, served.server.config),
    ):
        pass


def test_noise_on_one_port_does_not_disturb_another_drone(served: Crazyflies) -> None:
    """Random and mutated packets; `make soak` sends 100,000."""
    hostile(served, 3000)


@pytest.mark.soak
def test_a_hundred_thousand_packets_stop_nothing(served: Crazyflies) -> None:
    hostile(served, 100_000)


def hostile(served: Crazyflies, n: int) -> None:
    """Send packets to cf0 while cf1 hovers, and while a client of cf1 listens to it."""
    served.physics.state.reset().result(T)
    served.physics.fly({"cf1": Takeoff(1.0)}).result(T)
    until(lambda: served.physics.commands.states.get("cf1") is FlightState.flying, "takeoff")
    random, before = np.random.default_rng(5), served.server.malformed
    link, watcher = Link(served.uris[0]), Link(served.uris[1])
    good = [bytes(packet) for packet in BAD.values()] + [bytes(ECHO), b"\xff", b""]
    good += [bytes(Packet(port, ch, bytes(range(10)))) for port in range(16) for ch in range(4)]
    for i in range(n):
        if random.random() < 0.5:
            datagram = random.bytes(int(random.integers(1, 40)))
        else:
            changed = bytearray(good[int(random.integers(len(good)))] or b"\0")
            for _ in range(int(random.integers(1, 4))):
                changed[int(random.integers(len(changed)))] = int(random.integers(256))
            datagram = bytes(changed)
        link.send(datagram)
        if i % 200 == 0:
            assert watcher.ask(ECHO) == ECHO
    assert watcher.ask(ECHO) == ECHO
    assert served.physics.failed is None
    assert served.physics.commands.states["cf1"] is FlightState.flying
    np.testing.assert_allclose(served.physics.snapshot.pos[1, 2], 1.0, atol=0.05)
    again = Link(served.uris[0])
    until(lambda: again.answers(0.5), "cf0 answers a new client")
    assert not [line for line in served.log if "failed:" in line]
    assert served.server.malformed > before + n // 4  # most are, and few were lost on the way
