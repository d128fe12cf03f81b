"""The ports of a drone: who connects, what is passed on, and what is refused. No physics."""

from __future__ import annotations

import logging
import random
import socket
import struct
from collections.abc import Iterator
from functools import partial

import numpy as np
import physics_helpers
import pytest
from fake_firmware import FIRST, FakeFirmware
from ports import free_ports

from crazyflow_ros.checks.throttled_logger import ThrottledLogger
from crazyflow_ros.doors.crazyflie_firmware import firmware_link as link_module
from crazyflow_ros.doors.crazyflie_firmware import sensor_packets
from crazyflow_ros.doors.crazyflie_firmware.firmware_link import FirmwareLink, Relay

T = 60.0  # s, no wait is longer
until = partial(physics_helpers.until, timeout=T)
IMU = sensor_packets.imu(np.array([[0.0, 0.0, 9.81]]), np.zeros((1, 3)))
OUTPUTS = (1000, 2000, 3000, 65535)


class Ports:
    """The ports of a drone without a simulation."""

    def __init__(self) -> None:
        self.first = free_ports(2)
        logger = ThrottledLogger.of(logging.getLogger("firmware"))
        self.link = FirmwareLink(
            "cf0", "127.0.0.1", self.first, self.first + 1, logger=logger, wake=lambda: None
        )
        self.relay = Relay([self.link])
        self._firmwares: list[FakeFirmware] = []
        self._programs: list[socket.socket] = []

    def firmware(self) -> FakeFirmware:
        self._firmwares.append(FakeFirmware(self.first, lambda: OUTPUTS))
        return self._firmwares[-1]

    def calibrated(self) -> FakeFirmware:
        firmware = self.firmware()
        until(lambda: self.link.is_connected, "a firmware")
        self.link.send(IMU * FIRST)
        until(lambda: self.link.latest is not None, "outputs")
        return firmware

    def program(self) -> socket.socket:
        program = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        program.settimeout(T)
        program.connect(("127.0.0.1", self.first + 1))
        self._programs.append(program)
        return program

    def close(self) -> None:
        for firmware in self._firmwares:
            if firmware.is_alive():
                firmware.end()
        for program in self._programs:
            program.close()
        self.relay.close()


@pytest.fixture
def ports(caplog: pytest.LogCaptureFixture) -> Iterator[Ports]:
    caplog.set_level(logging.INFO)
    ports = Ports()
    yield ports
    ports.close()


def said(caplog: pytest.LogCaptureFixture) -> str:
    return "\n".join(record.getMessage() for record in caplog.records)


def asked(program: socket.socket, packet: bytes) -> bytes:
    program.send(packet)
    return program.recv(100)


def test_a_firmware_connects_calibrates_and_runs_its_motors(
    ports: Ports, caplog: pytest.LogCaptureFixture
) -> None:
    firmware = ports.calibrated()
    latest = ports.link.latest
    assert latest is not None and tuple(latest[0]) == OUTPUTS
    assert firmware.packets[b"\x90\x00"] == struct.pack("<2B6h", 0x90, 0, 0, 0, 2048, 0, 0, 0)
    assert "cf0: a firmware has connected to UDP" in said(caplog)


def test_programs_reach_the_firmware_and_all_get_its_answers(ports: Ports) -> None:
    firmware = ports.calibrated()
    one, other = ports.program(), ports.program()
    assert asked(one, b"\xff") == b"\xff"  # as cflib looks for Crazyflies
    assert asked(other, b"\x5d\x01") == b"\x5d\x01"
    assert asked(one, b"\x3c" + bytes(14)) == b"\x3c" + bytes(14)
    assert other.recv(100) == b"\x3c" + bytes(14)
    assert firmware.commands == [b"\x5d\x01", b"\x3c" + bytes(14)]


def test_programs_without_a_firmware_and_too_many_of_them_are_told(
    ports: Ports, caplog: pytest.LogCaptureFixture
) -> None:
    ports.program().send(b"\x5d\x01")
    until(lambda: "there is no firmware yet" in said(caplog), "the message")
    firmware = ports.calibrated()
    for _ in range(16):
        assert asked(ports.program(), b"\x5d\x02")
    ports.program().send(b"\x5d\x03")
    until(lambda: "16 programs fly the drone already" in said(caplog), "the message")
    assert b"\x5d\x03" not in firmware.commands


def test_a_second_firmware_waits_until_the_first_is_silent(
    ports: Ports, caplog: pytest.LogCaptureFixture
) -> None:
    first = ports.calibrated()
    second = ports.firmware()
    until(lambda: "a second firmware" in said(caplog), "the refusal")
    assert ports.link.latest is not None
    first.end()
    until(lambda: ports.link.latest is None, "the other one")
    ports.link.send(IMU * FIRST)
    until(lambda: ports.link.latest is not None, "its outputs")
    assert second.counts[b"\x90\x00"] == FIRST


def test_what_is_no_packet_keeps_no_place(ports: Ports, caplog: pytest.LogCaptureFixture) -> None:
    first, second = ports.calibrated(), ports.firmware()

    def gone() -> bool:
        first.send(bytes(33))
        return ports.link.latest is None

    until(gone, "the other one")
    ports.link.send(IMU * FIRST)
    until(lambda: ports.link.latest is not None, "its outputs")
    assert second.counts[b"\x90\x00"] == FIRST


def test_a_full_firmware_is_waited_for_if_it_answers(
    ports: Ports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_module, "_PATIENCE", T)
    ports.calibrated().silent = True
    ports.link.send(IMU * 3)
    assert not ports.link.is_full
    ports.link.send(IMU)
    assert ports.link.is_full
    monkeypatch.setattr(link_module, "_PATIENCE", 0.0)
    assert not ports.link.is_full


def test_hostile_packets_change_nothing(ports: Ports, caplog: pytest.LogCaptureFixture) -> None:
    firmware, rng = ports.calibrated(), random.Random(0)
    stranger = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with stranger:
        for i in range(20_000):
            size = rng.choice((0, 1, 2, 9, 31, 33, 64, 65, rng.randrange(2000)))
            packet = rng.randbytes(size)
            if packet != b"\xf3":
                stranger.sendto(packet, ("127.0.0.1", ports.first))
            if i % 20 == 0:
                stranger.sendto(bytes(33 + size), ("127.0.0.1", ports.first + 1))
                firmware.send(bytes(33 + size))
    program = ports.program()
    program.settimeout(0.2)  # the port may still be full of the others

    def answers() -> bool:
        try:
            return asked(program, b"\x5d\x01") == b"\x5d\x01"
        except TimeoutError:
            return False

    until(answers, "an answer")
    latest = ports.link.latest
    assert latest is not None and tuple(latest[0]) == OUTPUTS
    until(lambda: "it is not that of the firmware that has connected" in said(caplog), "it")
    until(lambda: "a packet has 1 to 32 bytes" in said(caplog), "the other message")


def test_a_port_that_is_taken_is_named() -> None:
    first = free_ports(2)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", first + 1))
        for ports in ((first + 1, first), (first, first + 1)):
            logger = logging.getLogger("firmware")
            with pytest.raises(OSError, match=f"udp://127.0.0.1:{first + 1}"):
                FirmwareLink("cf0", "127.0.0.1", *ports, logger=logger, wake=lambda: None)
