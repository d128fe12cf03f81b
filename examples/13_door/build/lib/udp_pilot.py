"""An autopilot for udp_door.py: it holds a Crazyflie at a height, and needs Python alone.

python udp_pilot.py [drone] [height] [port]
"""

from __future__ import annotations

import math
import socket
import struct
import sys

COMMAND, READING = struct.Struct("<BQ4d"), struct.Struct("<Q6d10d")  # see udp_door.py
MASS, GRAVITY, ARM = 0.0328, 9.81, 0.03253  # kg, m/s^2, m from the axes to the rotors
THRUST, TORQUE = 1.98e-8, 0.006  # N/(rad/s)^2 of a rotor; N m of torque for each N of thrust
PATIENCE, FASTEST = 0.5, 2600.0  # s of wall time, rad/s


def rotor_speeds(reading: list[float], start: tuple[float, float], height: float) -> list[float]:
    """Return the speeds of the rotors front right, rear right, rear left and front left [rad/s]."""
    p, q, r = reading[0:3]  # noisy, from the gyroscope
    x, y, z, qx, qy, qz, qw, vx, vy, vz = reading[6:16]
    roll = math.atan2(2 * (qw * qx + qy * qz), 1 - 2 * (qx * qx + qy * qy))
    pitch = math.asin(max(-1.0, min(1.0, 2 * (qw * qy - qz * qx))))
    yaw = math.atan2(2 * (qw * qz + qx * qy), 1 - 2 * (qy * qy + qz * qz))
    ax, ay = (2 * (to - at) - 2.5 * v for to, at, v in zip(start, (x, y), (vx, vy)))
    forward = ax * math.cos(yaw) + ay * math.sin(yaw)
    left = ay * math.cos(yaw) - ax * math.sin(yaw)
    lift = MASS * max(1.0, GRAVITY + 4 * (height - z) - 4 * vz)
    wanted_roll, wanted_pitch = (max(-0.3, min(0.3, a / GRAVITY)) for a in (-left, forward))
    about_x = 2e-3 * (wanted_roll - roll) - 3e-4 * p
    about_y = 2e-3 * (wanted_pitch - pitch) - 3e-4 * q
    about_z = -1e-3 * yaw - 3e-4 * r
    sides = ((-1, -1, -1), (-1, 1, 1), (1, 1, -1), (1, -1, 1))  # of the torques, rotor by rotor
    thrusts = (
        lift / 4 + (sx * about_x + sy * about_y) / (4 * ARM) + sz * about_z / (4 * TORQUE)
        for sx, sy, sz in sides
    )
    return [min(FASTEST, math.sqrt(max(0.0, thrust) / THRUST)) for thrust in thrusts]


def main(drone: int = 0, height: float = 0.5, port: int = 9100) -> None:
    """Fly until nobody answers for a long time."""
    link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    link.connect(("127.0.0.1", port))
    link.settimeout(PATIENCE)
    command, start = COMMAND.pack(drone, 0, *[0.0] * 4), None
    while True:
        try:
            link.send(command)
            tick, *reading = READING.unpack(link.recv(READING.size))
        except (TimeoutError, ConnectionRefusedError):  # lost, or no simulator yet, or a pause
            continue
        start = start or (reading[6], reading[7])
        command = COMMAND.pack(drone, tick, *rotor_speeds(reading, start, height))


if __name__ == "__main__":
    main(*(kind(word) for kind, word in zip((int, float, int), sys.argv[1:])))
