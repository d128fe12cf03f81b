"""Defaults of a simulation: each is stated once, and documented differences are the only ones."""

from __future__ import annotations

import inspect
from dataclasses import fields

import numpy as np

from crazyflow_ros.engine.config import RealisticOptions, SimulationConfig, SimulationOptions
from crazyflow_ros.flight import FlightConfig
from crazyflow_ros.sim import Sim


def test_fields_named_as_arguments_of_sim_have_its_defaults() -> None:
    """But for what the commander needs, the firmware's rule, rates that Sim derives, and forces, of
    which `Sim` has no others than it is given."""
    arguments = inspect.signature(Sim.__init__).parameters
    options = vars(SimulationOptions())
    theirs = {name: arguments[name].default for name in options if name in arguments}
    differing = {name for name, default in theirs.items() if default != options[name]}
    rates = {name for name, default in theirs.items() if default is None} - {"forces"}
    assert rates == {"state_freq", "attitude_freq", "body_rate_freq", "force_torque_freq"}
    assert differing == rates | {"control", "power_distribution", "forces"}
    assert set(theirs) > {"dynamics", "controller", "estimator", "freq", "scene", "true_mass"}


def test_what_users_expect_is_on_and_nothing_else_differs() -> None:
    parity, realistic = vars(SimulationOptions()), vars(RealisticOptions())
    changed = {name: realistic[name] for name in parity if parity[name] != realistic[name]}
    assert changed == {"true_mass": True, "ground_effect": True, "downwash": True}


def test_a_configuration_takes_over_all_options() -> None:
    flight, poses = FlightConfig(speed=2.0), np.zeros((1, 7))
    options = RealisticOptions(seed=3, flight=flight)
    config = SimulationConfig.of(options, initial_poses=poses, freq=1000)
    expected = vars(options) | {"freq": 1000}
    assert {f.name: getattr(config, f.name) for f in fields(SimulationOptions)} == expected
    assert config.initial_poses is poses
