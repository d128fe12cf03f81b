"""Autopilots fly drones with six and eight rotors.

Each fake allocates as its autopilot does: PX4's by the geometry of the airframe that we write,
ArduPilot's by its own table of the frame that our parameters name.
"""

from __future__ import annotations

import re
from pathlib import Path

import fake_px4
import numpy as np
import pytest
from door_flight import ARDUPILOT, NAMES, PX4, Kind, flights
from fake_ardupilot import HoverReading
from fake_px4 import Hover
from multirotors import HEXA, OCTO, RADIUS, tilted

from crazyflow_ros.doors import DoorContext
from crazyflow_ros.doors.ardupilot.parameter_file import parameters
from crazyflow_ros.doors.betaflight import Betaflight
from crazyflow_ros.doors.crazyflie_firmware import CrazyflieFirmware
from crazyflow_ros.doors.motors import frame_of, order_of
from crazyflow_ros.doors.px4.airframe import airframe
from crazyflow_ros.drones import Drone, load_drone, rotors_of

# AP_MotorsMatrix.cpp: directions of the motors, clockwise from the front, and yaw factors, which
# are 1 for motors that turn counter-clockwise; by FRAME_CLASS.
FRAMES = {
    1: [(45, 1), (-135, 1), (-45, -1), (135, -1)],
    2: [(90, -1), (-90, 1), (-30, -1), (150, 1), (30, 1), (-150, -1)],
    4: [(45, 1), (-45, -1), (-135, 1), (135, -1), (-45, 1), (45, -1), (135, 1), (-135, -1)],
}


def figures_of(pilot: type[Hover], drone: str, effects: np.ndarray, most: float) -> type[Hover]:
    """Return a pilot of a drone.

    Args:
        pilot: Of a Holybro X500.
        drone: Name of the drone.
        effects: (4, n) lift, and torque forward, right and down, of each newton of a rotor.
        most: Greatest thrust of a rotor [N].
    """
    figures, mixer = load_drone(drone), np.linalg.pinv(effects)

    class Own(pilot):  # type: ignore[misc, valid-type]
        MASS, THRUST = figures["mass"], most
        INERTIA = np.diag(figures["J"])

        def thrusts(self, lift: float, torque: np.ndarray) -> np.ndarray:
            result: np.ndarray = mixer @ [lift, *torque]
            return result

    return Own


def as_px4(drone: str) -> type[Hover]:
    """Return a pilot that knows where the rotors are from the airframe."""
    found = re.findall(r"^param set-default CA_ROTOR(\w+) (\S+)$", airframe(drone), re.MULTILINE)
    given = {name: float(value) for name, value in found}
    effects = []
    for i in range(int(given["_COUNT"])):
        place, axis = ([given[f"{i}_{k}{x}"] for x in "XYZ"] for k in "PA")
        share = given[f"{i}_CT"] / max(given[f"{k}_CT"] for k in range(int(given["_COUNT"])))
        torque = np.cross(place, axis) - given[f"{i}_KM"] * np.array(axis)
        effects.append(share * np.array([-axis[2], *torque]))
    most = rotors_of(drone).thrust_limits[1].max()
    return figures_of(Hover, drone, np.transpose(effects), most)


def as_ardupilot(drone: str) -> type[Hover]:
    """Return a pilot that knows the frame from the parameters, and the arm from the drone."""
    text = parameters(drone, 250, range_finder=False)
    (number,) = re.findall(r"^FRAME_CLASS (\d)$", text, re.MULTILINE)
    arm, ratio = np.linalg.norm(rotors_of(drone).position[0, :2]), 0.016
    effects = [
        [1.0, -arm * np.sin(np.deg2rad(angle)), arm * np.cos(np.deg2rad(angle)), ratio * spin]
        for angle, spin in FRAMES[int(number)]
    ]
    most = rotors_of(drone).thrust_limits[1].mean()  # it takes all to be the same
    return figures_of(HoverReading, drone, np.transpose(effects), most)


@pytest.mark.parametrize("drone", [HEXA, OCTO])
@pytest.mark.parametrize(("kind", "pilot"), [(PX4, as_px4), (ARDUPILOT, as_ardupilot)])
def test_they_hover_behind_the_doors_of_autopilots(kind: Kind, pilot, drone: str) -> None:
    fake_px4.dialect()  # which skips the tests without pymavlink
    with flights(kind) as start:
        flight = start(drone=drone)
        for i in range(len(NAMES)):
            flight.fake(i, pilot(drone)(1.0))
        wanted = flight.physics.snapshot.pos + np.array([0, 0, 1.0])
        for seconds in (6.0, 1.0):
            found = flight.fly(seconds)
            np.testing.assert_allclose(found.pos, wanted, atol=0.1)
        assert found.rotor_vel.shape == (2, len(rotors_of(drone)))
        assert flight.door.status().refused == 0


def test_a_hexarotor_of_px4_and_ardupilot_has_their_order() -> None:
    """Motors are right, left, front left, rear right, front right, rear left; ours go round."""
    assert order_of(HEXA) == (4, 0, 3, 5, 1, 2)
    frame, _ = frame_of(HEXA) or pytest.fail("no frame")
    assert frame.number == 2 and "FRAME_CLASS 2\n" in parameters(HEXA, 250, range_finder=False)
    assert "CA_ROTOR_COUNT 6" in airframe(HEXA) and "PWM_MAIN_FUNC6 106" in airframe(HEXA)
    assert "FRAME_CLASS 4\n" in parameters(OCTO, 250, range_finder=False)


@pytest.mark.parametrize("drone", list(Drone))
def test_motors_of_frames_are_where_the_rotors_are(drone: str) -> None:
    frame, order = frame_of(drone) or pytest.fail("no frame")
    assert frame.motors == tuple(FRAMES[frame.number])
    rotors = rotors_of(drone)
    for (x, y, z), spin, output in zip(rotors.position, rotors.spin, order):
        angle, turns = frame.motors[output]
        assert spin == turns
        np.testing.assert_allclose(np.rad2deg(np.arctan2(-y, x)) - angle, 0, atol=1e-3)
        if frame.number == 4:
            assert (z > 0) == (output < 4)  # the upper ones are first


def test_px4_flies_rotors_that_ardupilot_has_no_frame_for(tmp_path: Path) -> None:
    drone = tilted(tmp_path / "tilted")
    assert order_of(drone) == tuple(range(6))
    given = airframe(drone)
    assert re.search(r"CA_ROTOR0_AZ -0\.9", given) and RADIUS
    with pytest.raises(ValueError, match="ArduPilot has no frame for tilted, whose 6 rotors"):
        parameters(drone, 250, range_finder=False)


@pytest.mark.parametrize("settings", [Betaflight, CrazyflieFirmware])
def test_doors_of_quadrotors_refuse_others(settings) -> None:
    context = DoorContext((NAMES[0],), HEXA, 500, 0, PX4)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="is for quadrotors, but hexa_x680 has tables of its 6"):
        settings().open(context)
