"""Drones that fall, in the physics: what is seen, when, how often, and what happens then."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from crazyflow_ros.dynamics.forces.floor import contact_points
from crazyflow_ros.flight import (
    Emergency,
    FlightConfig,
    FlightEvent,
    FlightState,
    GoTo,
    Land,
    Pose,
    Raw,
    Setpoint,
    Takeoff,
    Velocity,
)
from crazyflow_ros.flight.commander import Commander
from crazyflow_ros.flight.fleet_observation import Ability, FleetObservation
from crazyflow_ros.flight.plan import Rules
from crazyflow_ros.flight.supervisor import Supervisor
from crazyflow_ros.runtime import (
    Checkpoint,
    DroneState,
    MotorEfficiency,
    PhysicsThread,
    ResetScope,
    SimulationConfig,
    Snapshot,
    TimedWrench,
)
from crazyflow_ros.sim.actuation import Battery

T = 120.0  # s, no wait of a test is longer
FREQ = 500
SOON = 200_000_000  # ns
NAMES = ("cf0", "cf1")
WALL = """<mujoco><worldbody><geom type="plane" size="0 0 1"/>
<geom name="wall" type="box" pos="2 0 1" size="0.2 3 1"/>
<geom type="cylinder" pos="-2 -3 1" size="0.2 1"/>
<body name="tower" pos="0 3 1"><geom name="bricks" type="box" size="0.2 0.2 1"/></body>
</worldbody></mujoco>"""
ROLLED = {angle: (np.sin(angle / 2), 0.0, 0.0, np.cos(angle / 2)) for angle in (np.pi, np.pi / 2)}


class Watch:
    """What the supervisor tells, and what somebody sees who looks more often."""

    def __init__(self) -> None:
        self.hovering: Checkpoint | None = None
        self.events: list[FlightEvent] = []
        self.seen: list[Snapshot] = []

    def first(self, upright: float, *, touching: bool) -> int:
        """When cf0 was first tilted so far, or first touched something high up [ns]."""
        for now in self.seen:
            up = 1 - 2 * (now.quat[0, 0] ** 2 + now.quat[0, 1] ** 2)
            push = max(now.impact[0], np.abs(now.contact[0, :3]).max())
            touches = push > 0.05 * 0.0328 * 9.81
            if up < upright and (touches or not touching):
                return now.time_ns
        raise AssertionError("never")

    def only(self, kind: str) -> FlightEvent:
        """The one event that there has been."""
        assert [(event.drone, event.kind) for event in self.events] == [("cf0", kind)]
        return self.events[0]


@pytest.fixture(scope="module")
def simulation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[PhysicsThread, Watch]]:
    scene = tmp_path_factory.mktemp("supervisor") / "wall.xml"
    scene.write_text(WALL)
    config = SimulationConfig(
        scene=str(scene),
        real_time_factor=0.0,
        start_paused=True,
        battery=True,
        true_mass=True,
        drone_collisions=True,
    )
    physics, watch = PhysicsThread(config, NAMES), Watch()
    physics.news.on_flight_event(watch.events.append)
    physics.every(100, watch.seen.append, "watch", observes=True)
    physics.start()
    physics.fly(dict.fromkeys(NAMES, Takeoff(1.0))).result(T)
    hovers = physics.step(4 * FREQ - 1).result(T)
    np.testing.assert_allclose(hovers.pos[:, 2], 1.0, atol=0.02)
    watch.hovering = physics.state.checkpoint().result(T)
    yield physics, watch
    physics.stop()
    assert physics.failed is None and not physics.statistics().failures


@pytest.fixture
def watch(simulation: tuple[PhysicsThread, Watch]) -> Watch:
    return simulation[1]


@pytest.fixture
def physics(simulation: tuple[PhysicsThread, Watch], watch: Watch) -> PhysicsThread:
    """Both drones hover at 1 m, and nothing has happened yet."""
    physics = simulation[0]
    assert watch.hovering is not None
    physics.state.restore(watch.hovering).result(T)
    assert not watch.events
    watch.seen.clear()
    return physics


@pytest.fixture(autouse=True)
def forget(watch: Watch) -> Iterator[None]:
    yield
    watch.events.clear()


@pytest.mark.parametrize("drone", ["cf2x_L250", "cf21B_500", "hb_x500"])
def test_a_drone_that_leans_on_the_floor_is_near_it(drone: str) -> None:
    points, rules = contact_points(drone), Rules.of(drone, FlightConfig())
    axes = [(np.cos(a), np.sin(a), 0) for a in np.linspace(0, 2 * np.pi, 361)]
    leaning = Rotation.from_rotvec(np.radians(60) * np.array(axes))
    lowest = [tilt.apply(points)[:, 2].min() for tilt in leaning]
    height = -min(lowest) + points[:, 2].min()
    assert rules.near_floor == pytest.approx(max(height, 0.05), abs=1e-3)


def put(physics: PhysicsThread, **state: object) -> None:
    physics.state.set_drone_states({"cf0": DroneState(**state)}).result(T)  # type: ignore[arg-type]


def tell(physics: PhysicsThread, setpoint: Setpoint) -> None:
    """Tell cf0, which may refuse with ValueError."""
    result = physics.fly({"cf0": setpoint}).result(T)
    if refused := getattr(result, "refused", None):
        raise ValueError(*refused)


def references(sight: FleetObservation, *commanders: Commander) -> np.ndarray:
    """Where the courses of drones are, as `Supervisor.check` takes them."""
    found = np.full((2, len(commanders), 4), np.nan)
    for i, commander in enumerate(commanders):
        if commander.order is not None and commander.order.plan.course is not None:
            found[:, i] = commander.order.reference(sight.time_ns)[:2]
    return found


def test_a_drone_upside_down(physics: PhysicsThread, watch: Watch) -> None:
    put(physics, quat=ROLLED[np.pi])
    physics.step(FREQ // 5).result(T)
    assert [event.kind for event in watch.events] == ["upside down"]  # and not crashed yet
    assert watch.events[0].text.startswith("upside down at (")
    physics.step(FREQ).result(T)
    event = watch.events[-1]
    assert event.kind == "crashed"
    assert 0 <= event.time_ns - watch.first(0.5, touching=True) <= 1_000_000_000


def test_a_drone_that_is_thrown_rolls_over_and_flies_on(
    physics: PhysicsThread, watch: Watch
) -> None:
    put(physics, vel=(0.0, -2.0, 3.0), ang_vel=(35.0, 5.0, 0.0))
    physics.step(8 * FREQ).result(T)
    assert watch.events[0].kind == "upside down"
    assert {event.kind for event in watch.events} <= {"upside down", "off course"}
    now = physics.snapshot
    np.testing.assert_allclose(now.pos[0], watch.seen[0].pos[0], atol=0.1)


def test_a_drone_on_its_side(physics: PhysicsThread, watch: Watch) -> None:
    put(physics, pos=(0.0, 0.0, 0.06), quat=ROLLED[np.pi / 2])
    physics.step(FREQ).result(T)
    (event,) = [event for event in watch.events if event.kind == "crashed"]
    since = watch.first(0.5, touching=True)
    assert 0 <= event.time_ns - since <= SOON
    assert "it fell on its side" in event.text or "upside down" in event.text


@pytest.mark.parametrize("phase", [0, 20, 45])
def test_a_drone_with_a_dead_motor_shakes_on_the_floor_and_has_crashed(
    physics: PhysicsThread, watch: Watch, phase: int
) -> None:
    physics.step(1 + phase).result(T)  # between two checks, and the drone falls otherwise each time
    physics.world.disturb(MotorEfficiency("cf0", 1, 0.0)).result(T)
    physics.fly({"cf0": GoTo((1.0, 0.0, 1.0), 0.0, 2.0)}).result(T)
    try:
        physics.step(8 * FREQ).result(T)
    finally:
        physics.world.disturb(MotorEfficiency("cf0", 1, 1.0)).result(T)
    assert "crashed" in [event.kind for event in watch.events]
    down = next(now for now in watch.seen if now.pos[0, 2] < 0.06)
    crashed = next(event.time_ns for event in watch.events if event.kind == "crashed")
    assert crashed - down.time_ns < 5e9


def test_a_drone_that_cannot_lift_off(
    simulation: tuple[PhysicsThread, Watch], watch: Watch
) -> None:
    physics = simulation[0]
    physics.state.reset(ResetScope.all).result(T)
    physics.apply_wrench("cf0", TimedWrench((0.0, 0.0, -1.0), (0.0, 0.0, 0.0), np.inf), "load")
    physics.fly({"cf0": Takeoff(1.0), "cf1": Takeoff(1.0)}).result(T)
    physics.step(4 * FREQ).result(T)
    event = watch.only("crashed")
    assert "it cannot lift off" in event.text
    assert event.time_ns < 3.5e9  # it was to be off the floor for two seconds
    assert physics.commands.states == {"cf0": "crashed", "cf1": "flying"}
    physics.end_wrench("load")


@pytest.mark.parametrize("speed", [0.3, 1.5])
def test_a_drone_that_hits_a_wall(physics: PhysicsThread, watch: Watch, speed: float) -> None:
    put(physics, pos=(1.5, -0.5, 1.0))
    physics.step(FREQ // 5).result(T)
    assert watch.events.pop().kind == "off course"
    watch.seen.clear()
    for _ in range(20):
        tell(physics, Velocity((speed, 0.0, 0.0), 0.0))
        physics.step(FREQ // 10).result(T)
        if watch.events:
            break
    event = watch.only("hit")  # at the faster speed it may fall over afterwards
    assert 0 <= event.time_ns - watch.first(2.0, touching=True) <= SOON
    assert "hit wall at (1.7" in event.text


@pytest.mark.parametrize(
    ("start", "way", "name"),
    [
        ((-1.7, -2.6, 1.0), (-1.0, 0.0), None),  # past the cylinder
        ((-1.7, -3.0, 1.0), (-1.0, 0.0), "a cylinder"),
        ((0.0, 2.7, 1.2), (0.0, 1.0), "tower"),
        ((0.1, 2.7, 1.2), (0.0, 1.0), "tower"),
    ],
)
def test_what_was_hit_is_named(
    physics: PhysicsThread,
    watch: Watch,
    start: tuple[float, ...],
    way: tuple[float, float],
    name: str | None,
) -> None:
    """By the name of a shape of the scene, or that of the object that it is part of."""
    put(physics, pos=start, vel=(*way, 0.0))
    physics.step(FREQ // 4).result(T)
    hits = [event.text for event in watch.events if event.kind == "hit"]
    assert [text.partition(" at ")[0] for text in hits] == ([f"hit {name}"] if name else [])


def test_drones_are_hit_by_name(physics: PhysicsThread, watch: Watch) -> None:
    """And a crash says what it came from."""
    other = physics.snapshot.pos[1]
    put(physics, pos=other - (0.2, 0.0, 0.0), vel=(2.0, 0.0, 0.0))
    physics.step(FREQ // 5).result(T)
    hits = {event.drone: event.text for event in watch.events if event.kind == "hit"}
    assert hits["cf0"].startswith("hit cf1 at") and hits["cf1"].startswith("hit cf0 at")
    put(physics, pos=(0.0, -1.0, 0.02), quat=ROLLED[np.pi], vel=(0.0, 0.0, 0.0))
    physics.step(FREQ // 5).result(T)
    (crash,) = [event.text for event in watch.events if event.kind == "crashed"]
    assert ": upside down, after it hit cf1; rotors stopped" in crash


@pytest.mark.parametrize("tick", range(5))
def test_a_drone_that_bounces_off_within_a_tick(
    physics: PhysicsThread, watch: Watch, tick: int
) -> None:
    """At whichever of the ticks between two runs of its controller it touches the wall."""
    speed = 3.0
    put(physics, pos=(1.65 - tick * speed / FREQ, -0.5, 1.0), vel=(speed, 0.0, 0.0))
    physics.step(FREQ // 5).result(T)
    assert physics.snapshot.vel[0, 0] < 0.0
    assert [event.kind for event in watch.events if event.drone == "cf0"].count("hit") == 1


def test_a_drone_whose_battery_is_empty(physics: PhysicsThread, watch: Watch) -> None:
    def drain(_: Snapshot) -> None:  # nobody can do this from outside
        world = physics.simulation.engine.world
        leaves = world.leaves
        leaves["plugins.battery"][0, 0] = 0.98 * Battery.of("cf2x_L250").capacity
        world.leaves = leaves

    physics.show_to(drain).result(T)
    since = physics.snapshot.time_ns
    physics.step(FREQ // 2).result(T)
    event = watch.events[0]
    assert (
        event.kind == "battery empty" and "land before the drone falls, then reset it" in event.text
    )
    assert 0 <= event.time_ns - since <= SOON
    physics.step(FREQ).result(T)
    assert [e.kind for e in watch.events].count("battery empty") == 1


def test_a_drone_that_is_pushed_off_its_course_begins_it_anew(
    physics: PhysicsThread, watch: Watch
) -> None:
    x, y, _ = physics.snapshot.pos[0]
    physics.fly({"cf0": Pose((x, y + 3.0, 1.5), 0.0)}).result(T)
    physics.step(FREQ // 2).result(T)
    put(physics, pos=(x - 1.5, y, 1.2))
    since = physics.snapshot.time_ns
    physics.step(FREQ // 2).result(T)
    event = watch.only("off course")
    assert 0 <= event.time_ns - since <= SOON
    there = physics.step(6 * FREQ).result(T)
    np.testing.assert_allclose(there.pos[0], (x, y + 3.0, 1.5), atol=0.02)
    watch.only("off course")


def test_flights_from_floor_to_floor_are_nothing_to_tell(
    physics: PhysicsThread, watch: Watch
) -> None:
    x, y, _ = physics.snapshot.pos[0]
    physics.fly({"cf0": Pose((x, y + 1.0, 0.7), 2.0), "cf1": Land()}).result(T)
    physics.step(3 * FREQ).result(T)
    physics.fly({"cf0": Land()}).result(T)
    stands = physics.step(4 * FREQ).result(T)
    assert physics.commands.states == {"cf0": "landed", "cf1": "landed"} and not watch.events
    assert stands.rotor_vel.max() < 300 and stands.pos[:, 2].max() < 0.02
    np.testing.assert_allclose(np.abs(stands.quat[:, :2]).max(), 0.0, atol=1e-3)
    put(physics, quat=ROLLED[np.pi])  # by hand, and it does not fly
    physics.step(FREQ).result(T)
    assert not watch.events


def test_a_drone_that_is_flown_bare_may_turn_over_but_not_lie_there(
    physics: PhysicsThread, watch: Watch
) -> None:
    command = np.zeros(16)
    command[:3], command[12] = (*physics.snapshot.pos[0, :2], 1.0), 1.0
    physics.fly({"cf0": Raw(command)}).result(T)
    put(physics, pos=(0.0, 0.0, 3.0), quat=ROLLED[np.pi])
    physics.step(FREQ // 5).result(T)
    assert not watch.events
    put(physics, pos=(0.0, 0.0, 0.05), quat=ROLLED[np.pi])
    physics.step(FREQ // 2).result(T)
    assert "upside down" in watch.only("crashed").text


def test_after_a_reset_it_flies_and_falls_anew(physics: PhysicsThread, watch: Watch) -> None:
    for _ in range(2):
        put(physics, quat=ROLLED[np.pi])
        physics.step(FREQ).result(T)
        assert watch.events.pop().kind == "crashed"
        watch.events.clear()
        physics.state.reset(drones=["cf0"]).result(T)
        assert physics.commands.states == {"cf1": "flying"}
        physics.fly({"cf0": Takeoff(1.0)}).result(T)
        assert physics.step(4 * FREQ).result(T).pos[0, 2] == pytest.approx(1.0, abs=0.02)
        assert not watch.events


def test_an_emergency_stop_is_no_crash(physics: PhysicsThread, watch: Watch) -> None:
    physics.fly({"cf0": Emergency()}).result(T)
    lies = physics.step(2 * FREQ).result(T)
    assert physics.commands.states["cf0"] == "locked" and not watch.events
    assert lies.pos[0, 2] < 0.1 and lies.rotor_vel[0].max() < 300


def test_what_is_so_is_told_once_and_again_after_it_was_not() -> None:
    rules = Rules.of("cf2x_L250", FlightConfig())
    commander, supervisor = Commander(rules), Supervisor(rules)
    kinds: list[str] = []
    for tick, (touches, volts) in enumerate(
        [(0, 3.8), (1, 3.8), (1, 3.8), (0, 2.9), (0, 2.9), (1, 3.1), (1, 2.9), (0, 2.9)]
    ):
        contact = np.zeros((1, 6))
        contact[0, 0] = 0.1 * touches
        sight = FleetObservation(
            tick * 10**8,
            ("cf0",),
            np.array([[0.0, 0.0, 1.0]]),
            np.array([[0.0, 0.0, 0.0, 1.0]]),
            np.zeros((1, 3)),
            contact,
            np.array([[volts, 1.0, 0.1]]),
        )
        if tick == 0:
            commander.state = FlightState.flying
            commander.command(Pose((0.0, 0.0, 1.0), 0.0), sight.start(0))
        for _ in range(2):  # a second look at the same instant sees nothing new
            seen = references(sight, commander)
            events = supervisor.check(sight, {"cf0": commander}, seen, lambda _: "something")
            kinds += [event.kind for event in events]
    assert kinds == ["hit", "battery empty", "hit", "battery empty"]


def random_sight(
    rng: np.random.Generator, time_ns: int, names: tuple[str, ...], courses: np.ndarray
) -> FleetObservation:
    """Drones near their courses, of which some fell, hit something, lost it or are low on power."""
    n = len(names)
    off = rng.normal(size=(n, 3))
    off *= (rng.choice([0.0, 0.7, 0.749, 0.751, 2.0], n) / np.linalg.norm(off, axis=1))[:, None]
    pos = np.where(np.isnan(courses[0, :, :3]), [0.0, 0.0, 1.0], courses[0, :, :3]) + off
    pos[:, 2] = np.where(rng.random(n) < 0.2, 0.01, pos[:, 2])
    roll = rng.choice([0.0, 0.5, 1.2, 3.0], n, p=[0.7, 0.1, 0.1, 0.1])
    quat = np.column_stack((np.sin(roll / 2), np.zeros((n, 2)), np.cos(roll / 2)))
    contact = np.zeros((n, 6))
    contact[:, 2] = rng.choice([0.0, 0.1], n, p=[0.7, 0.3])
    vel = rng.choice([0.0, 1.0], (n, 1)) * rng.normal(size=(n, 3))
    battery = np.column_stack((rng.choice([3.8, 2.9], n), np.ones(n), np.zeros(n)))
    ability = Ability(np.ones(n), 2.0, rng.choice([0.0, 0.1]))
    return FleetObservation(time_ns, names, pos, quat, vel, contact, battery, None, ability)


def test_a_fleet_is_told_the_same_as_if_each_of_its_drones_were_examined() -> None:
    """Drones are examined one by one if their courses seem to be far away, which is the judge."""
    rng, names = np.random.default_rng(0), tuple(f"cf{i}" for i in range(40))
    rules = Rules.of("cf2x_L250", FlightConfig())
    fleets = [{name: Commander(rules) for name in names} for _ in range(2)]
    supervisor, told = Supervisor(rules), set()
    sight = FleetObservation(
        *(0, names, np.zeros((40, 3)), np.tile((0.0, 0.0, 0.0, 1.0), (40, 1))),
        *(np.zeros((40, 3)), np.zeros((40, 6)), None),
    )
    for time_ns in range(10**8, 10**10, 10**8):
        place = tuple(rng.uniform((-3, -3, 0.5), (3, 3, 2)))
        for name in rng.choice(names, 10, replace=False).tolist():
            setpoint = (Pose(place, 1.0), Velocity(place, 0.0), Land(), Raw(np.ones(16)))
            kind = setpoint[rng.integers(len(setpoint))]
            for fleet in fleets:
                commander = fleet[name]
                if commander.state.needs_reset:
                    fleet[name] = commander = Commander(rules)
                with contextlib.suppress(ValueError):  # the same for both
                    commander.command(kind, sight.start(names.index(name)))
        for fleet in fleets:
            for commander in fleet.values():
                commander.update(time_ns, partial(sight.start, 0))
        courses = references(FleetObservation(time_ns, *[None] * 6), *fleets[0].values())
        sight = random_sight(rng, time_ns, names, courses)
        far = np.full_like(courses, 1e6)
        pushes = np.where(rng.random(40) < 0.2, 1.0, 0.0)
        for fleet in fleets:
            supervisor.note_contacts(pushes, names, sight.pos, fleet, lambda i: f"wall {i}")
        events = [
            supervisor.check(sight, fleet, seen, lambda i: f"wall {i}")
            for fleet, seen in zip(fleets, (courses, far))
        ]
        assert events[0] == events[1]
        told |= {event.kind for event in events[0]}
        for one, other in zip(fleets[0].values(), fleets[1].values()):
            assert (one.state, one.why, one.reported, one.hit, one.stuck_ns) == (
                *(other.state, other.why, other.reported, other.hit, other.stuck_ns),
            )
    assert told == {"crashed", "upside down", "off course", "hit", "battery empty"}
