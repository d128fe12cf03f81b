"""What packets with setpoints mean: layouts, units and signs, as in the firmware's sources."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest

from crazyflow_ros import flight
from crazyflow_ros.crazyflie.memories import Trajectories
from crazyflow_ros.crazyflie.packets import Packet, Port
from crazyflow_ros.crazyflie.parameters import CrazyflieParameters, Number
from crazyflow_ros.crazyflie.setpoints import Decoder

THRUST = 0.48  # N, of all rotors


def decoder(**values: Number) -> Decoder:
    """With some parameters of the group flightmode set."""
    names = {f"flightmode.{name}": value for name, value in values.items()}
    parameters = CrazyflieParameters(names, lambda *_: None, lambda _: None)
    return Decoder(parameters.get, THRUST, Trajectories())


def same(found: object, expected: object) -> bool:
    """Whether two setpoints are equal, but for single precision."""
    assert type(found) is type(expected)
    for name, value in vars(expected).items():
        other = vars(found)[name]
        if isinstance(value, str | bool):
            assert other == value, name
        else:
            np.testing.assert_allclose(other, value, rtol=1e-6, atol=1e-6, err_msg=name)
    return True


def turn(degrees: float) -> float:
    return math.radians(degrees)


@pytest.mark.parametrize(
    ("kind", "form", "values", "expected"),
    [
        (1, "<ffff", (1, 2, 3, 90), flight.VelocityWorld((1, 2, 3), turn(-90))),
        (8, "<ffff", (1, 2, 3, 90), flight.VelocityWorld((1, 2, 3), turn(90))),
        (2, "<ffff", (5, -6, 90, 1), flight.AltitudeHold(turn(5), turn(6), turn(-90), 1.0)),
        (9, "<ffff", (5, -6, 90, 1), flight.AltitudeHold(turn(5), turn(6), turn(90), 1.0)),
        (4, "<ffff", (5, -6, 90, 1), flight.AltitudeHold(turn(5), turn(6), turn(90), climb=1.0)),
        (5, "<ffff", (1, 2, 90, 0.5), flight.Hover((1, 2), turn(-90), 0.5)),
        (10, "<ffff", (1, 2, 90, 0.5), flight.Hover((1, 2), turn(90), 0.5)),
        (7, "<ffff", (1, 2, 3, 90), flight.Position((1, 2, 3), turn(90))),
        (
            *(11, "<fffHB", (5, -6, 90, 32768, 0)),
            flight.AttitudeThrust(turn(5), turn(6), turn(90), THRUST * 32768 / 65535),
        ),
        (
            *(3, "<B4HH", (1, 1400, 1600, 1500, 1500, 2000)),
            flight.AttitudeThrust(turn(10), turn(10), 0.0, THRUST * 0.5),
        ),
        (
            *(11, "<fffHB", (50, -60, 90, 32768, 1)),
            flight.AttitudeThrust(
                *(turn(50), turn(60), turn(90), THRUST * 32768 / 65535, True, True)
            ),
        ),
        (  # half of the way, at up to 720 degrees/s
            *(3, "<B4HH", (1, 1250, 1750, 1500, 1500, 1000)),
            flight.AttitudeThrust(turn(360), turn(360), 0.0, THRUST * 0.5, True, True),
        ),
        (
            *(6, "<hhhhhhhhhIhhh", (1000, 0, -500, 1, 2, 3, 4, 5, 6, 3 << 30, 100, 0, -200)),
            flight.FullState(
                *((1.0, 0.0, -0.5), (1e-3, 2e-3, 3e-3), (4e-3, 5e-3, 6e-3)),
                *((0, 0, 0, 1), (0.1, 0.0, -0.2)),
            ),
        ),
        (0, "<", (), flight.Stop()),
    ],
)
def test_generic_setpoints(
    kind: int, form: str, values: tuple[float, ...], expected: flight.Setpoint
) -> None:
    packet = Packet(Port.setpoint, 0, bytes([kind]) + struct.pack(form, *values))
    assert same(decoder().generic(packet), expected)


@pytest.mark.parametrize(
    ("kind", "form", "values", "expected"),
    [
        (0, "<B", (5,), flight.SetGroups(5)),
        (1, "<Bff", (3, 1, 2), flight.Takeoff(1.0, 2.0, 0.0, 3)),
        (2, "<Bff", (3, 0.1, 2), flight.Land(0.1, 2.0, 0.0, 3)),
        (3, "<B", (3,), flight.Stop(3)),
        (4, "<B?fffff", (3, True, 1, 2, 3, 4, 5), flight.GoTo((1, 2, 3), 4.0, 5.0, True, 3)),
        (7, "<Bff?f", (3, 1, 0.5, False, 2), flight.Takeoff(1.0, 2.0, 0.5, 3)),
        (7, "<Bff?f", (3, 1, 0.5, True, 2), flight.Takeoff(1.0, 2.0, math.nan, 3)),
        (8, "<Bff?f", (3, 0, 0.5, False, 2), flight.Land(0.0, 2.0, 0.5, 3)),
        (
            *(9, "<Bf?f?f", (3, 1, True, 0.5, False, 0.7)),
            flight.Takeoff(1.0, 0.0, 0.5, 3, velocity=0.7, relative=True),
        ),
        (  # the velocity that a parameter has
            *(10, "<Bf?f?f", (3, 1, False, 0, True, 0)),
            flight.Land(1.0, 0.0, math.nan, 3, velocity=0.5),
        ),
        (
            *(11, "<B??fffff", (3, True, False, 1, 2, 3, 4, 5)),
            flight.Spiral(1.0, 2.0, 3.0, 4.0, 5.0, True, False, 3),
        ),
        (
            *(12, "<B??fffff", (3, False, True, 1, 2, 3, 4, 5)),
            flight.GoTo((1, 2, 3), 4.0, 5.0, False, 3, linear=True),
        ),
    ],
)
def test_high_level_commands(
    kind: int, form: str, values: tuple[float, ...], expected: flight.Setpoint
) -> None:
    packet = Packet(Port.high_level, 0, bytes([kind]) + struct.pack(form, *values))
    assert same(decoder().high_level(packet), expected)


def test_modes_change_what_attitude_setpoints_mean() -> None:
    def packet(thrust: int) -> Packet:
        return Packet(Port.attitude_setpoint, 0, struct.pack("<fffH", 3.0, -6.0, 90.0, thrust))

    usual = decoder()
    with pytest.raises(ValueError, match="thrust is locked"):
        usual.attitude(packet(32768))
    assert same(usual.attitude(packet(0)), flight.AttitudeThrust(turn(3), turn(6), turn(-90), 0.0))
    half = THRUST * 32768 / 65535
    assert same(
        usual.attitude(packet(32768)), flight.AttitudeThrust(turn(3), turn(6), turn(-90), half)
    )
    assert same(
        decoder(althold=1).attitude(packet(32767)),
        flight.AltitudeHold(turn(3), turn(6), turn(-90), climb=0.0),
    )
    assert same(
        decoder(althold=1, poshold=1).attitude(packet(32767)),
        flight.Velocity((-0.2, 0.1, 0.0), turn(-90)),
    )
    assert same(
        decoder(posSet=1).attitude(packet(1500)), flight.Position((6.0, 3.0, 1.5), turn(90))
    )
    for mode, are_rates in (("stabModeRoll", (True, False)), ("stabModePitch", (False, True))):
        assert same(
            decoder(**{mode: 0}).attitude(packet(0)),
            flight.AttitudeThrust(turn(3), turn(6), turn(-90), 0.0, *are_rates),
        )
    assert same(  # which the firmware does not read
        decoder(stabModeYaw=1).attitude(packet(0)),
        flight.AttitudeThrust(turn(3), turn(6), turn(-90), 0.0),
    )


def test_trajectories_are_read_from_their_memory() -> None:
    reader = decoder()
    pieces = np.arange(66.0).reshape(2, 33) / 1000
    pieces[:, -1] = 0.5, 0.7  # s
    reader.trajectories.write(132, pieces.astype("<f4").tobytes())
    define = struct.pack("<BBBBIB", 6, 4, 1, 0, 132, 2)
    assert reader.high_level(Packet(Port.high_level, 0, define)) is None
    start = struct.pack("<BBBBBBf", 13, 1, 0, 0, 1, 4, 2.0)
    found = reader.high_level(Packet(Port.high_level, 0, start))
    assert isinstance(found, flight.FlyTrajectory)
    assert (found.timescale, found.reversed, found.relative) == (2.0, True, False)
    np.testing.assert_allclose(found.trajectory.durations, (0.5, 0.7))
    expected = pieces[:, :-1].reshape(2, 4, 8)
    np.testing.assert_allclose(found.trajectory.coefficients, expected, rtol=1e-6)
