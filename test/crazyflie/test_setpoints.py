"""What packets with setpoints mean: as cflib sends them, or as in the firmware's sources."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from crazyflow_ros import flight
from crazyflow_ros.control.setpoint_modes import SetpointMode
from crazyflow_ros.crazyflie.crtp import Packet, Port
from crazyflow_ros.crazyflie.memory_port import Trajectories
from crazyflow_ros.crazyflie.parameters import CrazyflieParameters, Number
from crazyflow_ros.crazyflie.setpoints import Decoder

pytest.importorskip("cflib", reason="cflib is not installed")

from cflib.crazyflie.commander import Commander
from cflib.crazyflie.high_level_commander import HighLevelCommander

THRUST = 0.48  # N, of all rotors
HALF = THRUST * 32768 / 65535
MOST = THRUST * 60000 / 65535
LEGACY = 7  # version of CRTP
NEW = (12,)
ALL = (LEGACY, *NEW)
IDENTITY = (0, 0, 0, 1)
turn = math.radians
TILT = turn(5), turn(6)


def decoder(*, gentle: bool = True, **values: Number) -> Decoder:
    """With some parameters of the group flightmode set."""
    names = {f"flightmode.{name}": value for name, value in values.items()}
    parameters = CrazyflieParameters(names, lambda *_: None, lambda _: None)
    return Decoder(parameters.get, THRUST, Trajectories(), gentle)


def sent(kind: type[Any], send: Callable[[Any], object], version: int = 12) -> Packet:
    """The packet that a commander of cflib sends to a firmware with a version of the protocol."""
    packets: list[Any] = []
    platform = SimpleNamespace(get_protocol_version=lambda: version)
    send(kind(SimpleNamespace(platform=platform, send_packet=packets.append)))
    (packet,) = packets
    return Packet.parse(bytes([packet.header, *packet.data]))


def check(found: object, expected: object) -> None:
    """Check that two setpoints are equal, but for single precision."""
    assert type(found) is type(expected)
    for name, value in vars(expected).items():
        other = vars(found)[name]
        if isinstance(value, str | bool):
            assert other == value, name
        else:
            np.testing.assert_allclose(other, value, rtol=1e-6, atol=1e-6, err_msg=name)


@pytest.mark.filterwarnings("ignore:Using legacy")
@pytest.mark.parametrize("version", [LEGACY, 12])
@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("velocity_world_setpoint", (1, 2, 3, 90), flight.VelocityWorld((1, 2, 3), turn(90))),
        ("zdistance_setpoint", (5, -6, 90, 1), flight.AltitudeHold(*TILT, turn(90), 1.0)),
        ("hover_setpoint", (1, 2, 90, 0.5), flight.Hover((1, 2), turn(90), 0.5)),
        ("position_setpoint", (1, 2, 3, 90), flight.Position((1, 2, 3), turn(90))),
        ("setpoint_manual", (5, 6, 90, 100, False), flight.AttitudeThrust(*TILT, turn(90), MOST)),
        (
            "setpoint_manual", (5, 6, 90, 100, True),
            flight.AttitudeThrust(*TILT, turn(90), MOST, True, True),
        ),
        (
            "full_state_setpoint", ((1, 0, -0.5), (1, 2, 3), (4, 5, 6), IDENTITY, 0.1, 0.0, -0.2),
            flight.FullState((1, 0, -0.5), (1, 2, 3), (4, 5, 6), IDENTITY, (0.1, 0.0, -0.2)),
        ),
        ("stop_setpoint", (), flight.Stop()),
        ("notify_setpoint_stop", (), flight.NotifySetpointsStop()),
    ],
)  # fmt: skip
def test_generic_setpoints_of_cflib(
    name: str, values: tuple[Any, ...], expected: flight.Setpoint, version: int
) -> None:
    packet = sent(Commander, lambda c: getattr(c, f"send_{name}")(*values), version)
    check(decoder().generic(packet), expected)


def unchanged(mode: str, **values: Any) -> flight.FirmwareSetpoint:
    return flight.FirmwareSetpoint(SetpointMode(mode), **values)


@pytest.mark.filterwarnings("ignore:Using legacy")
@pytest.mark.parametrize("version", [LEGACY, 12])
@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        (
            "velocity_world_setpoint", (1, 2, 3, 90),
            unchanged("velocity", vel=(1, 2, 3), rates=(0, 0, turn(90))),
        ),
        (
            "zdistance_setpoint", (5, -6, 90, 1),
            unchanged("z_distance", pos=(0, 0, 1), rpy=(*TILT, 0), rates=(0, 0, turn(90))),
        ),
        (
            "hover_setpoint", (1, 2, 90, 0.5),
            unchanged("hover", pos=(0, 0, 0.5), vel=(1, 2, 0), rates=(0, 0, turn(90))),
        ),
        (
            "position_setpoint", (1, 2, 3, 90),
            unchanged("state", pos=(1, 2, 3), rpy=(0, 0, turn(90))),
        ),
        (
            "setpoint_manual", (5, 6, 90, 100, False),
            unchanged("attitude", rpy=(*TILT, 0), rates=(0, 0, turn(90)), thrust=MOST),
        ),
        (
            "setpoint_manual", (5, 6, 90, 100, True),
            unchanged("attitude", rates=(*TILT, turn(90)), thrust=MOST, are_rates=(True, True)),
        ),
        (
            "full_state_setpoint", ((1, 0, -0.5), (1, 2, 3), (4, 5, 6), IDENTITY, 0.1, 0.0, -0.2),
            unchanged(
                "full_state", pos=(1, 0, -0.5), vel=(1, 2, 3), acc=(4, 5, 6),
                rates=(0.1, 0.0, -0.2),
            ),
        ),
        ("stop_setpoint", (), unchanged("attitude")),
        ("notify_setpoint_stop", (), flight.NullSetpoint()),
    ],
)  # fmt: skip
def test_setpoints_reach_the_controllers_unchanged(
    name: str, values: tuple[Any, ...], expected: flight.Setpoint, version: int
) -> None:
    """By hand, from the firmware's sources; `test_firmware_setpoints` compares with these."""
    packet = sent(Commander, lambda c: getattr(c, f"send_{name}")(*values), version)
    check(decoder(gentle=False).generic(packet), expected)


