"""Packets with setpoints, decoded by us and by the Crazyflie's firmware, built from a checkout."""

from __future__ import annotations

import ctypes
import math
import struct
from pathlib import Path

import numpy as np
import pytest
from firmware_source import build, sources

from crazyflow_ros.control.setpoint_modes import SetpointMode
from crazyflow_ros.crazyflie.crtp import Packet, Port
from crazyflow_ros.crazyflie.memory_port import Trajectories
from crazyflow_ros.crazyflie.setpoints import Decoder
from crazyflow_ros.flight import FirmwareSetpoint
from crazyflow_ros.scene.frames import rpy

FOLDERS = (
    "modules/interface/controller",
    *("config", "modules/interface", "modules/src", "hal/interface", "utils/interface"),
    *("utils/interface/lighthouse", "drivers/interface", "platform/interface"),
)
ABSENT = ("autoconf.h", "log.h", "param.h", "commander.h", "FreeRTOS.h", "num.h", "cfassert.h")
PWM = 65535.0
USUAL = (0, 0, 0, 1, 1)  # of the group flightmode: althold, poshold, posSet, stabModeRoll, Pitch
NAMES = ("althold", "poshold", "posSet", "stabModeRoll", "stabModePitch")
DISABLED, ABSOLUTE, VELOCITY = range(3)
MODES = {  # x, y, z, roll, pitch, yaw, quaternion
    SetpointMode.state: (1, 1, 1, 0, 0, 1, 0),
    SetpointMode.full_state: (1, 1, 1, 0, 0, 0, 1),
    SetpointMode.velocity: (2, 2, 2, 0, 0, 2, 0),
    SetpointMode.hover: (2, 2, 1, 0, 0, 2, 0),
    SetpointMode.z_distance: (0, 0, 1, 1, 1, 2, 0),
    SetpointMode.altitude_hold: (0, 0, 2, 1, 1, 2, 0),
    SetpointMode.attitude: (0, 0, 0, 1, 1, 2, 0),
}


