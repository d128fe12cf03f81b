"""Folders of identified drones, and the program that writes them."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import flight_writers as writers
import numpy as np
import pytest
import synthetic_flights as synthetic

from crazyflow_ros.drones import load_drone
from crazyflow_ros.drones.figures import has_battery, load_battery, load_mellinger, load_model
from crazyflow_ros.drones.folders import FIGURES
from crazyflow_ros.drones.uncertainty import UNCERTAINTY, load_uncertainty
from crazyflow_ros.flight_logs import FlightLog
from crazyflow_ros.flight_logs.motion import in_the_air
from crazyflow_ros.identification import Fit, identify_rigid_body, write_drone
from crazyflow_ros.identification.__main__ import main
from crazyflow_ros.identification.drone_folder import RIGID_BODY, with_lines
from crazyflow_ros.sim import Sim, randomize_identified

DRONE = synthetic.DRONE
OF_THRUST = ("rpm2thrust", "rpm2torque", "thrust_min", "voltage2thrust")


@pytest.fixture(scope="module")
def flights() -> list[FlightLog]:
    """Of two drones; it compiles as other tests do, which fly longer and with more drones."""
    flown = synthetic.fly(synthetic.truths(synthetic.FEW, seed=7), "pid", 30.0, seed=5)
    parts = [log.between(0, 16) for log in flown[:2]]
    return [in_the_air(synthetic.measured(log, i)) for i, log in enumerate(parts)]


@pytest.fixture(scope="module")
def fit(flights: list[FlightLog]) -> Fit:
    """From duty cycles."""
    return identify_rigid_body([synthetic.without_speeds(flights[0])], DRONE, 0.036)


@pytest.fixture(scope="module")
def folder(fit: Fit, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("drones") / "found"
    return write_drone(path, DRONE, {RIGID_BODY: fit}, 0.036, "a and b, on 2026-11-27")


def test_the_folder_has_what_was_identified(folder: Path, fit: Fit) -> None:
    before, after, values = load_drone(DRONE), load_drone(folder), fit.values
    assert after["mass"] == 0.036
    np.testing.assert_array_equal(np.diag(after["J"]), values["J"])
    drag = [*values["drag_xy"], *values["drag_xy"], *values["drag_z"]]
    np.testing.assert_array_equal(-np.diag(after["drag_matrix"]), drag)
    for name in ("rotor_moment", "thrust_offset"):
        np.testing.assert_array_equal(after[name], values[name])
    for name in OF_THRUST:
        np.testing.assert_allclose(after[name], values["thrust"] * before[name], rtol=1e-12)
    rate = 1 / values["motor_lag"][0]
    np.testing.assert_array_equal(after["rotor_dyn_coef"], [rate, 0, rate, 0])
    for name in ("L", "prop_inertia", "geometry", "mixing_matrix"):
        np.testing.assert_equal(after[name], before[name])


def test_a_command_of_the_firmware_gives_the_identified_thrust(folder: Path, fit: Fit) -> None:
    """One unit of the command gives k times what it gave; at 4 V, there is more than 65535."""
    before, after = load_drone(DRONE), load_drone(folder)
    unit = [
        figures["thrust_max"] / load_mellinger(drone, "force_torque")["pwm_max"]
        for drone, figures in ((DRONE, before), (folder, after))
    ]
    assert unit[1] / unit[0] == pytest.approx(fit.values["thrust"][0])
    volts = float(fit.values["voltage"][0])
    assert 3.5 < volts < 4
    expected = np.polynomial.polynomial.polyval(volts, after["voltage2thrust"])
    assert after["thrust_max"] == pytest.approx(expected)
    assert after["thrust_max"] > fit.values["thrust"][0] * before["thrust_max"]
    assert has_battery(folder) and load_battery(folder)["full_speed"] == pytest.approx(volts)


def test_the_file_says_where_it_comes_from(folder: Path, fit: Fit) -> None:
    text = (folder / FIGURES).read_text()
    head = text.splitlines()[:2]
    assert head[0] == "# Identified, from a and b, on 2026-11-27."
    assert DRONE in head[1] and "two standard deviations" in head[1]
    line = next(line for line in text.splitlines() if line.startswith("rotor_moment"))
    spread = 2 * fit.deviations["rotor_moment"]
    assert line.endswith(f"# N m/(m/s); ± {spread[0]:.2g}, ± {spread[1]:.2g}")


def test_the_folder_says_how_certain_it_is(folder: Path, fit: Fit, tmp_path: Path) -> None:
    """All that acts on parameters, as certain as it is printed; and what only one fit knows."""
    ((name, (figures, matrix)),) = load_uncertainty(folder).items()
    assert name == RIGID_BODY and figures == tuple(x for x in fit.values if x != "voltage")
    assert fit.covariance is not None
    np.testing.assert_allclose(matrix, fit.covariance[:-1, :-1], rtol=1e-9, atol=1e-18)
    spread = [fit.deviations[x] / (1.0 if x == "thrust_offset" else fit.values[x]) for x in figures]
    expected = np.nan_to_num(np.concatenate(spread))
    np.testing.assert_allclose(np.sqrt(np.diag(matrix)), expected, rtol=1e-9)
    head = (folder / UNCERTAINTY).read_text().splitlines()[0]
    assert head == "# How certain drone.toml is, from a and b, on 2026-11-27."
    vague = replace(fit, covariance=1e12 * fit.covariance)
    vaguely = load_uncertainty(write_drone(tmp_path / "vague", DRONE, {RIGID_BODY: vague}))
    most = np.sqrt(np.diag(vaguely[RIGID_BODY].covariance))
    np.testing.assert_allclose(most[[0, 1, 8]], [0.5, 0.5, 0.05])
    plain = replace(fit, covariance=None)
    other = write_drone(tmp_path / "plain", str(folder), {RIGID_BODY: plain})
    assert not (other / UNCERTAINTY).exists()  # that of the known drone is not this one's


def test_an_identified_drone_is_drawn_as_it_was_fitted(folder: Path, fit: Fit) -> None:
    sim = Sim(500, drone=str(folder), control="rotor_vel")
    sim.reset_pipeline = (randomize_identified(folder),)
    sim.reset()
    drawn = np.asarray(sim.data.params.rpm2thrust)[:, 0, 0, 2]
    nominal = load_drone(folder)["rpm2thrust"][2]
    spread = fit.deviations["thrust"][0] / fit.values["thrust"][0]
    assert np.std(np.log(drawn / nominal)) == pytest.approx(spread, rel=0.15)


def test_a_drone_without_fitted_models_flies_first_principles_alone(folder: Path) -> None:
    assert "so_rpy" not in tomllib.loads((folder / FIGURES).read_text())
    with pytest.raises(ValueError, match=r"has no table \[so_rpy\]"):
        load_model(folder, "so_rpy")
    sim = Sim(drone=str(folder), control="state", controller="pid")
    sim.state_control([[[0.0, 0, 1] + [0.0] * 10]])
    sim.step(2000)
    assert float(sim.data.states.pos[0, 0, 2]) == pytest.approx(1, abs=0.2)


def test_what_is_not_determined_is_said_and_known() -> None:
    known = load_drone(DRONE)
    values = {"thrust": np.ones(1), "J": np.diag(known["J"]), "thrust_offset": np.zeros(3)}
    spreads = {name: np.full(len(value), np.nan) for name, value in values.items()}
    shown = str(Fit(values, spreads, 0.0))
    assert shown.count("(as known)") == 7 and "nan" not in shown


def test_lines_are_replaced_or_added_in_their_table() -> None:
    text = "a = 1  # one\nb = 2\n\n[t]\na = 3\n\n[u]\nc = 4\n"
    found = tomllib.loads(with_lines(text, {"a": "a = 5", "d": "d = 6"}))
    assert found == {"a": 5, "b": 2, "d": 6, "t": {"a": 3}, "u": {"c": 4}}
    found = tomllib.loads(with_lines(text, {"a": "a = 5", "d": "d = 6"}, "t"))
    assert found == {"a": 1, "b": 2, "t": {"a": 5, "d": 6}, "u": {"c": 4}}
    assert tomllib.loads(with_lines(text, {"e": "e = 7"}, "v"))["v"] == {"e": 7}


def test_a_drone_that_cannot_fly_is_not_written(fit: Fit, tmp_path: Path) -> None:
    weak = Fit(fit.values | {"thrust": np.array([0.2])}, fit.deviations, fit.rms)
    with pytest.raises(ValueError, match="thrust_max must lift the weight"):
        write_drone(tmp_path / "weak", DRONE, {RIGID_BODY: weak})
    assert not (tmp_path / "weak").exists()


def test_the_program(
    flights: list[FlightLog], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two flights judged by one another; then one, judged by a flight of its own."""
    files = [
        str(writers.write_sd_card(log, tmp_path / f"flight{i}")) for i, log in enumerate(flights)
    ]
    output = tmp_path / "both"
    assert main([*files, "--drone", DRONE, "--mass", "0.0379", "--output", str(output)]) == 0
    printed = capsys.readouterr().out
    assert f"assumed: the rotors of {DRONE}, a mass of 37.9 g" in printed
    assert "note: ± is what the noise within 2 flights allows." in printed
    assert "first_principles, 2 flights" in printed and f"written: {output}" in printed
    assert "known drone -> identified one, on each flight by the fit of the others:" in printed
    assert "  flight0: after 0.1 s" in printed and "  flight1: after 0.1 s" in printed
    assert "flight0, flight1, on 20" in (output / FIGURES).read_text()
    output = tmp_path / "one"
    words = [files[0], "--drone", DRONE, "--output", str(output), "--validation", files[0]]
    assert main(words) == 0
    assert "on the flights of --validation:\n  flight0: after" in capsys.readouterr().out
    output = tmp_path / "short"
    words = [files[0], "--drone", DRONE, "--output", str(output), "--start", "2", "--end", "14"]
    assert main(words) == 0
    assert "not judged: 1 flights; without --validation it takes 2 to 20" in capsys.readouterr().out


def test_the_program_says_what_is_wrong(
    flights: list[FlightLog], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = str(tmp_path / "other")
    sd_card = str(writers.write_sd_card(flights[0], tmp_path / "flight"))
    duty = str(writers.write_nanobench(flights[0], tmp_path / "duty.csv"))
    for words, message in (
        ([sd_card, "--drone", "cf3"], "'cf3'"),
        ([str(tmp_path / "none"), "--drone", DRONE], "none"),
        ([sd_card, "--drone", DRONE, "--mass", "-1"], "-1 kg"),
        ([sd_card, "--drone", DRONE, "--mass", "nan"], "--mass"),
        ([sd_card, "--drone", DRONE, "--end", "5"], "10 s in the air, got"),
        ([duty, "--drone", "hb_x500"], "hb_x500 has no voltage2thrust"),
    ):
        assert main([*words, "--output", output]) == 1
        assert message in capsys.readouterr().err
    assert not Path(output).exists()
