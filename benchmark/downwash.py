"""`downwash`, judged by the flights of Neural-Swarm: two or three Crazyflies above one another.

python -m benchmark.downwash neural-swarm/data/training

The folder is that of https://github.com/aerorobotics/neural-swarm (G. Shi et al., "Neural-Swarm2",
T-RO 2021), of which only flights with small drones are read: Crazyflies 2.1 of 34 g.
"""

from __future__ import annotations

import sys
import zlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise, permutations
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from scipy.spatial.transform import Rotation

from crazyflow_ros.checks.compressed_quaternions import decompressed
from crazyflow_ros.checks.limits import read_bytes, shown_path
from crazyflow_ros.checks.program_end import quiet_if_unread
from crazyflow_ros.drones import load_drone
from crazyflow_ros.dynamics.components import BodyState, split
from crazyflow_ros.dynamics.first_principles import Params
from crazyflow_ros.dynamics.forces.aerodynamics import downwash
from crazyflow_ros.identification.rotor_forces import lagging, speeds_of
from crazyflow_ros.reality.report import markdown

DRONE = "cf2x_L250"
"""Whose motors and rotors these Crazyflies have."""

MASS = 0.034  # kg, `planning/robots.py` of Neural-Swarm
GRAM = 9.81e-3  # N
_SMALL = ("cf50", "cf51", "cf52")
_RATE = 100.0  # Hz
_LAG = 0.06  # s, of the motors
_FLOOR = 0.3  # m, below which the ground effect counts
_ALONE = 0.4  # m beside others, where there is no downwash
_DEPTHS = (0.2, 0.3, 0.4, 0.5, 0.6)  # m, each +- 0.05
_ASIDE = (0.0, 0.03, 0.06, 0.09, 0.12, 0.15)  # m
# Thrust of a motor [g] by duty cycle d and voltage over 4.2 V v: 1, d, v, d^2, d v; the stand of
# Neural-Swarm with these drones, `defaultcf.txt` beside the flights.
STAND = (11.093358, -39.081042, -9.525647, 20.573302, 38.428851)
_VOLTAGE = 3.6  # V, of a battery in flight
_PRIOR = np.array([0.15, 10 * GRAM, 15 * GRAM])  # standard deviations of factor, N and N/V
_NOISE = 6 * GRAM  # of a sample: 2 g, of which nine in ten say nothing new
_FEW = 40  # samples, below which a median is not shown
_TYPES = {"B": "u1", "b": "i1", "H": "u2", "h": "i2", "I": "u4", "i": "i4", "f": "f4"}
_CRC_BYTES = 4
_MOST_BYTES = 100_000_000  # of a log


@dataclass(frozen=True)
class Meetings:
    """Samples of drones that are below another one, and far from any third."""

    way: np.ndarray
    """(n, 3) m, from the drone above to the one below, world frame."""
    quat: np.ndarray
    """(n, 2, 4) xyzw, attitude of the drone above and of the one below."""
    thrust: np.ndarray
    """(n,) N, of the drone above."""
    loss: np.ndarray
    """(n,) N, what the drone below loses."""
    turn: np.ndarray
    """(n,) N m, torque that its motors balance, towards the axis of the drone above."""


@dataclass(frozen=True)
class _Drone:
    pos: np.ndarray
    quat: np.ndarray
    up: np.ndarray
    specific_force: np.ndarray  # (n,) m/s^2, upwards
    motors: np.ndarray  # (n, 4) N, thrust of each motor, not calibrated
    voltage: np.ndarray

    @property
    def expected(self) -> np.ndarray:
        """(n,) N, thrust of the motors, not calibrated."""
        total: np.ndarray = self.motors.sum(axis=1)
        return total

    @property
    def torque(self) -> np.ndarray:
        """(n, 2) N m, of the motors about x and y of the body."""
        x, y, _ = load_drone(DRONE)["rotors"].position.T
        return self.motors @ np.stack((y, -x), axis=-1)


def meetings(folder: Path, half: int) -> Meetings:
    """Read every second flight of a folder of Neural-Swarm.

    Args:
        folder: Its `data/training`, or a folder with some of its folders.
        half: 0 for the flights that 1.35 was fitted to, 1 for the others.

    Raises:
        ValueError: There is no such flight, or a log is damaged.
    """
    flights = defaultdict[tuple[Path, str], list[Path]](list)
    for path in sorted(folder.rglob("cf[0-9]*_[0-9]*")):
        if not path.suffix:
            flights[path.parent, path.name.partition("_")[2]].append(path)
    found = list[Meetings]()
    for logs in list(flights.values())[half::2]:
        if len(logs) > 1 and all(path.name.startswith(_SMALL) for path in logs):
            found += _of_flight([read_columns(path) for path in logs])
    if not found:
        raise ValueError(f"there are no flights of Neural-Swarm in {shown_path(folder)}")
    return Meetings(
        *(np.concatenate([getattr(each, f.name) for each in found]) for f in fields(Meetings))
    )


