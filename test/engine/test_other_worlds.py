"""Drones that go on in a world of another kind."""

from __future__ import annotations

import numpy as np

from crazyflow_ros.control import Controller
from crazyflow_ros.engine.engine import Engine
from crazyflow_ros.runtime import SimulationConfig
from crazyflow_ros.scene.conditions import STANDARD


def test_commands_stay_in_worlds_with_and_without_the_ground_below_rotors() -> None:
    """Where bodies move, each rotor has a ground of its own among the inputs."""
    config = SimulationConfig(ground_effect=True)
    engine = Engine(config, ["cf0", "cf1"], n_slots=4, conditions=STANDARD, contacts=True)
    row = np.arange(engine.command.shape[1] + 1, dtype=float)
    engine.set_commands(["cf1"], row[None])
    commands = engine.inputs(["cf0", "cf1"]).copy()
    for contacts in (False, True, False):
        world = engine.other_world(
            4, controller=Controller(config.controller), conditions=STANDARD, contacts=contacts
        )
        assert ("ground" in world.form.inputs) is not contacts
        engine.move_to(world)
        np.testing.assert_array_equal(engine.inputs(["cf0", "cf1"]), commands)
