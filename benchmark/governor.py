"""Tracking of the governor's courses by the five drone models: steps, turns, reversals.

    python -m benchmark.governor [cases]

Prints a Markdown table, by default of 1,000 random cases for each drone and wind. Each case
starts from hover and is one of these:

- step: a pose, 0.3 to 30 m away in any direction, with any turn;
- change: a second pose during the flight to the first;
- reversal: a velocity at the limit in any direction with any turn rate, then the opposite one, then
  zero, as if the pilot released the sticks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from crazyflow_ros.drones import Drone, load_drone
from crazyflow_ros.flight import (
    FlightConfig,
    Pose,
    Setpoint,
    Velocity,
)
from crazyflow_ros.flight.commander import Commander
from crazyflow_ros.flight.course import AXES, Course, Reference
from crazyflow_ros.flight.courses import state_commands
from crazyflow_ros.flight.plan import FlightState, Rules, StartState
from crazyflow_ros.scene.frames import yaw as yaw_of
from crazyflow_ros.sim import Sim
from crazyflow_ros.sim.pipeline import insert_before
from crazyflow_ros.sim.wind import Dryden

RATE = 100  # Hz, rate of commands
FREQ = 500  # Hz
WIND = 3.0  # m/s
SETTLING = {0.0: 3.0, WIND: 20.0}  # s of initial hovering by wind, for the integral to settle
LAST = 8.0  # s of final hovering
HOVER = 1.0  # s at the end in which hovering is evaluated
STREAM = 0.1  # s between two velocities of a stream
CASES = 1000  # per drone and wind
WORLDS = 250  # simulated together
COLUMNS = (
    *("drone", "wind", "command", "cases", "arrived"),
    *("overshoot", "off course", "tilt", "hovers within"),
)

TimedSetpoints = list[tuple[float, Setpoint]]
"""Setpoints and the times at which they are sent [s]."""


@dataclass(frozen=True)
class Case:
    """Setpoints sent to a hovering drone."""

    pos: np.ndarray
    """Initial position [m], shape (3,)."""
    yaw: float
    setpoints: TimedSetpoints


@dataclass(frozen=True)
class Flight:
    """Results of a case."""

    overshoot: float
    """Overshoot beyond the end of the course, m."""
    allowed: float
    """Allowed overshoot, m: 10 cm or 10 % of the distance."""
    tracking: float
    """Largest distance from the course, m."""
    tilt: float
    """Largest tilt, rad."""
    height: float
    """Lowest height above the floor, m."""
    error: float
    """Largest distance from the goal at the end, m."""
    turned: float
    """Error of the yaw at the end, rad."""


def step(rng: np.random.Generator, rules: Rules) -> Case:
    """Create a case with one pose."""
    del rules
    way = _way(rng)
    yaw, turn = rng.uniform(-np.pi, np.pi, 2)
    start = _above(way)
    return Case(start, yaw, [(0.0, Pose(start + way, yaw + turn))])


def change(rng: np.random.Generator, rules: Rules) -> Case:
    """Create a case with a pose that is replaced before it is reached."""
    first, second = _way(rng), _way(rng)
    yaw, *turns = rng.uniform(-np.pi, np.pi, 3)
    start = np.array([0.0, 0.0, 1.0 - min(0.0, first[2], first[2] + second[2])])
    start[2] += 2.0  # room to brake on the way down
    time = rng.uniform(0.1, 1.0) * (1 + np.linalg.norm(first) / rules.envelope.speed)
    setpoints: TimedSetpoints = [
        (0.0, Pose(start + first, yaw + turns[0])),
        (_rounded(time), Pose(start + first + second, yaw + turns[1])),
    ]
    return Case(start, yaw, setpoints)


def reversal(rng: np.random.Generator, rules: Rules) -> Case:
    """Create a case with full stick deflection one way, then the other."""
    envelope = rules.envelope
    level = rng.normal(size=2)
    level *= envelope.speed / np.linalg.norm(level)
    vel = np.array([*level, rng.uniform(-1, 1) * envelope.climb])
    rate = rng.choice((0.0, rng.uniform(-1, 1) * envelope.yaw_rate))
    setpoints: TimedSetpoints = []
    time = 0.0
    for sign in (1.0, -1.0):
        for _ in range(round(rng.uniform(0.2, 3.0) / STREAM)):
            setpoints.append((_rounded(time), Velocity(sign * vel, sign * rate)))
            time += STREAM
    return Case(np.array([0.0, 0.0, 8.0]), rng.uniform(-np.pi, np.pi), setpoints)


KINDS: dict[str, Callable[[np.random.Generator, Rules], Case]] = {
    "step": step,
    "change": change,
    "reversal": reversal,
}


def fly(
    drone: str, cases: Sequence[Case], wind: float = 0.0, settling: float | None = None
) -> list[Flight]:
    """Simulate cases, each in a separate world.

    Args:
        drone: Drone model.
        cases: The cases.
        wind: Mean wind, with Dryden gusts [m/s].
        settling: Duration of the initial hover [s].
    """
    rules = Rules.of(drone, FlightConfig())
    settling = SETTLING[wind] if settling is None else settling
    n = min(len(cases), WORLDS)
    sim = Sim(
        n,
        drone=drone,
        control="state",
        freq=FREQ,
        state_freq=RATE,
        true_mass=True,
        power_distribution="capped",
    )
    if wind:
        stage = Dryden(wind=(wind, 0.0))
        sim.step_pipeline = insert_before(sim.step_pipeline, "integrate", stage)
    courses = [_courses(case, rules) for case in cases]
    ends = np.array([begin + course.end for *_, (begin, course) in courses])
    order = np.argsort(ends)  # so that the cases of a batch take about equally long
    flights: dict[int, Flight] = {}
    for first in range(0, len(cases), n):
        batch = order[max(0, min(first, len(cases) - n)) :][:n]
        times = np.arange(0.0, ends[batch].max() + LAST, 1 / RATE)
        references = np.array([_references(courses[i], times) for i in batch])  # (W, 4, T, 4)
        pos, quat = _flown(sim, [cases[i] for i in batch], references, rules, settling)
        for k, i in enumerate(batch.tolist()):
            flights[i] = _flight(times, pos[:, k], quat[:, k], references[k], float(ends[i]))
    return [flights[i] for i in range(len(cases))]


def _flown(
    sim: Sim, cases: Sequence[Case], references: np.ndarray, rules: Rules, settling: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return positions (T, W, 3) and attitudes (T, W, 4) for references (W, 4, T, 4)."""
    sim.reset()
    pos = np.array([case.pos for case in cases], np.float32)[:, None]
    yaws = np.array([case.yaw for case in cases], np.float32)[:, None]
    quat = np.stack([0 * yaws, 0 * yaws, np.sin(yaws / 2), np.cos(yaws / 2)], axis=-1)
    rotor_vel = jnp.full_like(sim.data.states.rotor_vel, _hover_rpm(sim.drone))
    states = sim.data.states.replace(
        pos=jnp.asarray(pos), quat=jnp.asarray(quat), rotor_vel=rotor_vel
    )
    sim.data = sim.data.replace(states=states)
    n_times = references.shape[2]
    seen_pos = np.zeros((n_times, len(cases), 3))
    seen_quat = np.zeros((n_times, len(cases), 4))
    hovering = np.moveaxis(references[:, :, 0], 0, 1) * [[[1.0]], [[0.0]], [[0.0]], [[0.0]]]
    for _ in range(round(settling * RATE)):
        sim.state_control(state_commands(hovering, rules.drag)[:, None])
        sim.step(FREQ // RATE)
    for k in range(n_times):
        states = sim.data.states
        seen_pos[k], seen_quat[k] = states.pos[:, 0], states.quat[:, 0]
        now = np.moveaxis(references[:, :, k], 0, 1)
        sim.state_control(state_commands(now, rules.drag)[:, None])
        sim.step(FREQ // RATE)
    return seen_pos, seen_quat


def _hover_rpm(drone: str | tuple[str, ...]) -> float:
    """Return the rotor speed at hover, used as the initial value."""
    figures = load_drone(str(drone))
    thrust = -figures["mass"] * figures["gravity_vec"][2] / 4
    offset, slope, square = figures["rpm2thrust"]
    return float(np.roots([square, slope, offset - thrust]).max())


def _way(rng: np.random.Generator) -> np.ndarray:
    """Return a random displacement of 0.3 to 30 m."""
    direction = rng.normal(size=3)
    return direction / np.linalg.norm(direction) * np.exp(rng.uniform(np.log(0.3), np.log(30.0)))


def _above(way: np.ndarray) -> np.ndarray:
    """Return a start whose displacement ends at least 1 m above the floor."""
    return np.array([0.0, 0.0, 1.0 - min(0.0, way[2])])


def _rounded(time: float | np.floating) -> float:
    """Round a time to a tick of the controller."""
    return round(time * RATE) / RATE


def _courses(case: Case, rules: Rules) -> list[tuple[float, Course]]:
    """Return the courses that a commander plans for a case, with their start times [s]."""
    commander = Commander(rules)
    commander.state = FlightState.flying
    hovering = Reference.at_rest(case.pos, case.yaw)
    courses = []
    for time, setpoint in case.setpoints:
        commander.command(setpoint, StartState(round(time * 1e9), hovering))
        courses.append((time, _course(commander)))
    lapses = commander.order.deadline_ns() if commander.order else np.inf
    if np.isfinite(lapses):
        commander.update(int(lapses), lambda: StartState(int(lapses), hovering))
        courses.append((lapses * 1e-9, _course(commander)))
    return courses


def _course(commander: Commander) -> Course:
    if commander.order is None or commander.order.plan.course is None:
        raise RuntimeError("the commander refused what it was told")
    return commander.order.plan.course


def _references(courses: list[tuple[float, Course]], times: np.ndarray) -> np.ndarray:
    """Return position, velocity, acceleration and jerk, shape (4, T, 4)."""
    found = np.zeros((4, len(times), AXES))
    begins = np.array([begin for begin, _ in courses])
    last = np.searchsorted(begins, times + 1e-9, side="right") - 1
    for k, (begin, course) in enumerate(courses):
        rows = last == k
        found[:, rows] = course.along(times[rows] - begin)
    return found


def _flight(
    times: np.ndarray, pos: np.ndarray, quat: np.ndarray, reference: np.ndarray, end: float
) -> Flight:
    path = reference[0, :, :3]
    goal, start = path[-1], path[0]
    before = path[np.searchsorted(times, end - 0.4)]
    way = goal - before
    distance = float(np.linalg.norm(goal - start))
    ahead = way / max(float(np.linalg.norm(way)), 1e-9)
    late = times > end - 0.4
    beyond = ((pos[late] - goal) @ ahead).max(initial=0.0)
    upright = 1 - 2 * (quat[:, 0] ** 2 + quat[:, 1] ** 2)
    hovers = (times >= end + LAST - HOVER) & (times <= end + LAST)
    turn = float(yaw_of(quat[hovers][-1])) - reference[0, -1, 3]
    return Flight(
        overshoot=float(beyond),
        allowed=max(0.1, 0.1 * distance),
        tracking=float(np.linalg.norm(pos - path, axis=1).max()),
        tilt=float(np.arccos(np.clip(upright.min(), -1, 1))),
        height=float(pos[:, 2].min()),
        error=float(np.linalg.norm(pos[hovers] - goal, axis=1).max()),
        turned=abs((turn + np.pi) % (2 * np.pi) - np.pi),
    )


def main() -> None:
    """Run all cases."""
    n = int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdigit() else CASES
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    for drone in Drone:
        rules = Rules.of(drone, FlightConfig())
        for wind in SETTLING:
            rng = np.random.default_rng(16)
            kinds = [list(KINDS)[i % len(KINDS)] for i in range(n)]
            flights = fly(drone, [KINDS[kind](rng, rules) for kind in kinds], wind)
            for kind in KINDS:
                flown = [flight for k, flight in zip(kinds, flights) if k == kind]
                print(row(drone, wind, kind, flown), flush=True)


def row(drone: str, wind: float, kind: str, flights: list[Flight]) -> str:
    """Format a row of the table."""
    arrived = [f for f in flights if f.error < 0.1 and f.turned < 0.1 and f.height > 0.05]
    overshot = sum(f.overshoot > f.allowed for f in flights)
    worst = max(f.overshoot for f in flights)
    return (
        f"| {drone} | {wind:g} m/s | {kind} | {len(flights)} | {len(arrived)} "
        f"| {100 * worst:.1f} cm, {overshot} above 10 % | {max(f.tracking for f in flights):.2f} m "
        f"| {np.degrees(max(f.tilt for f in flights)):.0f} deg "
        f"| {100 * max(f.error for f in flights):.1f} cm |"
    )


if __name__ == "__main__":
    main()
