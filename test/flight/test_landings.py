"""Where flights end: on the floor, or on what lies there; what is told of them, and what is not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from crazyflow_ros.flight import (
    FlightEvent,
    FlyTrajectory,
    Hover,
    Land,
    NotifySetpointsStop,
    PolynomialTrajectory,
    Pose,
    Setpoint,
    Takeoff,
    Trajectory,
    Velocity,
    VelocityWorld,
)
from crazyflow_ros.runtime import Checkpoint, PhysicsThread, SimulationConfig, Snapshot

T = 120.0  # s, no wait of a test is longer
FREQ = 500
HIGH = 1.7  # m
PLACES = {"cf0": (0.0, 0.0), "cf1": (0.0, 1.0), "cf2": (0.0, 2.0), "cf3": (0.0, 3.0)}
PADS = {"cf0": 0.0, "cf1": 0.04, "cf2": 0.33, "cf3": 1.1}  # m, what is below each drone
REST = 0.01375  # m, of a drone that stands
BOXES = "".join(
    f'<geom name="pad of {name}" type="box" pos="{x} {y} {PADS[name] / 2}" '
    f'size="0.3 0.3 {PADS[name] / 2}"/>'
    for name, (x, y) in PLACES.items()
    if PADS[name]
)
WORLD = f'<mujoco><worldbody><geom type="plane" size="0 0 1"/>{BOXES}</worldbody></mujoco>'

Simulation = tuple[PhysicsThread, list[FlightEvent], Checkpoint]


@pytest.fixture(scope="module")
def simulation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulation]:
    scene = tmp_path_factory.mktemp("landings") / "pads.xml"
    scene.write_text(WORLD)
    config = SimulationConfig(
        scene=str(scene),
        real_time_factor=0.0,
        start_paused=True,
        true_mass=True,
        initial_poses=[(x + 1.0, y, REST, 0.0, 0.0, 0.0, 1.0) for x, y in PLACES.values()],
    )
    physics, events = PhysicsThread(config, tuple(PLACES)), list[FlightEvent]()
    physics.news.on_flight_event(events.append)
    physics.start()
    physics.fly(dict.fromkeys(PLACES, Takeoff(HIGH))).result(T)
    physics.step(5 * FREQ).result(T)
    physics.fly({name: Pose((*at, HIGH), 0.0) for name, at in PLACES.items()}).result(T)
    there = physics.step(5 * FREQ).result(T)
    np.testing.assert_allclose(there.pos[:, :2], list(PLACES.values()), atol=0.02)
    yield physics, events, physics.state.checkpoint().result(T)
    physics.stop()
    assert physics.failed is None and not physics.statistics().failures


@pytest.fixture
def physics(simulation: Simulation) -> PhysicsThread:
    """All drones hover, each above its pad, and nothing has happened yet."""
    physics, events, hovering = simulation
    physics.state.restore(hovering).result(T)
    events.clear()
    return physics


@pytest.fixture
def events(simulation: Simulation) -> list[FlightEvent]:
    return simulation[1]


def along(times: Sequence[float], points: Sequence[Sequence[float]]) -> Trajectory:
    """A trajectory that rests at each of its points."""
    rest = np.zeros((len(times), 3))
    return Trajectory([round(time * 1e9) for time in times], points, rest[:, 0], rest, rest)


def down_to(z: float) -> dict[str, Setpoint]:
    """From above its pad down to a height, for each drone."""
    return {n: along((0.0, 4.0), ((x, y, HIGH), (x, y, z))) for n, (x, y) in PLACES.items()}


def assert_landed(physics: PhysicsThread, now: Snapshot, heights: Sequence[float]) -> None:
    assert physics.commands.states == dict.fromkeys(PLACES, "landed")
    np.testing.assert_allclose(now.pos[:, 2] - REST, heights, atol=2e-3)
    assert now.rotor_vel.max() < 1000  # and slowing down


WAYS: dict[str, dict[str, Setpoint]] = {
    "land": dict.fromkeys(PLACES, Land()),
    "slow land": dict.fromkeys(PLACES, Land(0.0, 6.0)),
    "pose": {name: Pose((*at, 0.0), 0.0) for name, at in PLACES.items()},
    "velocity": dict.fromkeys(PLACES, Velocity((0.0, 0.0, -0.7), 0.0)),
    "velocity in the world": dict.fromkeys(PLACES, VelocityWorld((0.0, 0.0, -0.5), 0.0)),
    "hover": dict.fromkeys(PLACES, Hover((0.0, 0.0), 0.0, 0.0)),
}
STREAMS = ("velocity", "velocity in the world", "hover")


@pytest.mark.parametrize("way", WAYS)
def test_a_landing_ends_on_whatever_carries_the_drone(
    physics: PhysicsThread, events: list[FlightEvent], way: str
) -> None:
    """With its rotors stopped, and with nothing to warn of."""
    is_stream = way in STREAMS
    for _ in range(80 if is_stream else 1):  # streams go on, also after the landing
        physics.fly(WAYS[way]).result(T)
        physics.step(FREQ // 10).result(T)
    if is_stream:
        physics.fly(dict.fromkeys(PLACES, NotifySetpointsStop())).result(T)
    now = physics.step(8 * FREQ).result(T)
    assert_landed(physics, now, list(PADS.values()))
    assert not events
    physics.fly(dict.fromkeys(PLACES, Takeoff(HIGH))).result(T)
    assert physics.step(5 * FREQ).result(T).pos[:, 2] == pytest.approx(HIGH, abs=0.02)
    assert not events


def test_a_trajectory_to_the_floor_may_end_on_something_higher(physics: PhysicsThread) -> None:
    """It is told that its way leads through it, and that it has hit it."""
    physics.fly(down_to(0.0)).result(T)
    assert_landed(physics, physics.step(12 * FREQ).result(T), list(PADS.values()))


@pytest.mark.parametrize("z", [REST + 0.015, REST, 0.0, -0.09, -0.25, -2.0])
def test_a_trajectory_that_ends_on_the_floor_or_below_it_lands(
    physics: PhysicsThread, events: list[FlightEvent], z: float
) -> None:
    physics.fly({"cf0": down_to(z)["cf0"]}).result(T)
    physics.step(2 * FREQ).result(T)
    assert physics.commands.states["cf0"] == "flying"
    now = physics.step(12 * FREQ).result(T)
    assert physics.commands.states["cf0"] == "landed" and not events
    assert now.pos[0, 2] == pytest.approx(REST, abs=2e-3) and now.rotor_vel[0].max() < 300


def test_a_trajectory_that_ends_above_the_floor_hovers(
    physics: PhysicsThread, events: list[FlightEvent]
) -> None:
    physics.fly({"cf0": down_to(REST + 0.06)["cf0"]}).result(T)
    now = physics.step(12 * FREQ).result(T)
    assert physics.commands.states["cf0"] == "flying" and not events
    assert now.pos[0, 2] == pytest.approx(REST + 0.06, abs=0.01)


def test_a_trajectory_may_press_a_drone_to_the_floor_and_take_it_up_again(
    physics: PhysicsThread, events: list[FlightEvent]
) -> None:
    x, y = PLACES["cf0"]
    heights = ((0.0, HIGH), (4.0, -0.4), (11.0, -0.4), (15.0, 1.0))
    told = along([time for time, _ in heights], [(x, y, z) for _, z in heights])
    physics.fly({"cf0": told}).result(T)
    pressed = physics.step(10 * FREQ).result(T)
    assert pressed.pos[0, 2] == pytest.approx(REST, abs=2e-3)
    assert physics.commands.states["cf0"] == "flying"
    up = physics.step(8 * FREQ).result(T)
    assert up.pos[0, 2] == pytest.approx(1.0, abs=0.02)
    assert physics.commands.states["cf0"] == "flying" and not events


def test_an_uploaded_trajectory_may_end_below_the_floor(
    physics: PhysicsThread, events: list[FlightEvent]
) -> None:
    """As in the firmware, whose rotors turn on there."""
    down = np.zeros((1, 4, 8))
    down[0, 2, 3:6] = np.array([10.0, -15.0, 6.0]) * -(HIGH + 0.5) / 4.0 ** np.arange(3, 6)
    physics.fly({"cf0": FlyTrajectory(PolynomialTrajectory([4.0], down))}).result(T)
    now = physics.step(14 * FREQ).result(T)
    assert now.pos[0, 2] == pytest.approx(REST, abs=2e-3)
    assert physics.commands.states["cf0"] == "flying" and not events
    physics.fly({"cf0": Land()}).result(T)
    physics.step(4 * FREQ).result(T)
    assert physics.commands.states["cf0"] == "landed" and not events


def test_a_drone_that_flies_into_a_pad_on_its_way_to_land_has_hit_it(
    physics: PhysicsThread, events: list[FlightEvent]
) -> None:
    x, y = PLACES["cf3"]
    physics.fly({"cf3": Pose((x + 1.5, y, 0.0), 0.0)}).result(T)  # clear of the pad, then down
    physics.step(8 * FREQ).result(T)
    assert physics.commands.states["cf3"] == "landed" and not events
    physics.fly({"cf3": Pose((x - 1.5, y, 0.0), 0.0)}).result(T)  # low, and into the pad
    physics.step(8 * FREQ).result(T)
    assert "hit" in [event.kind for event in events]
