"""What drones can do now: thrust beside what carries them, and the speed of their controllers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from crazyflow_ros.control import Controller
from crazyflow_ros.drones import Drone, has_battery, load_drone
from crazyflow_ros.engine.authority import Authority
from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.engine.disturbances import Wind
from crazyflow_ros.engine.engine import Engine
from crazyflow_ros.engine.snapshot import Snapshot
from crazyflow_ros.estimation import Positioning
from crazyflow_ros.flight import FlightConfig
from crazyflow_ros.flight.fleet_observation import Ability
from crazyflow_ros.scene.conditions import STANDARD, Conditions

INTACT = np.zeros((1, 4))


def ability(
    drone: str,
    volts: float | None = None,
    loss: np.ndarray = INTACT,
    wind: Wind | None = None,
    controller: Controller = Controller.mellinger,
) -> Ability:
    battery = None if volts is None else np.array([[volts, 0.0, 0.0]] * len(loss))
    return of(SimulationConfig(drone_model=drone), battery, loss, wind or Wind(), controller)


def of(
    config: SimulationConfig,
    battery: np.ndarray | None,
    loss: np.ndarray,
    wind: Wind,
    controller: Controller,
) -> Ability:
    world = SimpleNamespace(controller=controller, conditions=STANDARD)
    engine = SimpleNamespace(motor_loss=loss, rows=slice(None), wind=wind, world=world)
    snapshot = SimpleNamespace(battery=battery)  # nothing else counts
    return Authority(config, cast(Engine, engine)).of(cast(Snapshot, snapshot))


@pytest.mark.parametrize("drone", Drone)
def test_an_intact_drone_in_calm_air_can_do_all(drone: Drone) -> None:
    assert ability(drone).authority == pytest.approx([1.0])
    if has_battery(drone):
        assert ability(drone, 16.8).authority == pytest.approx([1.0])


@pytest.mark.parametrize("drone", Drone)
def test_a_drone_that_its_rotors_hardly_carry_can_do_nothing(drone: Drone) -> None:
    """The loss is that of the speed; thrust goes with its square."""
    figures = load_drone(drone)
    weight, most = figures["mass"] * 9.81, 4 * figures["thrust_max"]
    carries = 1 - np.sqrt(weight / most)
    half = 1 - np.sqrt((most + weight) / 2 / most)
    loss = np.zeros((4, 4))
    loss[:, 2] = 0.0, half, carries, min(1.1 * carries, 1.0)
    assert ability(drone, loss=loss).authority == pytest.approx([1.0, 0.5, 0.0, 0.0], abs=1e-6)


def test_wind_takes_nothing_from_a_drone_without_drag(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {**load_drone("cf2x_L250"), "drag_matrix": np.zeros((3, 3))}
    monkeypatch.setattr(Conditions, "figures", lambda *_: known)
    able = ability("cf2x_L250", wind=Wind((5.0, 0.0, 0.0), 0.0))
    assert able.authority == pytest.approx([1.0]) and able.fastest > 0


def test_a_low_battery_and_wind_leave_less() -> None:
    volts = [ability("cf21B_500", v).authority[0] for v in (4.0, 3.0, 2.8, 2.6, 1.5)]
    assert volts[0] == 1.0 and volts[-1] == 0.0
    assert (np.diff(volts) < 0).all()
    air = [
        ability("hb_x500", wind=Wind(mean, gusts)).authority[0]
        for mean, gusts in (
            ((0, 0, 0), 0.0),
            ((0, -4, 0), 0.0),
            ((0, -4, 0), 1.0),
            ((9, 4, 0), 1.0),
        )
    ]
    assert air[0] == 1.0 and (np.diff(air) < 0).all() and air[-1] > 0


def test_only_pid_limits_the_speed_and_late_controllers_say_how_late() -> None:
    found = {c: ability("cf2x_P250", controller=c) for c in Controller}
    assert 0.9 < found[Controller.pid].fastest < 1.1  # m/s, the limit of the controller itself
    assert (
        found[Controller.indi].fastest == 2.0
    )  # m/s, the default of `flight.speed`: it follows late
    assert {c for c, able in found.items() if able.fastest == np.inf} == {
        "mellinger",
        "brescianini",
    }
    assert {c for c, able in found.items() if able.lag > 0} == {Controller.pid, Controller.indi}


@pytest.mark.parametrize(("speed", "fastest"), [(0.0, 2.0), (2.0, 1.86), (9.0, 0.2)])
def test_a_controller_that_limits_its_tilt_is_slower_upwind(speed: float, fastest: float) -> None:
    """INDI tilts by 10 degrees, at which drag stops a cf2x_P250 at 4.07 m/s through the air."""
    wind = Wind((0.6 * speed, -0.8 * speed, 0.0))
    found = {c: ability("cf2x_P250", controller=c, wind=wind).fastest for c in Controller}
    assert found[Controller.indi] == pytest.approx(fastest, abs=0.01)
    assert found[Controller.mellinger] == np.inf


def test_drones_that_drift_fly_gently() -> None:
    """A filter that no source tells the position would lose itself."""

    def able(positioning: Positioning, speed: float = 0.0) -> Ability:
        flight = FlightConfig(speed=speed)
        config = SimulationConfig(estimator="kalman", positioning=positioning, flight=flight)
        return of(config, None, INTACT, Wind(), Controller.mellinger)

    deck, blind, hall = map(
        able, (Positioning(), Positioning(flow=False), Positioning(motion_capture=True))
    )
    assert deck.authority == blind.authority == pytest.approx(0.6 * hall.authority)
    assert hall.authority == pytest.approx(1.0)
    assert (deck.fastest, blind.fastest, hall.fastest) == (1.0, 1.0, np.inf)
    assert able(Positioning(), 1.7).fastest == 1.7  # m/s, if somebody asks for it
