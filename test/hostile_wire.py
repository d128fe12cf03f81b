"""Bytes that no client of ROS sends, on all that a simulator reads: part of `make hostile`.

A participant of another DDS finds the readers of a simulator: of its topics, services, actions and
parameters, and of what rmw keeps for itself. It sends them messages and requests that are cut off,
damaged, or shorter than the lists in them.
"""

from __future__ import annotations

import importlib
import random
import re
import struct
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from diagnostic_msgs.msg import DiagnosticArray
from hostile_messages import Inputs
from hostile_node import restart
from hostile_policies import damaged
from hostile_processes import status
from rclpy.serialization import serialize_message
from ros_client import Client, RosProcess, SimulatorProcess
from rosgraph_msgs.msg import Clock
from simulation_interfaces.msg import SimulationState

MEMORY = 1.25  # GiB that the simulator may use
LIBRARIES = 0.5  # GiB, more than what a process shows beside what it may use
PATIENCE = 120.0  # s; no thread of Python runs while ROS reads a long list
_TURN = 100  # inputs between two looks at the simulator
_SETTLED = 2.0  # s without another reader
_REASON = "needs cyclonedds, which is in the extra dev where it has a wheel: up to Python 3.13"
_CONFIG = """<CycloneDDS><Domain>
<General><Interfaces><NetworkInterface name="lo"/></Interfaces>
<AllowMulticast>false</AllowMulticast></General>
<Discovery><ParticipantIndex>auto</ParticipantIndex>
<MaxAutoParticipantIndex>100</MaxAutoParticipantIndex>
<Peers><Peer Address="127.0.0.1"/></Peers></Discovery>
</Domain></CycloneDDS>"""
_TYPE = re.compile(r"(\w+)::(msg|srv|action)::dds_::(\w+)_")
HEADER = b"\0\1\0\0"
"""Of what is encoded with the low byte first; its last two bits count the bytes of padding."""
_LENGTHS = (1, 1000, 10**5, 10**6, 4 * 10**6, 10**7, 10**8, 2**31 - 1, 2**31, 2**32 - 1)


class Reader(NamedTuple):
    """What a simulator reads."""

    topic: str
    """Of DDS: rt/... of a topic, rq/...Request of a service."""
    type: str
    """Of DDS."""

    def message(self) -> Any:
        """An empty message of its type; None if Python has no such type."""
        found = _TYPE.fullmatch(self.type)
        assert found, self.type
        package, kind, name = found.groups()
        with suppress(ImportError):
            of = importlib.import_module(f"{package}.{kind}")
            if kind == "msg":
                return getattr(of, name)()
            name, _, part = name.rpartition("_")
            if kind == "srv":
                return getattr(getattr(of, name), part)()
            name, _, call = name.rpartition("_")
            return getattr(getattr(getattr(of, name).Impl, f"{call}Service"), part)()
        return None


class Stranger:
    """A participant of Cyclone DDS; tests are skipped without it.

    Args:
        domain: ROS domain.
    """

    def __init__(self, domain: int) -> None:
        pytest.importorskip("cyclonedds", reason=_REASON)
        from cyclonedds.builtin import BuiltinDataReader, BuiltinTopicDcpsSubscription
        from cyclonedds.domain import Domain, DomainParticipant

        self._domain = Domain(domain, _CONFIG)
        self._participant = DomainParticipant(domain)
        self._subscriptions = BuiltinDataReader(self._participant, BuiltinTopicDcpsSubscription)
        self._writers: dict[str, tuple[Any, Any]] = {}

    def find(self, service: str) -> list[Reader]:
        """Find all readers of the process that has a service, and be found by them.

        Args:
            service: Its name, as crazyflow/pause.
        """
        found, owner = list[Any](), None
        deadline = settled = time.monotonic() + PATIENCE
        while owner is None or time.monotonic() < settled:
            assert time.monotonic() < deadline, f"no service {service} within {PATIENCE} s"
            if new := self._subscriptions.take(1000):
                settled = time.monotonic() + _SETTLED
            found += new
            for each in new:
                if each.topic_name == f"rq/{service}Request":
                    owner = each.participant_key
            time.sleep(0.05)
        readers = {Reader(e.topic_name, e.type_name) for e in found if e.participant_key == owner}
        self._open(readers)
        return sorted(readers)

    def _open(self, readers: Iterable[Reader]) -> None:
        from cyclonedds.core import Policy, Qos
        from cyclonedds.idl import IdlStruct
        from cyclonedds.pub import DataWriter
        from cyclonedds.topic import Topic
        from cyclonedds.util import duration

        qos = Qos(
            Policy.Reliability.Reliable(duration(seconds=PATIENCE)),
            Policy.Durability.TransientLocal,
            Policy.History.KeepLast(1),
            Policy.DataRepresentation(use_cdrv0_representation=True),
        )
        for reader in readers:

            class Raw(IdlStruct, typename=reader.type):
                def __init__(self, payload: bytes) -> None:
                    self.payload = payload

                def serialize(self, *_: Any, **__: Any) -> bytes:
                    return self.payload

            topic = Topic(self._participant, reader.topic, Raw, qos=qos)
            self._writers[reader.topic] = Raw, DataWriter(self._participant, topic, qos=qos)
        deadline = time.monotonic() + PATIENCE
        for name, (_, writer) in self._writers.items():
            while not writer.get_matched_subscriptions():
                assert time.monotonic() < deadline, f"{name} was not found in {PATIENCE} s"
                time.sleep(0.01)

    def send(self, topic: str, payload: bytes) -> None:
        """Send bytes to a reader, and wait until they are there.

        They have at least a header. Without anything else it has no padding: Fast CDR 2.3.3 would
        read beyond it, and end any program of ROS; see docs/reference/limits.md.

        Args:
            topic: Of DDS.
            payload: The bytes.
        """
        from cyclonedds.util import duration

        payload = payload.ljust(len(HEADER), b"\0")
        if len(payload) == len(HEADER):
            payload = payload[:-1] + bytes([payload[-1] & ~3])
        kind, writer = self._writers[topic]
        writer.write(kind(payload))
        writer.wait_for_acks(duration(seconds=PATIENCE))