def test_positions_held_by_a_remote_control_are_velocities_in_the_world() -> None:
    data = struct.pack("<fffH", 3, 6, 0, 49150)
    packet = Packet(Port.attitude_setpoint, 0, data)
    found = decoder(gentle=False, althold=1, poshold=1).attitude(packet)
    check(found, unchanged("velocity", vel=(0.2, 0.1, 16383 / 32767)))


@pytest.mark.parametrize(
    ("kind", "form", "values", "expected"),
    [
        (4, "<ffff", (5, -6, 90, 1), flight.AltitudeHold(turn(5), turn(6), turn(90), climb=1.0)),
        (
            3, "<B4HH", (1, 1400, 1600, 1500, 1500, 2000),
            flight.AttitudeThrust(turn(10), turn(10), 0.0, THRUST * 0.5),
        ),
        (  # half of the way, at up to 720 degrees/s
            3, "<B4HH", (1, 1250, 1750, 1500, 1500, 1000),
            flight.AttitudeThrust(turn(360), turn(360), 0.0, THRUST * 0.5, True, True),
        ),
    ],
)  # fmt: skip
def test_generic_setpoints_of_the_firmware(
    kind: int, form: str, values: tuple[float, ...], expected: flight.Setpoint
) -> None:
    packet = Packet(Port.setpoint, 0, bytes([kind]) + struct.pack(form, *values))
    check(decoder().generic(packet), expected)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("versions", "send", "expected"),
    [
        (ALL, lambda c: c.set_group_mask(5), flight.SetGroups(5)),
        (ALL, lambda c: c.takeoff(1, 2, 3, 0.5), flight.Takeoff(1.0, 2.0, 0.5, 3)),
        (ALL, lambda c: c.takeoff(1, 2, 3, None), flight.Takeoff(1.0, 2.0, math.nan, 3)),
        (ALL, lambda c: c.land(0.1, 2, 3, 0.5), flight.Land(0.1, 2.0, 0.5, 3)),
        (ALL, lambda c: c.stop(3), flight.Stop(3)),
        (
            ALL, lambda c: c.go_to(1, 2, 3, 4, 5, relative=True, group_mask=3),
            flight.GoTo((1, 2, 3), 4.0, 5.0, True, 3),
        ),
        (
            NEW, lambda c: c.go_to(1, 2, 3, 4, 5, linear=True, group_mask=3),
            flight.GoTo((1, 2, 3), 4.0, 5.0, False, 3, linear=True),
        ),
        (
            NEW, lambda c: c.spiral(1, 2, 3, 4, 5, sideways=True, clockwise=False, group_mask=3),
            flight.Spiral(1.0, 2.0, 3.0, 4.0, 5.0, True, False, 3),
        ),
    ],
)  # fmt: skip
def test_high_level_commands_of_cflib(
    versions: tuple[int, ...], send: Callable[[Any], object], expected: flight.Setpoint
) -> None:
    for version in versions:
        check(decoder().high_level(sent(HighLevelCommander, send, version)), expected)


