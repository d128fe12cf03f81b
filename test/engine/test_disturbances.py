"""Wind, gusts, motor failures, batteries and the air of rotors in the runtime."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
from multirotors import QUADROTORS

from crazyflow_ros.drones import load_drone
from crazyflow_ros.dynamics import RPM
from crazyflow_ros.dynamics.forces.aerodynamics import ground_effect
from crazyflow_ros.dynamics.forces.floor import floor_contact
from crazyflow_ros.engine.disturbances import from_disturbance, to_disturbance
from crazyflow_ros.engine.engine import Engine
from crazyflow_ros.engine.form import GUSTS, counted, gust_period
from crazyflow_ros.engine.interventions import disturb
from crazyflow_ros.engine.kept_state import capture, restore
from crazyflow_ros.engine.levels import Level, rows
from crazyflow_ros.flight import Pose
from crazyflow_ros.ros.parameters.node_parameters import Parameters
from crazyflow_ros.runtime import (
    BatteryCharge,
    Checkpoint,
    MotorEfficiency,
    PhysicsThread,
    SimulationConfig,
    Snapshot,
    Wind,
)
from crazyflow_ros.sim import Sim
from crazyflow_ros.sim.actuation import Battery
from crazyflow_ros.sim.wind import Dryden, gust_of

NAMES = ["cf0", "cf1"]
DRONE = load_drone("cf2x_L250")
DRAG, MASS = np.diag(DRONE["drag_matrix"]), DRONE["mass"]
HOVER = 16_000.0  # RPM, about
T = 300.0  # s, no wait of a test is longer; compiling is among them


@pytest.fixture(scope="module")
def windy() -> Engine:
    """Two drones with all there is, first in calm air."""
    return Engine(
        SimulationConfig(
            control="rotor_vel",
            battery=True,
            ground_effect=True,
            downwash=True,
            gust_intensity=1.0,
            seed=3,
        ),
        NAMES,
    )


@pytest.fixture
def engine(windy: Engine) -> Engine:
    """The drones high in the air and far from each other, with rotors at rest."""
    windy.reset()
    disturb(windy, Wind())
    put(windy)
    return windy


def put(
    engine: Engine, z: Sequence[float] = (500.0, 500.0), x: float = 50.0, **more: float
) -> None:
    fields = {
        "pos": np.array([[0, 0, z[0]], [x, 0, z[1]]]),
        "quat": np.array([[0, 0, 0, 1.0]] * 2),
        "vel": np.zeros((2, 3)),
        "ang_vel": np.zeros((2, 3)),
        "rotor_vel": np.full((2, 4), more.get("rotor_vel", 0.0) * RPM),
    }
    engine.put(NAMES, fields)


def fly(engine: Engine, n_ticks: int, tick: int = 1) -> Snapshot:
    return engine.advance(tick, [n_ticks], 0)[-1]


def thrust(speed: float = HOVER) -> float:
    return 4 * float(np.polynomial.polynomial.polyval(speed, DRONE["rpm2thrust"]))


def test_to_fly_in_wind_is_to_fly_in_calm_air_that_moves(engine: Engine) -> None:
    """Galilean invariance: the drag of a drone at rest in a wind is that of one that moves."""
    wind = np.array([3.0, -2.0, 1.0])
    state = {"vel": np.array([-wind, [0.0, 0.0, 0.0]])}
    engine.put(NAMES, state)
    calm = fly(engine, 0).acc
    np.testing.assert_allclose(calm[0] - calm[1], -DRAG / MASS * wind, atol=1e-5)
    disturb(engine, Wind(wind.tolist()))
    engine.put(NAMES, {"vel": np.zeros((2, 3))})
    np.testing.assert_allclose(fly(engine, 0).acc, calm[[0, 0]], atol=1e-5)


def test_wind_takes_a_falling_drone_along(engine: Engine) -> None:
    disturb(engine, Wind((4.0, 0.0, 0.0)))
    after = fly(engine, 1000)
    expected = 4.0 * (1 - math.exp(DRAG[0] / MASS * 2.0))
    np.testing.assert_allclose(after.vel[:, 0], expected, rtol=2e-3)
    engine.reset()
    assert engine.wind.mean == (4.0, 0.0, 0.0)  # the weather stays


def test_gusts_are_as_strong_as_they_are_asked_to_be(engine: Engine) -> None:
    wind = Wind((2.0, 0.0, 0.0), gust_intensity=0.8, gust_altitude=6.0)
    disturb(engine, wind)
    model = Dryden((2.0, 0.0, 0.0), 6.0, 0.8)
    assert model.carrier == 8.0
    samples = []
    for i in range(1500):
        put(engine)
        fly(engine, 1000, 1 + 1000 * i)
        filters = engine.world.leaves[f"plugins.{GUSTS}"][0, 0]
        samples.append(np.array(gust_of(filters, model.numbers(1.0).tolist())))
    measured = np.std(samples, axis=0)
    np.testing.assert_allclose(measured, model.intensities, rtol=0.08)
    correlation = np.corrcoef(np.transpose(samples))
    assert np.abs(correlation - np.eye(3)).max() < 0.12


def gusty_flight(engine: Engine, stretches: Sequence[int]) -> Snapshot:
    engine.reset()
    disturb(engine, Wind((1.0, 2.0, 0.0), gust_intensity=0.5))
    put(engine)
    tick, snapshot = 1, None
    for n in stretches:
        snapshot = fly(engine, n, tick)
        tick += n
    assert snapshot is not None
    return snapshot


def test_gusts_do_not_depend_on_how_ticks_are_put_together(engine: Engine) -> None:
    one = gusty_flight(engine, [700])
    other = gusty_flight(engine, [3, 399, 98, 200])
    for field in ("pos", "quat", "vel", "ang_vel"):
        np.testing.assert_array_equal(getattr(one, field), getattr(other, field))
    assert np.abs(one.vel[0] - one.vel[1]).max() > 1e-3  # 50 m apart, in gusts of their own
    calm = replace(engine.wind, gust_intensity=0.0)
    engine.reset()
    disturb(engine, calm)
    put(engine)
    assert np.abs(fly(engine, 700).vel - one.vel).max() > 1e-2


def test_gusts_go_on_from_what_is_kept(engine: Engine) -> None:
    gusty_flight(engine, [333])
    kept = capture(engine)
    later = fly(engine, 300, 334)
    gusty_flight(engine, [10])
    restore(engine, kept)
    np.testing.assert_array_equal(fly(engine, 300, 334).pos, later.pos)


@pytest.mark.parametrize("freq", [1, 50, 250, 333, 500, 1000, 100_000])
def test_the_count_of_ticks_is_exact_and_all_periods_divide_it(freq: int) -> None:
    period = gust_period(freq)
    assert freq % period == 0 and counted(freq) % freq == 0
    assert counted(freq) <= 2**24 and freq / period >= min(freq, 100)
    assert np.float32(counted(freq) - 1) == counted(freq) - 1


@pytest.mark.parametrize("speed", [1e-6, 0.01, 1.0, 30.0])
def test_filters_keep_their_covariance_at_any_speed(speed: float) -> None:
    """Of two lags in series that white noise drives; the tick may be ever so short."""
    numbers = Dryden((speed, 0.0), 6.0, 0.0).numbers(1e-5)
    for e, u, a, b, c in (numbers[9:14], numbers[14:19]):
        covariance = np.array([[0.5, 0.25], [0.25, 0.25]])
        turn, gain = np.array([[e, 0], [e * u, e]]), np.array([[a, 0], [b, c]])
        np.testing.assert_allclose(turn @ covariance @ turn.T + gain @ gain.T, covariance)
        assert c > 0


def test_a_weak_motor_has_its_share_of_the_thrust(engine: Engine) -> None:
    for name in NAMES:
        engine.set_commands([name], rows(Level.rotor_vel, np.full((1, 4), HOVER)))
    disturb(engine, MotorEfficiency("cf0", 1, 0.25))
    disturb(engine, MotorEfficiency("cf0", 2, 0.0))
    speeds = fly(engine, 2000).rotor_vel / RPM
    np.testing.assert_allclose(speeds[0], [HOVER, HOVER / 2, 0, HOVER], rtol=1e-3, atol=1.0)
    np.testing.assert_allclose(speeds[1], HOVER, rtol=1e-3)
    kept = capture(engine)
    disturb(engine, MotorEfficiency("cf0", 2, 1.0))
    assert fly(engine, 2000).rotor_vel[0, 2] / RPM == pytest.approx(HOVER, rel=1e-3)
    restore(engine, kept)
    assert fly(engine, 100).rotor_vel[0, 2] == pytest.approx(0, abs=0.1)
    engine.reset(["cf0"])
    engine.set_commands(["cf0"], rows(Level.rotor_vel, np.full((1, 4), HOVER)))
    np.testing.assert_allclose(fly(engine, 2000).rotor_vel[0] / RPM, HOVER, rtol=1e-3)


def test_a_battery_has_the_voltage_of_its_charge(engine: Engine) -> None:
    disturb(engine, BatteryCharge("cf0", 0.5))
    battery = fly(engine, 0).battery
    assert battery is not None
    drawn = Battery.of("cf2x_L250").capacity / 2
    volts = float(Battery.of("cf2x_L250").voltage(np.float64(drawn)))
    np.testing.assert_allclose(battery[0, [0, 2]], [volts, drawn], rtol=1e-5)
    assert battery[1, 2] == 0  # the other is full
    disturb(engine, BatteryCharge("cf0", 0.0))
    for name in NAMES:
        engine.set_commands([name], rows(Level.rotor_vel, np.full((1, 4), HOVER)))
    after = fly(engine, 1000)
    assert after.rotor_vel[0].max() < 2.0 < 1000.0 < after.rotor_vel[1].min()
    assert after.vel[0, 2] < -10  # it falls as a stone does
    engine.reset(["cf0"])
    refilled = fly(engine, 0).battery
    assert refilled is not None and refilled[0, 2] == 0


def test_near_the_floor_a_drone_has_more_thrust(engine: Engine) -> None:
    radius, rotor_z = (DRONE["geometry"][k] for k in ("rotor_radius", "rotor_z"))
    height = 3 * radius
    put(engine, z=(height - rotor_z, 500.0), x=1000.0, rotor_vel=HOVER)  # out of its jet
    for name in NAMES:
        engine.set_commands([name], rows(Level.rotor_vel, np.full((1, 4), HOVER)))
    near, far = fly(engine, 0).acc[:, 2]
    ratio = (near + 9.81) / (far + 9.81)
    d, b = 2 * DRONE["L"], 2 * math.sqrt(2) * DRONE["L"]  # Sanchez-Cuevas et al. 2017, K_b = 2

    def source(away: float) -> float:
        return radius**2 * height / 2 / (away**2 + 4 * height**2) ** 1.5

    q = source(0) + 2 * source(d) + source(b) + 8 * source(b)
    assert ratio == pytest.approx(1 / (1 - q), rel=1e-4)


def test_a_drone_is_blown_down_by_the_one_above(engine: Engine) -> None:
    put(engine, z=(10.0, 9.0), x=0.0, rotor_vel=HOVER)
    for name in NAMES:
        engine.set_commands([name], rows(Level.rotor_vel, np.full((1, 4), HOVER)))
    above, below = fly(engine, 0).acc[:, 2]
    # 1.35 times half the flux of momentum on the axis 1 m below, times the area of the discs.
    radius, arm = DRONE["geometry"]["rotor_radius"], DRONE["L"]
    square = 2 * (4 * arm**2 + radius**2) + 0.094**2 / math.log(2)
    momentum = 2 * thrust() / (math.pi * square)
    loss = 1.35 * momentum / 2 * 4 * math.pi * radius**2
    assert above - below == pytest.approx(loss / MASS, rel=1e-3)
    put(engine, z=(10.0, 9.0), x=2.0, rotor_vel=HOVER)
    np.testing.assert_allclose(*fly(engine, 0).acc[:, 2], rtol=1e-6)  # beside the jet


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Wind((31.0, 0, 0)), r"wind must be within 30 m/s, got \[31.0, 0.0, 0.0\]"),
        (lambda: Wind((20.0, 20, 20)), "wind speed must be within 30 m/s, got 34.641"),
        (lambda: Wind((math.nan, 0, 0)), "wind must be 3 finite numbers"),
        (lambda: Wind((1.0, 0)), "wind must be 3 finite numbers"),
        (lambda: Wind(gust_intensity=-1.0), "gust_intensity must be 0 m/s or more, got -1"),
        (lambda: Wind(gust_intensity=11.0), "gust_intensity must be within 10 m/s, got 11"),
        (lambda: Wind(gust_altitude=2.0), "gust_altitude must be from 3 to 300 m, got 2.0"),
        (lambda: MotorEfficiency("cf0", 16, 1.0), "motor must be one of 0 to 15, got 16"),
        (lambda: MotorEfficiency("cf0", 0, math.nan), "efficiency must be .* got nan"),
        (lambda: BatteryCharge("cf0", 1.1), "charge must be a number from 0 to 1, got 1.1"),
        (lambda: to_disturbance({"kind": "Rain"}), "a disturbance is one of Wind, "),
        (lambda: to_disturbance({"kind": "Wind"}), "a Wind must have kind, mean, gust_intensity"),
        (lambda: to_disturbance(3), "a disturbance is one of Wind, "),
    ],
)
def test_what_is_no_disturbance_is_refused(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_disturbances_survive_json() -> None:
    for one in (Wind((1.0, 2.0, 0.1), 0.3), MotorEfficiency("a", 2, 0.1), BatteryCharge("b", 0.7)):
        assert to_disturbance(from_disturbance(one)) == one


def paused(**config: object) -> PhysicsThread:
    config = {"start_paused": True, "real_time_factor": 0.0, "true_mass": True, **config}
    physics = PhysicsThread(SimulationConfig(**config), ["cf0"])  # type: ignore[arg-type]
    physics.start()
    return physics


def test_gusts_come_to_a_simulation_that_runs_and_go_on_in_another() -> None:
    """The first are compiled for beside the flight; a checkpoint takes its wind along."""
    physics, other = paused(), paused()
    try:
        with pytest.raises(ValueError, match="the drones have no batteries"):
            physics.world.disturb(BatteryCharge("cf0", 0.5)).result(T)
        with pytest.raises(ValueError, match="there is no drone 'cf9', only cf0"):
            physics.world.disturb(MotorEfficiency("cf9", 0, 0.5)).result(T)
        physics.command("cf0", Pose((0.0, 0.0, 1.0), 0.0))
        physics.step(500).result(T)
        wind = Wind((2.0, 0.0, 0.0), 0.4)
        physics.world.disturb(wind).result(T)
        physics.world.disturb(MotorEfficiency("cf0", 0, 0.95)).result(T)
        physics.step(505).result(T)
        content = physics.state.checkpoint().result(T).to_bytes()
        end = physics.step(505).result(T)
        other.state.restore(Checkpoint.load(BytesIO(content))).result(T)
        assert other.world.wind == wind
        np.testing.assert_array_equal(other.step(505).result(T).pos, end.pos)
        assert np.abs(end.vel).max() > 1e-3
    finally:
        physics.stop()
        other.stop()


def test_wind_needs_drag_and_failures_need_motors() -> None:
    physics = paused(dynamics="so_rpy")
    try:
        with pytest.raises(ValueError, match=r"wind needs dynamics .*, got so_rpy"):
            physics.world.disturb(Wind((1.0, 0.0, 0.0))).result(T)
        with pytest.raises(ValueError, match=r"dynamics so_rpy have no motors"):
            physics.world.disturb(MotorEfficiency("cf0", 0, 0.0)).result(T)
    finally:
        physics.stop()
    with pytest.raises(ValueError, match="wind needs dynamics"):
        Engine(SimulationConfig(dynamics="so_rpy", wind=(1.0, 0.0, 0.0)), ["cf0"])


def test_one_metre_is_one_metre_for_all_drones() -> None:
    """With the defaults of the node, also near the floor."""
    defaults, drones = Parameters(), QUADROTORS
    sim = Sim(
        n_drones=len(drones),
        drone=drones,
        control="state",
        forces=(ground_effect(drones), floor_contact(drones, 500)),
        true_mass=defaults.true_mass,
    )
    assert defaults.ground_effect
    pos = np.asarray(sim.data.states.pos)
    command = np.zeros((1, len(drones), 13))
    command[..., :3] = pos
    command[..., 2] = 1.0
    start = sim.data.states.pos.at[..., 2].set(0.9)
    sim.data = sim.data.replace(states=sim.data.states.replace(pos=start))
    sim.state_control(command)
    sim.step(20 * sim.freq)
    np.testing.assert_allclose(sim.data.states.pos[0, :, 2], 1.0, atol=0.01)


def test_wind_is_not_felt_as_a_contact(engine: Engine) -> None:
    """In free air nothing touches a drone, whatever drags at it."""
    disturb(engine, Wind((5.0, -3.0, 0.0), gust_intensity=1.0))
    for i in range(20):
        snapshot = fly(engine, 25, 1 + 25 * i)
        assert np.abs(snapshot.acc[:, 0]).min() > 0.01  # it is dragged along
        np.testing.assert_allclose(snapshot.contact, 0.0, atol=1e-6)
