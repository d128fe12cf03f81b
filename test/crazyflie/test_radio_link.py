"""cflib over a simulated Crazyradio: losses become retries, what is too much is late or dropped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent, indent

import numpy as np
import pytest
from crazyflie_helpers import asked, connected, crazyflies, free_port, until
from lock_step_flights import Flight, Flights, flights

from crazyflow_ros.crazyflie import LinkConfig
from crazyflow_ros.crazyflie.crazyradio import QUEUE

pytestmark = pytest.mark.skipif(find_spec("cflib") is None, reason="cflib is not installed")

N = 4  # drones
FAR = (4e4, 0.0, 1.0)  # m, where no radio reaches a drone

HEAD = """
import json, os, time
import cflib.crtp
from cflib.crazyflie import Crazyflie
from cflib.crazyflie.log import LogConfig
from cflib.crazyflie.syncCrazyflie import SyncCrazyflie
from cflib.utils import uri_helper
cflib.crtp.init_drivers()
first = uri_helper.uri_from_env()
host, _, port = first.rpartition(":")
uris = [f"{host}:{int(port) + i}" for i in range(4)]

def block(cf, number, period):
    config, got = LogConfig(f"b{number}", period), []
    for name in ("x", "y", "z", "roll", "pitch", "yaw"):
        config.add_variable(f"stateEstimate.{name}", "float")
    cf.log.add_config(config)
    config.data_received_cb.add_callback(lambda stamp, *_: got.append((stamp, time.time())))
    config.start()
    return got
"""

CONNECTED = """
from contextlib import ExitStack
with ExitStack() as stack:
    links = [SyncCrazyflie(uri, cf=Crazyflie(rw_cache="cache")) for uri in uris]
    cfs = [stack.enter_context(link).cf for link in links]
