"""Downwash and ground effect judged by logs of Neural-Swarm: flights whose air is known."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import pytest

from benchmark import ground_effect
from benchmark.downwash import (
    GRAM,
    MASS,
    STAND,
    main,
    meetings,
    read_columns,
    rows,
    simulated,
)
from crazyflow_ros.checks.compressed_quaternions import compressed
from crazyflow_ros.drones import load_drone
from crazyflow_ros.dynamics.forces import rest_height

LOSS, TURN = 6.0, 1.5e-3  # g and N m towards the axis, while below
VOLTAGE = 3.7
VARIABLES = {
    "tick": "I", "stateEstimateZ.x": "h", "stateEstimateZ.y": "h", "stateEstimateZ.z": "h",
    "stateEstimateZ.az": "h", "stateEstimateZ.quat": "I", "pm.vbatMV": "H",
    "pwm.m1_pwm": "I", "pwm.m2_pwm": "I", "pwm.m3_pwm": "I", "pwm.m4_pwm": "I",
}  # fmt: skip


def log(columns: dict[str, np.ndarray]) -> bytes:
    """Return a log of the old format, in blocks of 25 records as the firmware writes them."""
    header = bytes([len(VARIABLES)]) + b"".join(f"{n}({t}),".encode() for n, t in VARIABLES.items())
    kinds = {"I": "<u4", "h": "<i2", "H": "<u2"}
    records = np.zeros(len(columns["tick"]), [(n, kinds[t]) for n, t in VARIABLES.items()])
    for name, values in columns.items():
        records[name] = values
    blocks = [records[i : i + 25] for i in range(0, len(records), 25)]
    parts = [header, *(bytes([len(block)]) + block.tobytes() for block in blocks)]
    inverted = [part + (zlib.crc32(part) ^ 0xFFFFFFFF).to_bytes(4, "little") for part in parts]
    return b"".join(inverted)


def hover(
    x: np.ndarray, z: float, thrust: np.ndarray, pitch: np.ndarray | float = 0.0
) -> dict[str, np.ndarray]:
    """Return what a drone logs that hovers with a thrust [N] and torque [N m] of its motors."""
    offset, linear, at_rest, square, both = STAND
    ratio, grams = VOLTAGE / 4.2, thrust / 4 / GRAM
    slope, n = linear + both * ratio, len(x)
    front = load_drone("cf2x_L250")["rotors"].position[:, 0]
    each = [grams - pitch / (4 * place * GRAM) for place in front]
    rest = [offset + at_rest * ratio - one for one in each]
    duty = [(np.sqrt(slope**2 - 4 * square * one) - slope) / (2 * square) for one in rest]
    same = {
        "tick": 10_000 * np.arange(n),
        "stateEstimateZ.y": np.zeros(n),
        "pm.vbatMV": 1e3 * VOLTAGE,
    }
    place = {"stateEstimateZ.x": 1e3 * x, "stateEstimateZ.z": 1e3 * z, "stateEstimateZ.az": 9810}
    motors = {f"pwm.m{i}_pwm": 65536 * one for i, one in enumerate(duty, 1)}
    return same | place | motors | {"stateEstimateZ.quat": compressed(np.array([0, 0, 0, 1.0]))}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a flight: 5 s beside the upper drone, 5 s below, 2 cm from its axis."""
    beside = np.where(np.arange(1000) < 500, 1.0, 0.02)
    weight = np.full(1000, MASS * 9.81)
    below = weight + np.where(beside < 0.5, LOSS * GRAM, 0.0)
    pitch = np.where(beside < 0.5, TURN, 0.0)  # against a torque that turns it to the axis
    (tmp_path / "swap").mkdir()
    (tmp_path / "swap" / "cf50_00").write_bytes(log(hover(beside, 0.7, below, pitch)))
    (tmp_path / "swap" / "cf51_00").write_bytes(log(hover(0 * beside, 1.0, weight)))
    return tmp_path


def test_a_known_loss_is_found(folder: Path) -> None:
    found = meetings(folder, half=0)
    np.testing.assert_allclose(found.way, [[0.02, 0, -0.3]] * len(found.way), atol=1e-9)
    np.testing.assert_allclose(np.median(found.loss), LOSS * GRAM, rtol=1e-3)
    # The model at 0.3 m, with its figures in centimetres and grams.
    square = 2 * (4 * 3.253**2 + 2.355**2) + (0.1129 * 30) ** 2
    expected = 1.35 * 4 * 2.355**2 * 34 / square * np.exp(-2 * 2**2 / square)
    loss, turn = simulated(found)
    np.testing.assert_allclose(np.median(loss) / GRAM, expected, rtol=1e-3)
    row = rows(found.loss, loss, found, GRAM)[1]
    assert row[0] == "0.3 m" and row[2] == f"{LOSS:.1f}, {expected:.1f}" and not any(row[3:])
    np.testing.assert_allclose(np.median(found.turn), TURN, rtol=1e-3)
    wide = 4 * 3.253**2 + 2.355**2
    torque = 1.63 * expected * GRAM * 0.02 * wide / square * 30**2 / (30**2 + wide)
    np.testing.assert_allclose(np.median(turn), torque, rtol=2e-3)


def test_a_known_gain_near_the_ground_is_found(tmp_path: Path, monkeypatch, capsys) -> None:
    """5 s high above the floor, 5 s with the middle 5 cm above it, where logs say 8.9 cm."""
    z = np.where(np.arange(1000) < 500, 0.5, 0.053 - rest_height("cf2x_L250") + 0.05)
    thrust = MASS * 9.81 / np.where(z < 0.3, 1.05, 1.0)
    (tmp_path / "randomwalk_s_1").mkdir()
    (tmp_path / "randomwalk_s_1" / "cf50_00").write_bytes(log(hover(0 * z, z, thrust)))
    heights, shares = ground_effect.gains(tmp_path)
    near = heights < 0.1
    np.testing.assert_allclose(np.median(heights[near]), 0.05, atol=1e-3)
    np.testing.assert_allclose(np.median(shares[near]), 0.05, atol=2e-3)
    np.testing.assert_allclose(np.median(shares[~near]), 0, atol=2e-3)
    np.testing.assert_allclose(ground_effect.simulated(np.array([0.05])), 0.068, atol=5e-4)
    monkeypatch.setattr("sys.argv", ["ground_effect", str(tmp_path / "nothing")])
    assert ground_effect.main() == 1
    assert "there are no flights of Neural-Swarm in" in capsys.readouterr().err


def test_what_is_no_such_log_is_refused(folder: Path, capsys, monkeypatch) -> None:
    path = folder / "swap" / "cf50_00"
    content = path.read_bytes()
    whole = read_columns(path)
    path.write_bytes(content[:-10])  # switched off while it wrote
    assert len(read_columns(path)["tick"]) == len(whole["tick"]) - 25
    damaged = content[:-10] + bytes([content[-10] ^ 1]) + content[-9:]
    for wrong, message in (
        (damaged, "cf50_00: a checksum is wrong"),
        (b"", "the header is not complete"),
        (b"\x05abc", "the header is not complete"),
        (b"\x01tick(Q),1234", "not an old log"),
        (content[: content.index(b"pwm.m4_pwm(I),") + 18], "there are no records"),
    ):
        path.write_bytes(wrong)
        with pytest.raises(ValueError, match=message):
            read_columns(path)
    monkeypatch.setattr("sys.argv", ["downwash", str(folder / "nothing")])
    assert main() == 1
    assert "there are no flights of Neural-Swarm in" in capsys.readouterr().err
