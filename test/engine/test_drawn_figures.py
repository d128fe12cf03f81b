"""Parameters that drones of a running simulation draw: they fly as in a `Sim` with these."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.engine.drawn_figures import DrawnFigures
from crazyflow_ros.engine.engine import Engine
from crazyflow_ros.engine.levels import Level, rows
from crazyflow_ros.flight import Pose
from crazyflow_ros.runtime import Checkpoint, PhysicsThread, ResetScope
from crazyflow_ros.scene.conditions import STANDARD
from crazyflow_ros.sim import Sim

DRONE, T = "cf2x_L250", 120.0
FILE = """
mass: 0.2
J: {spread: [0.7, 1.3], per: element}
rpm2thrust: {spread: [0.9, 1.1], per: rotor}
drag_matrix: {spread: [0.5, 2.0], distribution: log_uniform}
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("drawn") / "randomize.yaml"
    path.write_text(FILE)
    return str(path)


def command() -> np.ndarray:
    found = np.zeros(16)
    found[:3], found[12] = (0.2, -0.1, 3.1), 1.0
    return found


def flown(engine: Engine) -> np.ndarray:
    at = {"pos": np.array([[0.0, 0.0, 3.0]]), "quat": np.array([[0.0, 0.0, 0.0, 1.0]])}
    for name in engine.names:
        engine.put([name], at)
    n = len(engine.names)
    engine.set_commands(engine.names, rows(Level.state, np.array([command()] * n)))
    (snapshot,) = engine.advance(0, [250], 0)
    return snapshot.pos


def reference(drawn: dict[str, np.ndarray]) -> np.ndarray:
    """Place of a drone after half a second in a `Sim` with these parameters."""
    power = SimulationConfig.power_distribution
    sim = Sim(drone=DRONE, control="state", true_mass=True, power_distribution=power)
    given: dict[str, Any] = {
        name.removeprefix("params."): jnp.asarray(value)[None, None]
        for name, value in drawn.items()
    }
    states = sim.data.states
    up = states.replace(pos=jnp.zeros((1, 1, 3)).at[..., 2].set(3.0))
    sim.data = sim.data.replace(params=sim.data.params.replace(**given), states=up)
    sim.state_control(command()[None, None])
    sim.step(sim.freq // 2)
    return np.asarray(sim.data.states.pos)[0, 0]


@pytest.mark.parametrize("n", [2, 40])  # 40: in blocks
def test_each_drone_flies_with_what_it_has_drawn(file: str, n: int) -> None:
    config = SimulationConfig(drone_model=DRONE, true_mass=True, randomize=file)
    names = [f"cf{i}" for i in range(n)]
    engine, figures = Engine(config, names), DrawnFigures(config, STANDARD)
    last = names[-1]
    for reset, watched in ((None, ["cf0", last]), (["cf0"], ["cf0"]), (None, ["cf0", last])):
        engine.reset(reset)
        draws, pos = engine.gains.draws, flown(engine)
        for name in watched:
            expected = reference(figures.draw(name, draws[name]))
            np.testing.assert_allclose(pos[names.index(name)], expected, atol=1e-4)
    assert draws["cf0"] == draws[last] + 1 == 4
    assert np.linalg.norm(pos[0] - pos[-1]) > 0.005
    engine.remove([last])
    engine.reset()
    engine.add("new", np.array([0.0, 0.0, 3.0, 0.0, 0.0, 0.0, 1.0]))
    expected = reference(figures.draw("new", engine.gains.draws["new"]))
    np.testing.assert_allclose(flown(engine)[-1], expected, atol=1e-4)


def test_a_drawn_inertia_and_its_inverse_fit(file: str) -> None:
    config = SimulationConfig(drone_model=DRONE, randomize=file)
    drawn = DrawnFigures(config, STANDARD).draw("cf0", 3)
    product = drawn["params.J"].astype(float) @ drawn["params.J_inv"]
    np.testing.assert_allclose(product, np.eye(3), atol=1e-5)
    other = DrawnFigures(config, STANDARD).draw("cf0", 4)
    seeded = DrawnFigures(SimulationConfig(drone_model=DRONE, randomize=file, seed=1), STANDARD)
    for differs in (other, seeded.draw("cf0", 3), seeded.draw("cf1", 3)):
        assert differs["params.mass"] != drawn["params.mass"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pos: 0.1", "draws parameters of each drone, got shift"),
        ("action_delay: [0, 0.1]", "draws parameters of each drone, got RandomDelay"),
        ("wind: {spread: [0, 1], operation: add}", "draws parameters of each drone, got wind"),
        ("rotor_moment: {spread: [0, 1], operation: add}", "have no rotor_moment to randomise"),
        ("mass: {spread: [-0.1, 0], operation: add}", "mass has to stay above 0"),
    ],
)
def test_what_a_running_simulation_cannot_draw_is_refused(
    text: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "randomize.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        Engine(SimulationConfig(drone_model="cf21B_500", randomize=str(path)), ("cf0",))


def test_a_checkpoint_brings_back_what_was_drawn(file: str, tmp_path: Path) -> None:
    config = SimulationConfig(real_time_factor=0.0, start_paused=True, randomize=file)
    physics = PhysicsThread(config, ("cf0", "cf1"))
    physics.start()
    try:
        physics.state.reset(drones=["cf1"]).result(T)
        for name in ("cf0", "cf1"):
            physics.command(name, Pose((0.0, 0.5, 1.0), 0.0))
        physics.step(100).result(T)
        physics.state.checkpoint().result(T).save(tmp_path / "kept")
        draws = Checkpoint.load(tmp_path / "kept").about["draws"]
        assert draws["cf1"] == draws["cf0"] + 1
        after = physics.step(200).result(T)
        physics.state.reset(ResetScope.all).result(T)
        physics.step(10).result(T)
        physics.state.restore(Checkpoint.load(tmp_path / "kept")).result(T)
        again = physics.step(200).result(T)
        for name in ("pos", "quat", "vel", "rotor_vel"):
            np.testing.assert_array_equal(getattr(again, name), getattr(after, name))
    finally:
        physics.stop()
    assert physics.failed is None, physics.failed
