"""Resets that draw drones as uncertain as their identification is."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
import pytest

from crazyflow_ros.drones import Drone
from crazyflow_ros.drones.folders import BUILT_IN
from crazyflow_ros.drones.uncertainty import FITS, UNCERTAINTY
from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.engine.drawn_figures import DrawnFigures
from crazyflow_ros.scene.conditions import STANDARD
from crazyflow_ros.sim import Sim, randomize_identified, randomizers

DRONE = "cf2x_P250"
WORLDS = 20_000
Write = Callable[..., str]


def covariance(fit: str, seed: int) -> np.ndarray:
    """With deviations of 2 to 10 %, or mm, of the fit's numbers, and correlations far from 0."""
    rng, k = np.random.default_rng(seed), sum(FITS[fit].values())
    half = rng.normal(size=(k, k + 2))
    matrix = half @ half.T
    spread = rng.uniform(0.02, 0.1, k)
    if fit == "rigid_body":
        spread[8:11] *= 1e-2
    spread /= np.sqrt(np.diag(matrix))
    found: np.ndarray = matrix * np.outer(spread, spread)
    return found


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a drone with the covariances of fits; returns the path of its folder."""

    def writes(**covariances: np.ndarray) -> str:
        folder = tmp_path / "found"
        shutil.copytree(BUILT_IN / DRONE, folder)
        text = (folder / "drone.toml").read_text()
        text = "rotor_moment = [5e-4, 6e-4]\nthrust_offset = [1e-3, -1e-3, 0.0]\n" + text
        (folder / "drone.toml").write_text(text)
        tables = (
            f"[{fit}]\nfigures = {json.dumps([*FITS[fit]])}\ncovariance = {matrix.tolist()}\n"
            for fit, matrix in covariances.items()
        )
        (folder / UNCERTAINTY).write_text("".join(tables))
        return str(folder)

    return writes


def check_covariance(drawn: np.ndarray, expected: np.ndarray) -> None:
    """Compare the numbers (n, k) with the covariance, which has a standard error each."""
    n, variance = len(drawn), np.diag(expected)
    np.testing.assert_array_less(np.abs(drawn.mean(0)), 4.5 * np.sqrt(variance / n))
    errors = np.cov(drawn.T) - expected
    allowed = 4.5 * np.sqrt((np.multiply.outer(variance, variance) + expected**2) / n)
    np.testing.assert_array_less(np.abs(errors), allowed)


def ratios(sim: Sim, name: str) -> np.ndarray:
    """Logarithms (n, ...) of a parameter against its nominal values, where those are not 0."""
    now, nominal = (
        np.asarray(getattr(data.params, name), float) for data in (sim.data, sim.default_data)
    )
    found: np.ndarray = np.log(now[..., nominal != 0] / nominal[nominal != 0])
    return found.reshape(WORLDS, -1)


def test_a_rigid_body_is_drawn_with_its_covariance(write: Write) -> None:
    expected = covariance("rigid_body", 0)
    folder = write(rigid_body=expected)
    sim = Sim(WORLDS, drone=folder, control="rotor_vel")
    sim.reset_pipeline = (randomize_identified(folder),)
    sim.reset()
    params, nominal = sim.data.params, sim.default_data.params
    thrust, drag = ratios(sim, "rpm2thrust"), ratios(sim, "drag_matrix")
    np.testing.assert_allclose(np.ptp(thrust, axis=1), 0, atol=1e-6)
    np.testing.assert_allclose(ratios(sim, "rpm2torque"), thrust[:, :1] + 0 * thrust, atol=1e-6)
    np.testing.assert_allclose(drag[:, 0], drag[:, 1], atol=1e-6)
    lag = -ratios(sim, "rotor_dyn_coef")
    offset = np.asarray(params.thrust_offset - nominal.thrust_offset)[:, 0]
    inertia = np.asarray(params.J, float)[:, 0]
    np.testing.assert_array_equal(inertia, np.swapaxes(inertia, 1, 2))
    products = inertia @ np.asarray(params.J_inv, float)[:, 0]
    np.testing.assert_allclose(products, np.broadcast_to(np.eye(3), products.shape), atol=1e-5)
    parts = (
        thrust[:, :1],
        ratios(sim, "J"),
        drag[:, 1:],
        ratios(sim, "rotor_moment"),
        offset,
        lag[:, :1],
    )
    check_covariance(np.hstack(parts), expected)


def test_fitted_models_are_drawn_with_the_drag_of_the_rigid_body(write: Write) -> None:
    """The file has the drag of two fits; the drone's is that of the rigid body."""
    fits = ("rigid_body", "rotation", "so_rpy", "so_rpy_rotor_drag")
    expected = {fit: covariance(fit, seed) for seed, fit in enumerate(fits)}
    folder = write(**expected)
    sim = Sim(WORLDS, drone=folder, control="attitude", dynamics="so_rpy_rotor_drag")
    sim.reset_pipeline = (randomize_identified(folder),)
    sim.reset()
    names = ("rpy_coef", "rpy_rates_coef", "cmd_rpy_coef")
    rotation = [ratios(sim, name) for name in names]
    for each in rotation:
        np.testing.assert_allclose(each[:, 0], each[:, 1], atol=1e-6)
    level = np.hstack([each[:, 1:] for each in rotation])
    check_covariance(level, expected["rotation"])
    thrust = np.hstack([ratios(sim, "cmd_f_coef"), ratios(sim, "thrust_dyn_coef")])
    check_covariance(thrust, expected["so_rpy_rotor_drag"][:2, :2])
    body = np.hstack([ratios(sim, "J"), ratios(sim, "drag_matrix")[:, 1:]])
    check_covariance(body, expected["rigid_body"][1:6, 1:6])
    independent = np.corrcoef(np.hstack([level, thrust, body]).T)
    assert np.abs(independent[:6, 6:8]).max() < 0.04 and np.abs(independent[:8, 8:]).max() < 0.04