@pytest.mark.parametrize(
    ("kind", "form", "values", "expected"),
    [
        (1, "<Bff", (3, 1, 2), flight.Takeoff(1.0, 2.0, 0.0, 3)),
        (2, "<Bff", (3, 0.1, 2), flight.Land(0.1, 2.0, 0.0, 3)),
        (
            9, "<Bf?f?f", (3, 1, True, 0.5, False, 0.7),
            flight.Takeoff(1.0, 0.0, 0.5, 3, velocity=0.7, relative=True),
        ),
        (  # the velocity that a parameter has
            10, "<Bf?f?f", (3, 1, False, 0, True, 0),
            flight.Land(1.0, 0.0, math.nan, 3, velocity=0.5),
        ),
    ],
)  # fmt: skip
def test_high_level_commands_of_the_firmware(
    kind: int, form: str, values: tuple[float, ...], expected: flight.Setpoint
) -> None:
    packet = Packet(Port.high_level, 0, bytes([kind]) + struct.pack(form, *values))
    check(decoder().high_level(packet), expected)


@pytest.mark.parametrize(
    ("modes", "thrust", "expected"),
    [
        ({}, 0, flight.AttitudeThrust(turn(3), turn(6), turn(-90), 0.0)),
        ({"althold": 1}, 32767, flight.AltitudeHold(turn(3), turn(6), turn(-90), climb=0.0)),
        ({"althold": 1, "poshold": 1}, 32767, flight.Velocity((-0.2, 0.1, 0.0), turn(-90))),
        ({"posSet": 1}, 1500, flight.Position((6.0, 3.0, 1.5), turn(90))),
        (
            {"stabModeRoll": 0}, 0,
            flight.AttitudeThrust(turn(3), turn(6), turn(-90), 0.0, True, False),
        ),
        (
            {"stabModePitch": 0}, 0,
            flight.AttitudeThrust(turn(3), turn(6), turn(-90), 0.0, False, True),
        ),
        # The firmware does not read this one.
        ({"stabModeYaw": 1}, 0, flight.AttitudeThrust(turn(3), turn(6), turn(-90), 0.0)),
    ],
)  # fmt: skip
def test_modes_change_what_attitude_setpoints_mean(
    modes: dict[str, Number], thrust: int, expected: flight.Setpoint
) -> None:
    packet = sent(Commander, lambda c: c.send_setpoint(3.0, 6.0, 90.0, thrust))
    check(decoder(**modes).attitude(packet), expected)


def test_thrust_is_locked_until_it_was_zero() -> None:
    reader = decoder()

    def received(thrust: int) -> flight.Setpoint:
        return reader.attitude(sent(Commander, lambda c: c.send_setpoint(3, 6, 90, thrust)))

    for _ in range(2):
        with pytest.raises(ValueError, match="locked"):
            received(32768)
        received(0)
        check(received(32768), flight.AttitudeThrust(turn(3), turn(6), turn(-90), HALF))
        reader.lock()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("version", [9, 12])
def test_trajectories_are_read_from_their_memory(version: int) -> None:
    reader = decoder()
    pieces = np.arange(66.0).reshape(2, 33) / 1000
    pieces[:, -1] = 0.5, 0.7  # s
    reader.trajectories.write(132, pieces.astype("<f4").tobytes())
    define = sent(HighLevelCommander, lambda c: c.define_trajectory(4, 132, 2))
    assert reader.high_level(define) is None
    flags = {"relative_position": True, "relative_yaw": True, "reversed": True}
    start = sent(HighLevelCommander, lambda c: c.start_trajectory(4, 2.0, **flags), version)
    found = reader.high_level(start)
    assert isinstance(found, flight.FlyTrajectory)
    assert (found.timescale, found.reversed, found.relative) == (2.0, True, True)
    assert found.relative_yaw == (version >= 10)
    np.testing.assert_allclose(found.trajectory.durations, (0.5, 0.7))
    expected = pieces[:, :-1].reshape(2, 4, 8)
    np.testing.assert_allclose(found.trajectory.coefficients, expected, rtol=1e-6)