def payload(rng: random.Random, message: Any) -> bytes:
    """Bytes that nobody should send, made from a message; None stands for any."""
    sound = HEADER + bytes(rng.choice((4, 8, 40)))
    if message is not None:
        texts = {"": ["cf0", "cf1", "thing"]}
        sound = serialize_message(Inputs(rng, texts).fill(message, rng.choice((0.0, 0.3))))
    cut = rng.randrange(len(sound) + 1)
    match rng.randrange(8):
        case 0:  # a length, and nothing after it
            return HEADER + struct.pack("<I", rng.choice(_LENGTHS))
        case 1:
            return _lengthened(rng, sound)
        case 2:
            return _lengthened(rng, sound)[:cut]
        case 3:
            return sound[:cut]
        case 4:
            return damaged(sound, rng)
        case 5:  # another encoding, or none
            return rng.randbytes(len(HEADER)) + sound[len(HEADER) :]
        case 6:
            return HEADER + rng.randbytes(rng.choice((0, 1, 4, 64, 1000, 70_000)))
        case _:  # more than there should be
            return sound + rng.randbytes(rng.choice((1, 8, 300)))


def _lengthened(rng: random.Random, sound: bytes) -> bytes:
    words = bytearray(sound)
    for _ in range(rng.choice((1, 1, 3))):
        place = 4 * rng.randrange(1, max(2, len(sound) // 4))
        words[place : place + 4] = struct.pack("<I", rng.choice(_LENGTHS))
    return bytes(words)


def most_memory(process: RosProcess) -> float:
    """The most memory that a process has used so far [GiB]."""
    lines = Path(f"/proc/{process.process.pid}/status").read_text().splitlines()
    (most,) = [int(line.split()[1]) for line in lines if line.startswith("VmHWM")]
    return most / 2**20


def send_bytes(n: int, rng: random.Random, domain: int) -> Counter[str]:
    """Send a simulator bytes on all that it reads.

    It neither ends nor hangs, answers others, keeps to its memory, and nothing fails inside.

    Args:
        n: How often.
        rng: Random numbers.
        domain: ROS domain.

    Returns:
        How often something was tried.
    """
    stranger, counts = Stranger(domain), Counter[str]()
    parameters = ("drones:=[cf0]", "max_drones:=4", f"memory_limit:={MEMORY}")
    arguments = [word for parameter in parameters for word in ("-p", parameter)]
    with SimulatorProcess(domain, arguments) as simulator:
        client = Client(domain)
        try:
            client.latest(DiagnosticArray, "crazyflow/status")
            readers = stranger.find("crazyflow/pause")
            clock = client.collect(Clock, "/clock")
            for i in range(n):
                reader = readers[i % len(readers)]
                data = payload(rng, reader.message())
                if "/set_simulation_state" in reader.topic and not _stays(data):
                    continue  # it would quit, and rightly so
                stranger.send(reader.topic, data)
                counts["tried"] += 1
                if i % _TURN == 0:
                    restart(client)
                    clock.clear()
                    client.until(lambda: len(clock) > 10, "/clock")
            restart(client)
            assert status(client, "failed_inputs") == 0
            assert most_memory(simulator) < MEMORY + LIBRARIES
        finally:
            client.close()
        assert simulator.end()[0] == 0
        assert "Traceback" not in simulator.log
    return counts


def _stays(data: bytes) -> bool:
    """Whether a request for a state is not one to quit, also with what is in memory behind it."""
    return data[len(HEADER) :][:1] not in (b"", bytes([SimulationState.STATE_QUITTING]))
