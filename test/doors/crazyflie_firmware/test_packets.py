"""Units, signs and ranges of the packets, and the thrust of outputs."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from crazyflow_ros.doors.crazyflie_firmware import sensor_packets
from crazyflow_ros.doors.motors import CompensatedRotors
from crazyflow_ros.drones import load_drone
from crazyflow_ros.sensors.barometer import standard_altitude


def test_imus_have_the_units_of_the_firmware_and_end_at_their_ranges() -> None:
    force = np.array([[9.81, -9.81 / 2, 2 * 9.81], [1000.0, -1000.0, 0.0]])
    rates = np.radians([[100.0, -200.0, 50.0], [3000.0, -3000.0, 0.0]])
    first, second = sensor_packets.imu(force, rates)
    assert (first[:2], len(first)) == (b"\x90\x00", 14)
    raw = np.array(struct.unpack("<6h", first[2:]))
    np.testing.assert_allclose(raw[:3] * 32 / 65536, (1, -0.5, 2), atol=3e-4)  # g
    np.testing.assert_allclose(raw[3:] * 4000 / 65536, (100, -200, 50), atol=0.04)  # degrees/s
    assert struct.unpack("<6h", second[2:]) == (32767, -32768, 0, 32767, -32768, 0)


def test_slow_sensors_and_poses_have_the_units_of_the_firmware() -> None:
    (field,) = sensor_packets.magnetometer(np.array([[20e-6, 0.0, -45e-6]]))
    assert field == struct.pack("<2B3h", 0x90, 1, 133, 0, -300)  # 666.7 to a gauss
    (air,) = sensor_packets.barometer(np.array([95_461.0]), np.array([500.0]), 25.0)
    assert air == struct.pack("<2B3f", 0x90, 2, 954.61, 25.0, 500.0)
    (pose,) = sensor_packets.pose(np.array([[1.0, 2.0, 3.0]]), np.array([[0.0, 0.6, 0.0, 0.8]]))
    assert pose == struct.pack("<2B7f", 0x61, 8, 1.0, 2.0, 3.0, 0.0, 0.6, 0.0, 0.8)
    assert max(map(len, (field, air, pose))) <= 32


@pytest.mark.parametrize(
    ("packet", "outputs"),
    [
        (struct.pack("<B4H", 0x90, 1, 2, 3, 65535), (1, 2, 3, 65535)),
        (struct.pack("<B4H", 0x9C, 1, 2, 3, 4), (1, 2, 3, 4)),  # two bits are of a radio link
        (struct.pack("<B4H", 0x91, 1, 2, 3, 4), None),  # lights of a deck
        (b"\x90\x01", None),  # is calibrated
        (b"\x90" + bytes(16), None),
        (b"", None),
    ],
)
def test_outputs_are_those_of_the_motors(packet: bytes, outputs: tuple[int, ...] | None) -> None:
    found = sensor_packets.outputs(packet)
    assert (found if found is None else tuple(found)) == outputs


@pytest.mark.parametrize("model", ["cf2x_L250", "cf21B_500"])
def test_an_output_is_a_share_of_the_greatest_thrust(model: str) -> None:
    figures, outputs = load_drone(model), (0, 1000, 36_000, 65_535)
    rpm = CompensatedRotors(model).speeds(outputs) * 60 / (2 * np.pi)
    thrust = np.polynomial.Polynomial(figures["rpm2thrust"])(rpm)
    assert rpm[0] == rpm[1] == 0  # below the least thrust of the firmware's curve
    np.testing.assert_allclose(thrust[2:], np.array([36_000 / 65_535, 1]) * figures["thrust_max"])


def test_the_standard_atmosphere_gives_altitudes() -> None:
    table = {101_325.0: 0.0, 95_461.0: 500.0, 79_495.0: 2000.0}  # ISO 2533
    altitudes = standard_altitude(np.array(list(table)))
    np.testing.assert_allclose(altitudes, list(table.values()), atol=0.5)