def test_draws_begin_from_the_nominal_drone_in_the_worlds_of_the_mask(write: Write) -> None:
    """A quarter of all variances; drones of a world differ, and what is known stays shared."""
    expected = covariance("rigid_body", 4)
    known = [0, 4, 5, 6, 7, 8, 9, 10, 11]  # all but the inertia
    expected[known] = expected[:, known] = 0
    folder = write(rigid_body=expected)
    sim = Sim(200, 2, drone=folder, control="rotor_vel")
    sim.reset_pipeline = (randomize_identified(folder),)
    nominal = np.asarray(sim.default_data.params.J)
    sim.reset()
    first = np.asarray(sim.data.params.J)
    assert first.shape == (200, 2, 3, 3) and sim.data.params.rpm2thrust.shape == (1, 3)
    assert len(np.unique(first[..., 0, 0])) == 400
    for _ in range(30):
        sim.reset()
    spread = np.log(np.asarray(sim.data.params.J)[..., range(3), range(3)] / np.diag(nominal))
    np.testing.assert_allclose(spread.std((0, 1)), np.sqrt(np.diag(expected)[1:4]), rtol=0.2)
    mask = np.arange(200) % 3 == 0
    before = sim.data.params
    sim.reset(mask)
    for name in ("J", "J_inv"):
        old, new = (np.asarray(getattr(x, name)) for x in (before, sim.data.params))
        np.testing.assert_array_equal(new[~mask], old[~mask])
        assert (new[mask][..., 0, 0] != old[mask][..., 0, 0]).all()
    sim.seed(3)
    sim.reset()
    once = sim.data.params
    sim.seed(3)
    sim.reset()
    for one, other in zip(*map(jax.tree.leaves, (once, sim.data.params))):
        np.testing.assert_array_equal(one, other)
    sim.step(5)
    assert np.isfinite(sim.data.states.pos).all()


def test_what_would_draw_nothing_is_refused(write: Write) -> None:
    for drone in (DRONE, Drone("cf2x_L250")):
        with pytest.raises(ValueError, match=f"there is no file .*{drone}/uncertainty.toml, which"):
            randomize_identified(drone)
    folder = write(rotation=covariance("rotation", 1), rigid_body=np.zeros((12, 12)))
    sim = Sim(drone=folder, control="rotor_vel")
    with pytest.raises(ValueError, match=r"found: nothing .* acts on first_principles; identified"):
        sim.reset_pipeline = (randomize_identified(folder),)
    sim = Sim(drone=folder, control="attitude", dynamics="so_rpy")
    sim.reset_pipeline = (randomize_identified(folder),)


def test_a_declaration_names_the_folder_of_a_drone(write: Write, tmp_path: Path) -> None:
    folder = write(rigid_body=covariance("rigid_body", 3))
    declared = tmp_path / "randomize.yaml"
    declared.write_text("identified: found\nmass: 0.1\n")  # from the folder of the file
    stages = randomizers(declared)
    assert [type(stage).__name__ for stage in stages] == ["IdentifiedDrone", "RandomParameter"]
    config = SimulationConfig(drone_model=folder, randomize=str(declared))
    drawn = DrawnFigures(config, STANDARD)
    expected = {"J", "J_inv", "drag_matrix", "mass", "rotor_moment", "thrust_offset"}
    expected |= {"rpm2thrust", "rpm2torque", "rotor_dyn_coef"}
    assert {name.removeprefix("params.") for name in drawn.nominal} == expected
    one, other = drawn.draw("cf0", 1), drawn.draw("cf1", 1)
    assert all((one[name] != other[name]).any() for name in drawn.nominal)
    curve = one["params.rpm2thrust"][:, 2] / drawn.nominal["params.rpm2thrust"][:, 2]
    np.testing.assert_allclose(curve, curve[0], rtol=1e-5)  # rotors of a drone are alike
    declared.write_text("identified: nowhere\n")
    with pytest.raises(ValueError, match=r"randomize\.yaml: drone .*nowhere"):
        randomizers(declared)
