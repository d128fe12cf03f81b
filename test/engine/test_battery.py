"""Batteries of the runtime: what they tell, what they do to the rotors, and who remembers them."""

from __future__ import annotations

import numpy as np
import pytest

from crazyflow_ros.drones import load_drone
from crazyflow_ros.dynamics import RPM
from crazyflow_ros.engine.disturbances import BatteryCharge
from crazyflow_ros.engine.engine import Engine
from crazyflow_ros.engine.interventions import disturb
from crazyflow_ros.engine.kept_state import capture, restore
from crazyflow_ros.engine.levels import Level, rows
from crazyflow_ros.runtime import SimulationConfig
from crazyflow_ros.sim.actuation import Battery

NAMES = ["cf0", "cf1"]
BATTERY = Battery.of("cf2x_L250")
CONFIG = SimulationConfig(control="rotor_vel", battery=True)


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(CONFIG, NAMES)


def run(engine: Engine, n_ticks: int) -> np.ndarray:
    """What the batteries are after some ticks, (2, 3)."""
    battery = engine.advance(1, [n_ticks], 0)[-1].battery
    assert battery is not None
    return battery


def test_what_is_drawn_is_the_power_of_the_rotors(engine: Engine) -> None:
    engine.reset()
    np.testing.assert_allclose(run(engine, 0), [[4.2, 0, 0]] * 2, atol=1e-5)
    engine.set_commands(["cf0"], rows(Level.rotor_vel, np.full((1, 4), 15_000.0)))
    before = run(engine, 500)
    after = run(engine, 500)
    assert (after[1] == before[1]).all()  # it stands still
    speed = 15_000.0 * RPM
    torque = np.polynomial.polynomial.polyval(15_000.0, load_drone("cf2x_L250")["rpm2torque"])
    volts, current, drawn = after[0]
    power = 4 * torque * speed / BATTERY.efficiency
    assert volts * current == pytest.approx(power, rel=1e-3)
    assert 3600 * (drawn - before[0, 2]) == pytest.approx(current, rel=1e-2)  # A s, in a second
    source = float(BATTERY.voltage(np.float64(drawn)))
    assert source - volts == pytest.approx(BATTERY.resistance * current, rel=1e-3)


def test_rotors_are_as_fast_as_the_voltage_allows(engine: Engine) -> None:
    engine.reset()
    engine.set_commands(["cf0"], rows(Level.rotor_vel, np.full((1, 4), 1e6)))
    figures = load_drone("cf2x_L250")
    lowest, slope, curve = figures["rpm2thrust"]
    fastest = np.roots([curve, slope, lowest - figures["thrust_max"]]).max() * RPM
    shares = []
    engine.advance(1, [600], 0)  # until they turn
    for charge in (1.0, 0.5, 0.05, 0.04):
        disturb(engine, BatteryCharge("cf0", charge))
        snapshot = engine.advance(1, [100], 0)[-1]
        assert snapshot.battery is not None
        shares.append(min(1.0, snapshot.battery[0, 0] / BATTERY.fastest_from))
        np.testing.assert_allclose(snapshot.rotor_vel[0], fastest * shares[-1], rtol=2e-2)
    assert shares[0] == shares[1] == 1.0 > shares[2] > shares[3]


def test_a_reset_fills_and_a_checkpoint_keeps(engine: Engine) -> None:
    engine.reset()
    engine.set_commands(NAMES, rows(Level.rotor_vel, np.full((2, 4), 15_000.0)))
    used = run(engine, 300)
    kept = capture(engine)
    later = run(engine, 200)
    engine.reset(["cf1"])
    refilled = run(engine, 0)
    np.testing.assert_allclose(refilled[0], later[0])
    np.testing.assert_allclose(refilled[1], [4.2, 0, 0], atol=1e-5)
    restore(engine, kept)
    np.testing.assert_array_equal(run(engine, 0), used)
    np.testing.assert_array_equal(run(engine, 200), later)