@pytest.fixture(scope="module")
def firmware(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    here, folder = Path(__file__).with_name("firmware"), tmp_path_factory.mktemp("firmware")
    return build(sources(), here, folder, folders=FOLDERS, files=(), absent=ABSENT)


def theirs(
    firmware: ctypes.CDLL, data: bytes, modes: tuple[int, ...], *, legacy: bool
) -> np.ndarray:
    found = (ctypes.c_double * 28)()
    firmware.decode(data, len(data), legacy, bytes(modes), found)
    return np.array(found)


def ours(data: bytes, modes: tuple[int, ...], *, legacy: bool) -> np.ndarray:
    values = {f"flightmode.{name}": value for name, value in zip(NAMES, modes)}
    sticks = {"cppm.rateRoll": 720, "cppm.ratePitch": 720, "cppm.rateYaw": 400}
    values |= sticks | {"cppm.angRoll": 50, "cppm.angPitch": 50}
    decoder = Decoder(values.__getitem__, 1.0, Trajectories())
    if legacy:
        decoder.attitude(Packet(Port.attitude_setpoint, 0, struct.pack("<fffH", 0, 0, 0, 0)))
        setpoint = decoder.attitude(Packet(Port.attitude_setpoint, 0, data))
    else:
        setpoint = decoder.generic(Packet(Port.setpoint, 0, data))
    assert isinstance(setpoint, FirmwareSetpoint)
    signs, given = (1, -1, 1), np.array(MODES[setpoint.mode], float)
    if setpoint.mode is SetpointMode.attitude:
        given[3:5] = [VELOCITY if is_rate else ABSOLUTE for is_rate in setpoint.are_rates]
    quat = np.zeros(4)
    angles = np.degrees(setpoint.rpy) * signs
    if setpoint.mode is SetpointMode.full_state:
        quat[2:], angles = (
            (math.sin(np.asarray(setpoint.rpy)[2] / 2), math.cos(np.asarray(setpoint.rpy)[2] / 2)),
            np.zeros(3),
        )
    rates, body = np.degrees(setpoint.rates) * signs, setpoint.mode is SetpointMode.hover
    if setpoint.mode is SetpointMode.full_state:
        rates = np.degrees(setpoint.rates)  # this packet alone is in the axes of the body
    return np.concatenate(
        (given, [body], setpoint.pos, setpoint.vel, setpoint.acc, angles, rates, quat,
         [setpoint.thrust * PWM])
    )  # fmt: skip


def compared(firmware: ctypes.CDLL, data: bytes, modes: tuple[int, ...] = USUAL, *, legacy=False):
    expected, found = (f(data, modes, legacy=legacy) for f in (
        lambda *a, **k: theirs(firmware, *a, **k), ours))  # fmt: skip
    if expected[6]:  # of a full state's attitude only the yaw is flown
        yaw = float(rpy(expected[23:27])[2])
        expected[23:27] = (0, 0, math.sin(yaw / 2), math.cos(yaw / 2))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", [1, 2, 4, 5, 7, 8, 9, 10])
def test_setpoints_of_four_numbers(firmware: ctypes.CDLL, kind: int) -> None:
    rng = np.random.default_rng(kind)
    for _ in range(50):
        compared(firmware, struct.pack("<Bffff", kind, *rng.uniform(-1, 1, 4) * (1, 1, 90, 1)))


def test_full_states(firmware: ctypes.CDLL) -> None:
    from cflib.utils.encoding import compress_quaternion

    rng = np.random.default_rng(6)
    for _ in range(50):
        numbers, yaw = rng.integers(-3000, 3000, 12).tolist(), rng.uniform(-3, 3)
        quat = compress_quaternion([0, 0, math.sin(yaw / 2), math.cos(yaw / 2)])
        compared(firmware, struct.pack("<BhhhhhhhhhIhhh", 6, *numbers[:9], quat, *numbers[9:]))


@pytest.mark.parametrize("are_rates", [0, 1])
def test_manual_setpoints(firmware: ctypes.CDLL, are_rates: int) -> None:
    rng = np.random.default_rng(are_rates)
    for _ in range(50):
        angles, thrust = rng.uniform(-40, 40, 3).tolist(), int(rng.integers(0, 65535))
        compared(firmware, struct.pack("<BfffHB", 11, *angles, thrust, are_rates))


@pytest.mark.parametrize("switch", [(), (1000,), (2000,)], ids=["none", "rates", "angles"])
def test_sticks_of_a_remote_control(firmware: ctypes.CDLL, switch: tuple[int, ...]) -> None:
    rng = np.random.default_rng(len(switch))
    for _ in range(50):
        sticks = rng.integers(1000, 2000, 4).tolist()
        values = (3, len(switch), *sticks, *switch)
        compared(firmware, struct.pack(f"<BB{len(values) - 2}H", *values))


def test_a_stop_gives_nothing(firmware: ctypes.CDLL) -> None:
    assert not theirs(firmware, b"\0", USUAL, legacy=False).any()
    assert not ours(b"\0", USUAL, legacy=False)[7:].any()


@pytest.mark.parametrize(
    "modes",
    [USUAL, (1, 0, 0, 1, 1), (1, 1, 0, 1, 1), (0, 0, 1, 1, 1), (0, 0, 0, 0, 1), (0, 0, 0, 0, 0)],
    ids=["angles", "althold", "poshold", "posSet", "roll rate", "rates"],
)
def test_setpoints_of_the_old_commander(firmware: ctypes.CDLL, modes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(sum(modes))
    for _ in range(50):
        thrust = int(rng.integers(1001, 65535))
        data = struct.pack("<fffH", *rng.uniform(-30, 30, 3), thrust)
        compared(firmware, data, modes, legacy=True)