def simulated(samples: Meetings) -> tuple[np.ndarray, np.ndarray]:
    """Return loss [N] and torque towards the axis [N m] of `downwash` at the same samples."""
    n = len(samples.loss)
    pos = np.stack([np.zeros((n, 3)), samples.way], axis=1)
    speed = speeds_of(np.maximum(samples.thrust, 0.0) / 4, load_drone(DRONE))
    arrays = pos, samples.quat, 0 * pos, 0 * pos, np.broadcast_to(speed[:, None, None], (n, 2, 4))
    state = BodyState(*(split(jnp.asarray(a)) for a in arrays))  # type: ignore[arg-type]
    acts = downwash(DRONE)(state, Params.create(DRONE))
    torque = Rotation.from_quat(samples.quat[:, 1]).inv().apply(np.stack(acts.torque)[..., 1].T)
    return -np.asarray(acts.force[2])[:, 1], _towards(samples.way, samples.quat, torque[:, :2])


def _towards(way: np.ndarray, quat: np.ndarray, torque: np.ndarray) -> np.ndarray:
    """Return torques (n, 2) about x and y of the drone below [N m], towards the axis above."""
    up = Rotation.from_quat(quat[:, 0]).apply([0.0, 0.0, 1.0])
    away = way - (way * up).sum(axis=1, keepdims=True) * up
    x, y, _ = Rotation.from_quat(quat[:, 1]).inv().apply(away).T
    found: np.ndarray = (torque[:, 0] * y - torque[:, 1] * x) / np.hypot(x, y)
    return found


def rows(real: np.ndarray, model: np.ndarray, samples: Meetings, unit: float) -> list[list[str]]:
    """Return medians, real and simulated, by depth and distance from the vertical axis.

    Args:
        real: (n,) values of the samples.
        model: The same of the model.
        samples: For depths and distances.
        unit: In which to show the values.
    """
    depth, aside = -samples.way[:, 2], np.hypot(*samples.way[:, :2].T)
    result = []
    for middle in _DEPTHS:
        row = [f"{middle} m", str(int((abs(depth - middle) < 0.05).sum()))]
        for low, high in pairwise(_ASIDE):
            here = (abs(depth - middle) < 0.05) & (low <= aside) & (aside < high)
            if here.sum() < _FEW:
                row.append("")
                continue
            flown, ours = (np.median(values[here]) / unit for values in (real, model))
            row.append(f"{flown:.1f}, {ours:.1f}")
        result.append(row)
    return result


def _of_flight(logs: Sequence[dict[str, np.ndarray]]) -> Iterable[Meetings]:
    """Yield the meetings of each two drones of a flight, whose clocks started together."""
    time = times_of(logs)
    if len(time) < _RATE:
        return
    drones = [drone_of(log, time) for log in logs]
    ways = {(a, b): drones[b].pos - drones[a].pos for a, b in permutations(range(len(drones)), 2)}
    asides = {pair: np.hypot(way[:, 0], way[:, 1]) for pair, way in ways.items()}
    for above, below in ways:
        drone, upper = drones[below], drones[above]
        others = [i for i in range(len(drones)) if i != below]
        flying = drone.pos[:, 2] > _FLOOR
        alone = flying & np.all([asides[i, below] > _ALONE for i in others], axis=0)
        if alone.sum() < 1.5 * _RATE:
            continue
        loss = calibrated(drone, alone) - MASS * drone.specific_force
        depth = -ways[above, below][:, 2]
        use = flying & (depth > 0.1) & (depth < 0.8) & (asides[above, below] < _ASIDE[-1])
        for third in set(others) - {above}:
            beside = (asides[third, below] > _ALONE) | (ways[third, below][:, 2] > _ALONE)
            use &= beside & ((asides[third, above] > 0.3) | (ways[third, above][:, 2] > 0))
        thrust = MASS * upper.specific_force * upper.up[:, 2]
        balance = np.median(drone.torque[alone], axis=0) - drone.torque
        yield Meetings(
            ways[above, below][use],
            np.stack([upper.quat, drone.quat], axis=1)[use],
            np.convolve(thrust, np.ones(20) / 20, "same")[use],
            loss[use],
            _towards(ways[above, below], np.stack([upper.quat, drone.quat], 1), balance)[use],
        )


def times_of(logs: Sequence[dict[str, np.ndarray]]) -> np.ndarray:
    """Return the times [s] of samples that all logs have, whose clocks started together."""
    begin, end = max(log["tick"][0] for log in logs), min(log["tick"][-1] for log in logs)
    return np.arange(begin * 1e-6 + 0.5, end * 1e-6 - 0.5, 1 / _RATE)


