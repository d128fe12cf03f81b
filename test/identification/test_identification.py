"""Flights of a known drone: its parameters are found, and the folder that is written flies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import flight_writers as writers
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from crazyflow_ros.drones import load_drone, load_model
from crazyflow_ros.drones.rotors import Rotors
from crazyflow_ros.drones.uncertainty import load_uncertainty
from crazyflow_ros.identification import Fit, RecordedFlight, identify, read_flight, write_drone
from crazyflow_ros.identification.__main__ import main
from crazyflow_ros.identification.fit import covariance
from crazyflow_ros.sim import Sim

DRONE, MODEL = "cf2x_P250", "so_rpy_rotor_drag"
RATE = 100  # Hz
NOISE = {"pos": 1e-3, "angle": 3e-3}  # m, rad; more than motion capture has
TOLERANCES = {
    "rpy_coef": 0.01,
    "rpy_rates_coef": 0.01,
    "cmd_rpy_coef": 0.01,
    "cmd_f_coef": 0.001,
    "thrust_dyn_coef": 0.02,
    "drag_xy": 0.02,
    "drag_z": 0.03,
}
"""Relative errors at that noise."""


def fly(seconds: float, seed: int, drone: str = DRONE) -> RecordedFlight:
    """A flight with commands that change at random, high above the floor, without noise."""
    rng, n = np.random.default_rng(seed), round(seconds * RATE)
    weight = load_drone(drone)["mass"] * 9.81
    with jax.enable_x64(True):
        sim = Sim(drone=drone, dynamics=MODEL, control="attitude", integrator="rk4")
        states = sim.data.states
        sim.data = sim.data.replace(
            states=states.replace(pos=states.pos + jnp.array([0, 0, 500.0]))
        )
        rows, until = [], 0
        for i in range(n):
            if i >= until:
                until = i + int(rng.integers(10, 60))
                tilt, yaw = rng.uniform(-0.5, 0.5, 2), rng.uniform(-1, 1)
                command = np.array([*tilt, yaw, rng.uniform(0.75, 1.3) * weight])
            now = sim.data.states
            rows.append(np.concatenate([now.pos[0, 0], now.quat[0, 0], command]))
            sim.attitude_control(command[None, None])
            sim.step(sim.freq // RATE)
    pos, quat, commands = np.split(np.array(rows), [3, 7], axis=1)
    return RecordedFlight(np.arange(n) / RATE, pos, quat, commands)


def measured(flight: RecordedFlight, seed: int) -> RecordedFlight:
    """The flight with noise."""
    rng = np.random.default_rng([seed, 1])
    turns, shifts = rng.normal(size=(2, len(flight.time), 3))
    quat = Rotation.from_quat(flight.quat) * Rotation.from_rotvec(NOISE["angle"] * turns)
    pos = flight.pos + NOISE["pos"] * shifts
    return RecordedFlight(flight.time, pos, quat.as_quat(), flight.command)


def known() -> dict[str, np.ndarray]:
    """The true parameters."""
    values: dict[str, Any] = load_model(DRONE, MODEL)
    drag = np.diag(values.pop("drag_matrix"))
    values |= {"drag_xy": drag[:1], "drag_z": drag[2:]}
    return {k: v[[0, 2]] if k.startswith(("rpy", "cmd_rpy")) else v for k, v in values.items()}


@pytest.fixture(scope="module")
def exact() -> RecordedFlight:
    return fly(15.0, seed=1)


@pytest.fixture(scope="module")
def flight(exact: RecordedFlight) -> RecordedFlight:
    return measured(exact, seed=1)


@pytest.fixture(scope="module")
def fits(flight: RecordedFlight) -> dict[str, Fit]:
    return identify([flight], DRONE)


@pytest.fixture(scope="module")
def folder(fits: dict[str, Fit], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_drone(tmp_path_factory.mktemp("drones") / "found", DRONE, fits)


def test_known_parameters_are_found(fits: dict[str, Fit]) -> None:
    found = fits["rotation"].values | fits[MODEL].values
    assert found.keys() == TOLERANCES.keys()
    for name, value in found.items():
        np.testing.assert_allclose(value, known()[name], rtol=TOLERANCES[name], err_msg=name)
    assert fits["rotation"].rms == pytest.approx(NOISE["angle"], rel=0.1)
    assert NOISE["pos"] < fits[MODEL].rms < 2 * NOISE["pos"]  # attitudes are noisy as well


def test_errors_are_as_large_as_the_deviations_say(
    exact: RecordedFlight, fits: dict[str, Fit]
) -> None:
    """In units of their deviations, over flights with other noise."""
    errors = []
    for fit in (fits, *(identify([measured(exact, seed)], DRONE) for seed in (2, 3))):
        for part in (fit["rotation"], fit[MODEL]):
            for name, value in part.values.items():
                errors.append((value - known()[name]) / part.deviations[name])
    numbers = np.concatenate(errors)
    assert len(numbers) == 3 * 10 and np.mean(np.abs(numbers) < 2) >= 0.9
    assert 0.6 < np.sqrt(np.mean(numbers**2)) < 1.5


def test_covariances_hold_for_errors_that_depend_on_each_other() -> None:
    """In segments of a linear fit, against fits of many such samples."""
    rng, runs, n, k = np.random.default_rng(3), 400, 14, 50
    slopes, true = rng.normal(size=(n, k, 2)).cumsum(axis=1), np.array([1.0, -2.0])
    slopes[..., 1] += slopes[..., 0]
    found, stated = [], []
    for _ in range(runs):
        noise = rng.normal(size=(n, k)).cumsum(axis=1)  # deviations of independent errors miss it
        x = slopes.reshape(-1, 2)
        values = np.linalg.lstsq(x, (slopes @ true + noise).ravel())[0]
        found.append(values)
        stated.append(covariance(slopes @ (values - true) - noise, slopes))
    spreads = np.sqrt(np.diagonal(stated, axis1=1, axis2=2))
    errors = np.abs(np.array(found) - true)
    covered = np.mean(errors < 2 * spreads, axis=0)
    assert (covered > 0.88).all() and (covered < 0.99).all(), covered
    ratio = np.sqrt(np.mean(np.square(spreads), axis=0)) / np.std(found, axis=0)
    np.testing.assert_allclose(ratio, 1, atol=0.3)
    (a, both), (_, b) = np.mean(stated, axis=0)
    expected = np.corrcoef(np.transpose(found))[0, 1]
    assert both / np.sqrt(a * b) == pytest.approx(expected, abs=0.1) and expected < -0.5


def test_without_lag_and_drag_flights_differ_more(fits: dict[str, Fit]) -> None:
    rms = [fits[model].rms for model in ("so_rpy", "so_rpy_rotor", MODEL)]
    assert rms[0] > rms[1] > 10 * rms[2]


def test_the_written_drone_flies_like_the_true_one(folder: Path) -> None:
    """A flight with other commands, without noise."""
    true, found = fly(3.0, 2), fly(3.0, 2, str(folder))
    turns = Rotation.from_quat(true.quat).inv() * Rotation.from_quat(found.quat)
    assert turns.magnitude().max() < 0.02
    assert 0 < np.linalg.norm(true.pos - found.pos, axis=1).max() < 0.1


def test_the_folder_says_how_certain_the_fits_are(folder: Path, fits: dict[str, Fit]) -> None:
    """Deviations as they are printed, and what noise does alike to the figures of a fit."""
    found = load_uncertainty(folder)
    assert found.keys() == fits.keys()
    for kind, fit in fits.items():
        figures, matrix = found[kind]
        assert figures == (*fit.values,) and fit.covariance is not None
        np.testing.assert_allclose(matrix, fit.covariance, rtol=1e-12)
        spread = np.concatenate([fit.deviations[x] / np.abs(fit.values[x]) for x in figures])
        np.testing.assert_allclose(np.sqrt(np.diag(matrix)), spread, rtol=1e-12)
    stiffness, _, gain = np.split(np.arange(6), 3)
    matrix = found["rotation"].covariance
    for i, j in zip(stiffness, gain):  # they have to agree where the drone holds an angle
        assert matrix[i, j] > 0.9 * np.sqrt(matrix[i, i] * matrix[j, j])


def test_what_is_not_identified_stays(folder: Path, fits: dict[str, Fit]) -> None:
    before, after = load_drone(DRONE), load_drone(folder)
    assert before.keys() == after.keys()
    for name in before.keys() - {"drag_matrix"}:
        own, known = (x[name] for x in (after, before))
        if isinstance(known, Rotors):
            own, known = asdict(own), asdict(known)
        np.testing.assert_equal(own, known)
    xy, z = (float(fits[MODEL].values[name][0]) for name in ("drag_xy", "drag_z"))
    np.testing.assert_array_equal(np.diag(after["drag_matrix"]), [xy, xy, z])
    for model in ("so_rpy", "so_rpy_rotor", MODEL):
        found = load_model(folder, model)
        assert found["cmd_f_coef"] == fits[model].values["cmd_f_coef"]
    with pytest.raises(FileExistsError):
        write_drone(folder, DRONE, fits)


def test_flights_that_tell_nothing_are_refused(flight: RecordedFlight) -> None:
    quat, command = (np.tile([0, 0, 0, x], (len(flight.time), 1)) for x in (1.0, 0.3))
    level = RecordedFlight(flight.time, 0 * flight.pos, quat, command)
    few = [flight.between(1.0, 4.0), flight.between(5.0, 8.0)]
    for flights, named in (([level], "rpy_coef"), ([], "flight"), (few, "5 segments .*got 4")):
        with pytest.raises(ValueError, match=named):
            identify(flights, DRONE)


def csv(flight: RecordedFlight, path: Path) -> Path:
    names = "time,x,y,z,qx,qy,qz,qw,roll,pitch,yaw,thrust"
    table = np.column_stack([flight.time, flight.pos, flight.quat, flight.command])
    np.savetxt(path, table, delimiter=",", header=names, comments="", fmt="%.17g")
    return path


def npz(flight: RecordedFlight, path: Path) -> Path:
    np.savez(path, **vars(flight))
    return path


@pytest.mark.parametrize("write", [csv, npz])
def test_files_hold_flights(
    write: Callable[..., Path], flight: RecordedFlight, tmp_path: Path
) -> None:
    read = read_flight(write(flight, tmp_path / f"flight.{write.__name__}"))
    for name, array in vars(flight).items():
        np.testing.assert_allclose(getattr(read, name), array, rtol=1e-15)


def test_recordings_hold_flights(tmp_path: Path) -> None:
    """Poses since the first command, each with the latest one."""
    pytest.importorskip("mcap.writer", reason="the extra record is not installed")
    log = writers.flight(1.0, RATE)
    assert log.attitude_command is not None
    orders = log.attitude_command.values[5::20]
    messages = writers.entries(log) + [
        (time, "/cf0/command", "std_msgs/Float64MultiArray", {"data": order.tolist()})
        for time, order in zip(log.attitude_command.time[5::20].tolist(), orders)
    ]
    read = read_flight(writers.write_mcap(tmp_path / "a.mcap", messages))
    np.testing.assert_allclose(read.time, log.pose.time[5:], rtol=0, atol=1e-9)
    np.testing.assert_allclose(read.pos, log.pose.values[5:, :3], rtol=0, atol=1e-12)
    np.testing.assert_array_equal(read.command, np.repeat(orders, 20, axis=0)[: len(read.time)])
    with pytest.raises(ValueError, match=r"a.mcap: there are no attitude commands"):
        read_flight(writers.write_mcap(tmp_path / "a.mcap", writers.entries(log)))


def test_a_part_of_a_flight(flight: RecordedFlight) -> None:
    part = flight.between(2.0, 4.0)
    assert len(part.time) == 2 * RATE + 1
    np.testing.assert_array_equal(part.pos[0], flight.pos[2 * RATE])
    with pytest.raises(ValueError, match="samples, got 11"):
        flight.between(0, 0.1)


@pytest.mark.parametrize(
    ("name", "value", "got"),
    [
        ("pos", np.zeros((3, 3)), ""),
        ("quat", np.zeros((100, 4)), "sample 0"),
        ("command", np.full((100, 4), np.nan), ""),
        ("time", np.zeros(100), "0 s after sample 0"),
        ("time", np.arange(100.0), "1 s after sample 0"),
    ],
)
def test_impossible_flights_are_refused(name: str, value: np.ndarray, got: str) -> None:
    still = np.tile([0, 0, 0, 1.0], (100, 1))
    arrays = {"time": np.arange(100) / RATE, "pos": still[:, :3], "quat": still, "command": still}
    with pytest.raises(ValueError, match=f"{name} .*{got}"):
        RecordedFlight(**arrays | {name: value})


def test_the_program(
    flight: RecordedFlight, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, output = npz(flight, tmp_path / "flight.npz"), tmp_path / "found"
    words = [str(file), "--drone", DRONE, "--output", str(output), "--start", "0"]
    assert main([*words, "--validation", str(file)]) == 0
    printed = capsys.readouterr().out
    assert f"written: {output}" in printed and "drag_z = -0." in printed
    assert "on other flights" in printed
    assert load_model(output, MODEL)["rpy_coef"][0] < 0
    assert main(words) == 1
    assert "File exists" in capsys.readouterr().err