"""


def on_all(text: str) -> str:
    """A script that does something with N connected drones."""
    return HEAD + CONNECTED + indent(dedent(text), "    ")


@pytest.fixture(scope="module")
def fleet() -> Iterator[Flights]:
    with flights(N) as found:
        yield found


def fly(fleet: Flights, text: str, folder: Path, link: LinkConfig) -> Flight:
    flight = fleet.fly(text, folder, link)
    assert flight.code == 0, flight.err + flight.out
    return flight


HOP = on_all(
    """
    cf = cfs[0]
    cf.high_level_commander.takeoff(0.5, 1.0)
    got = block(cf, 0, 20)
    time.sleep(2.0)
    for i in range(100):
        cf.commander.send_position_setpoint(0.3, 0.0, 0.6, 0.0)
        time.sleep(0.02)
    print(len(got), cf.link_statistics.latency.latency)
    """
)


def test_cflib_flies_with_a_third_of_the_packets_lost(fleet: Flights, tmp_path: Path) -> None:
    """The same flight each time, with the tables in a cache or not; another seed, another one."""
    flown = [
        fly(fleet, HOP, tmp_path / name, LinkConfig(loss=0.3, seed=seed))
        for name, seed in (("1", 1), ("1", 1), ("2", 1), ("3", 2))
    ]
    assert flown[0] == flown[2] != flown[3]
    assert (flown[0].way == flown[1].way).all() and flown[0].out == flown[1].out
    without_radio = fly(fleet, HOP, tmp_path / "ideal", LinkConfig())
    # The controller climbs beyond 0.6 m as it follows the sudden setpoint, also without a radio.
    assert flown[0].way[:, 0, 2].max() == pytest.approx(without_radio.way[:, 0, 2].max(), abs=0.01)
    assert flown[0].way[:, 0, 0].max() == pytest.approx(0.3, abs=0.1)
    count, latency = flown[0].out.split()
    assert int(count) == pytest.approx(200, abs=8)
    ideal = without_radio.out.split()
    by_radio = fly(fleet, HOP, tmp_path / "radio", LinkConfig(radio="2M")).out.split()
    assert float(ideal[1]) < float(by_radio[1]) < float(latency)
    assert float(by_radio[1]) < 8 * 4  # ms for one drone, as Bitcraze's test asks; here are four


def test_cflib_connects_in_wall_time_with_a_third_of_the_packets_lost(tmp_path: Path) -> None:
    """With all tables and parameters by radio."""
    with (
        crazyflies(1, LinkConfig(port=free_port(1), loss=0.3)) as served,
        connected(served.uris[0], tmp_path) as cf,
    ):
        cf.param.set_value("stabilizer.controller", 1)
        state = asked(cf.param.persistent_get_state, "ring.effect")
        assert not state.is_stored


FLOOD = on_all(
    """
    got = [[block(cf, number, 10) for number in range(5)] for cf in cfs]
    for cf in cfs:
        cf.console.receivedChar.add_callback(lambda text: print(text, end=""))
    time.sleep(8.0)
    found = [pair for blocks in got for one in blocks for pair in one]
    found.sort(key=lambda pair: pair[1])
    late, first = ([now - stamp / 1e3 for stamp, now in part] for part in (found[-50:], found[:5]))
    counts = [[len(one) for one in blocks] for blocks in got]
    print(json.dumps([counts, min(late) - min(first)]))
    """
)


def test_more_log_values_than_the_radio_carries_are_late_and_dropped(
    fleet: Flights, tmp_path: Path
) -> None:
    """Four drones with 500 packets/s each: the radio's rate is shared, the queues are full."""
    flight = fly(fleet, FLOOD, tmp_path / "1", LinkConfig(radio="2M"))
    counts, later = json.loads(flight.out.splitlines()[-1])
    rates = np.sum(counts, axis=1) / 8.0
    air = (8 * (8 + 29) + 9 + 8 * 9 + 9) / 2e6 + 2 * 130e-6  # a log packet and an empty one
    rate = 1 / (N * (air + 3 * 0.75e-3))
    pings = 10  # which cflib sends each second, and whose echoes are in the queue, too
    assert rates == pytest.approx(rate - pings, rel=0.05)
    assert later == pytest.approx(QUEUE / rate, rel=0.1)
    assert "log packets are dropped" in flight.out
    assert any("log packets dropped" in line for line in flight.log)
    twice = fly(fleet, FLOOD, tmp_path / "again", LinkConfig(radio="2M"))
    assert twice == flight
    shared = fly(fleet, FLOOD, tmp_path / "2", LinkConfig(radio="2M", radios=2))
    counts, _ = json.loads(shared.out.splitlines()[-1])
    assert np.sum(counts, axis=1) / 8.0 == pytest.approx(2 * rate - pings, rel=0.05)


RECEPTION = on_all(
    """
    names = ["radio.rssi", "radio.isConnected", "radio.numRxUc"]
    config, got = LogConfig("radio", 100), []
    for name in names:
        config.add_variable(name)
    cfs[1].log.add_config(config)
    config.data_received_cb.add_callback(lambda stamp, data, _: got.append((stamp, *data.values())))
    config.start()
    time.sleep(4.0)
    print(json.dumps(got))
    """
)


def test_the_drone_logs_power_and_packets(fleet: Flights, tmp_path: Path) -> None:
    link = LinkConfig(radio="1M", antenna=(1.0, 100.0, 1.0))
    got = np.array(json.loads(fly(fleet, RECEPTION, tmp_path / "1", link).out))
    # Free space over the 100 m to cf1, which stands at x = 1 m.
    assert set(got[:, 1]) == {round(20 * np.log10(4 * np.pi * 100 * 2.48e9 / 299792458) - 20 - 0.5)}
    assert set(got[:, 2]) == {1}
    empty = 4 * (2 * (8 * 9 + 9) / 1e6 + 2 * 130e-6 + 3 * 0.75e-3)
    span = (got[-1, 0] - got[0, 0]) * 1e-3
    assert (got[-1, 3] - got[0, 3]) % 65536 == pytest.approx(span / empty, rel=0.05)