def drone_of(log: dict[str, np.ndarray], time: np.ndarray) -> _Drone:
    """Return the samples of a log at these times [s]."""

    def at(values: np.ndarray) -> np.ndarray:
        return np.interp(time, log["tick"] * 1e-6, values)

    x, y, z, w = quat = np.array([at(c) for c in decompressed(log["stateEstimateZ.quat"]).T])
    voltage = at(log["pm.vbatMV"]) * 1e-3
    duties = np.stack([at(log[f"pwm.m{i}_pwm"]) / 65536 for i in (1, 2, 3, 4)], axis=-1)
    ratio, (offset, linear, at_rest, square, both) = voltage[:, None] / 4.2, STAND
    thrusts = (
        offset + linear * duties + at_rest * ratio + square * duties**2 + both * ratio * duties
    )
    return _Drone(
        pos=np.stack([at(log[f"stateEstimateZ.{axis}"]) * 1e-3 for axis in "xyz"], axis=-1),
        quat=quat.T,
        up=np.stack([2 * (x * z + y * w), 2 * (y * z - x * w), 1 - 2 * (x * x + y * y)], axis=-1),
        specific_force=at(log["stateEstimateZ.az"]) * 1e-3,
        motors=GRAM * lagging(thrusts, _LAG, 1 / _RATE),
        voltage=voltage,
    )


def calibrated(drone: _Drone, alone: np.ndarray) -> np.ndarray:
    """Return the vertical thrust [N] of the motors, with factor and offsets fitted while alone."""
    up = drone.up[:, 2]
    columns = np.stack([drone.expected, np.ones_like(up), drone.voltage - _VOLTAGE], axis=-1)
    columns *= up[:, None]
    weight = MASS * drone.specific_force
    chosen, expected, prior = alone.copy(), np.array([1.0, 0.0, 0.0]), np.diag(_NOISE / _PRIOR)
    for _ in range(3):  # without what is far off: bumps, and wakes that drift
        rows = np.concatenate([columns[chosen], prior])
        fit = np.linalg.lstsq(rows, np.append(weight[chosen], prior @ expected), rcond=None)[0]
        calibrated: np.ndarray = columns @ fit
        chosen = alone & (abs(calibrated - weight) < 15 * GRAM)
    return calibrated


def read_columns(path: Path) -> dict[str, np.ndarray]:
    """Return the values (n,) of each variable in a log of the SD card, as written until 2020.

    A byte with the number of variables and their names, each with its type and a comma, precede
    blocks of a byte with the number of records and the records. Header and blocks end with an
    inverted CRC-32. Records whose `tick` does not rise are left out.

    Raises:
        ValueError: It is not such a log, it is damaged, or it is larger than 100 MB.
        OSError: The file cannot be read.
    """
    content = read_bytes(path, _MOST_BYTES)
    try:
        records = _records(content)
    except ValueError as error:
        raise ValueError(f"{shown_path(path)}: {error}") from None
    tick = records["tick"].astype(float)
    rising = tick > np.maximum.accumulate(np.concatenate([[-np.inf], tick[:-1]]))
    return {name: records[name][rising].astype(float) for name in records.dtype.names or ()}


def _records(content: bytes) -> np.ndarray:
    names = content[1:].split(b",", content[0])[:-1] if content else []
    start = 1 + sum(len(name) + 1 for name in names)
    if not names or len(names) != content[0]:
        raise ValueError("the header is not complete")
    variables = [(name[:-3].strip().decode("ascii", "replace"), name[-3:]) for name in names]
    kinds = [kind[1:2].decode("ascii", "replace") for _, kind in variables]
    if any(kind not in _TYPES for kind in kinds) or variables[0][0] != "tick":
        raise ValueError("not an old log of the firmware's SD card")
    record = np.dtype([(name, f"<{_TYPES[kind]}") for (name, _), kind in zip(variables, kinds)])
    _check(content[: start + _CRC_BYTES])
    at, blocks = start + _CRC_BYTES, []
    while at < len(content):
        end = at + 1 + content[at] * record.itemsize + _CRC_BYTES
        if end > len(content):
            break  # the drone was switched off while it wrote
        _check(content[at:end])
        blocks.append(np.frombuffer(content, record, content[at], at + 1))
        at = end
    if not blocks:
        raise ValueError("there are no records")
    return np.concatenate(blocks)


def _check(block: bytes) -> None:
    stored = int.from_bytes(block[-_CRC_BYTES:], "little")
    if zlib.crc32(block[:-_CRC_BYTES]) != stored ^ 0xFFFFFFFF:
        raise ValueError("a checksum is wrong: the file is damaged")


def main() -> int:
    """Print the tables of the flights that the model was not fitted to."""
    if len(sys.argv) != 2:
        print("usage: python -m benchmark.downwash FOLDER", file=sys.stderr)
        return 1
    try:
        found = meetings(Path(sys.argv[1]), half=1)
    except (ValueError, OSError) as error:
        print(f"downwash: {error}", file=sys.stderr)
        return 1
    columns = [f"{100 * a:.0f} to {100 * b:.0f} cm" for a, b in pairwise(_ASIDE)]
    loss, turn = simulated(found)
    by = "real and simulated, by distance from the axis"
    print(f"medians of the thrust that is lost [g], {by}")
    print(markdown(["below", "samples", *columns], rows(found.loss, loss, found, GRAM)))
    print(f"medians of the torque towards the axis [mN m], {by}")
    print(markdown(["below", "samples", *columns], rows(found.turn, turn, found, 1e-3)))
    fit = found.turn @ turn / (turn @ turn)
    print(f"the torque is {fit:.2f} times that of the model, by least squares")
    return 0


if __name__ == "__main__":
    sys.exit(quiet_if_unread(main))