LOST = """
cf, said = Crazyflie(rw_cache="cache"), []
cf.connection_failed.add_callback(lambda _, why: said.append("failed"))
cf.connection_lost.add_callback(lambda _, why: said.append("lost"))
cf.fully_connected.add_callback(lambda _: said.append("connected"))
cf.open_link(first)
time.sleep(5.0)
if cf.is_connected():
    from cflib.crtp.crtpstack import CRTPPacket
    packet = CRTPPacket(0xF3, [0xFE, 0x01])
    cf.send_packet(packet)  # all power off
    time.sleep(3.0)
print(*said)
"""


def test_a_drone_that_does_not_answer_is_lost(fleet: Flights, tmp_path: Path) -> None:
    flight = fly(fleet, HEAD + LOST, tmp_path / "1", LinkConfig(radio="2M", antenna=FAR))
    assert flight.out.split() == ["failed"]
    assert any(line.startswith("cf0: the link to") and "is lost" in line for line in flight.log)
    flight = fly(fleet, HEAD + LOST, tmp_path / "1", LinkConfig(radio="2M"))
    assert flight.out.split() == ["connected", "lost"]


def test_a_drone_out_of_reach_is_not_found_and_lost_in_wall_time(tmp_path: Path) -> None:
    from cflib.crazyflie import Crazyflie

    link = LinkConfig(port=free_port(1), radio="2M", antenna=FAR)
    with crazyflies(1, link) as served:
        failed: list[str] = []
        cf = Crazyflie(rw_cache=str(tmp_path))
        cf.connection_failed.add_callback(lambda *why: failed.append(why[1]))
        cf.open_link(served.uris[0])
        until(lambda: any("is lost" in line for line in served.log), "a lost link")
        for _ in range(100):
            if failed:
                break
            cf.link_statistics.latency.ping()  # notices that nobody listens
        until(lambda: failed, "a message")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"radio": "3M"}, "radio: expected one of none, 250K, 1M, 2M, got '3M'"),
        ({"antenna": (1.0, 2.0)}, "antenna: expected three numbers"),
        ({"radios": 0}, "radios: .* from 1 to 16, got 0"),
    ],
)
def test_radios_have_limits(values: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LinkConfig(**values)  # type: ignore[arg-type]


APP = """
import struct
from crazyflow_ros import flight


class Climber:
    def __init__(self, drone):
        self.drone, self.steps = drone, 0

    def receive(self, data):
        self.drone.command(flight.Takeoff(struct.unpack("<f", data)[0]))

    def step(self):
        self.steps += 1
        if self.steps % 100 == 0:
            self.drone.send(struct.pack("<ff", self.drone.time, self.drone.log("stateEstimate.z")))
"""


def test_apps_answer_in_simulated_time(fleet: Flights, tmp_path: Path) -> None:
    """By radio, while values are logged; the same flight each time."""
    (tmp_path / "climber.py").write_text(APP)
    link = LinkConfig(radio="1M", loss=0.1, app=f"{tmp_path / 'climber.py'}:Climber")
    text = on_all(
        """
        import struct
        got = block(cfs[0], 0, 50)
        cfs[2].appchannel.packet_received.add_callback(
            lambda data: print(*struct.unpack("<ff", data), time.time())
        )
        cfs[2].appchannel.send_packet(struct.pack("<f", 0.4))
        time.sleep(4.0)
        """
    )
    flown = [fly(fleet, text, tmp_path / name, link) for name in ("1", "2")]
    assert flown[0] == flown[1]
    said = np.array([[float(word) for word in row.split()] for row in flown[0].out.splitlines()])
    assert np.diff(said[:, 0]) == pytest.approx(1.0) and 3 <= len(said) <= 5
    assert said[-1, 1] == pytest.approx(0.4, abs=0.05)
    assert (np.ptp(said[:, 2] - said[:, 0]) < 0.1).all()  # late by some round trips
