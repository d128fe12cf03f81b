"""Streamed setpoints: closed forms, refusals, and drones whose program falls silent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from flight_helpers import DRONE, airborne, course_of
from scipy.spatial.transform import Rotation

from crazyflow_ros.control import Control
from crazyflow_ros.flight import (
    AltitudeHold,
    AttitudeThrust,
    FlightConfig,
    FlightEvent,
    FlightState,
    FullState,
    GoTo,
    HoldHeight,
    Hover,
    Land,
    LevelOut,
    NotifySetpointsStop,
    Pose,
    Position,
    Raw,
    Setpoint,
    Stop,
    Takeoff,
    VelocityWorld,
)
from crazyflow_ros.flight.plan import Attitude, Rules, StartState
from crazyflow_ros.flight.pose_and_velocity import LAPSE_MARGIN
from crazyflow_ros.flight.setpoint import CLEARANCE
from crazyflow_ros.runtime import (
    PhysicsThread,
    ResetScope,
    SimulationConfig,
    Snapshot,
    TimedWrench,
)
from crazyflow_ros.scene.frames import yaw

RULES = Rules.of(DRONE, FlightConfig())
REST = RULES.rest_height
FREQ = 500
T = 60.0  # s
ZEROS = np.zeros(3)
NAMES = ("cf0", "cf1")
AT_A_METRE = {"kind": "HoldHeight", "height": 1.0}


def standing(state: FlightState = FlightState.idle) -> StartState:
    return replace(airborne((0.5, -0.5, REST), 0.4), state=state)


def test_a_full_state_goes_to_the_controller_as_it_is() -> None:
    quat = Rotation.from_euler("xyz", (0.3, -0.2, 0.7)).as_quat()
    told = FullState((1, 2, 3), (0.4, 0.5, 0.6), (7, 8, 9), 2 * quat, (0.1, 0.2, 0.3))
    plan = told.plan(airborne((0, 0, 1)), RULES)
    expected = [1, 2, 3, 0.4, 0.5, 0.6, 7, 8, 9, *quat, 0.1, 0.2, 0.3]
    np.testing.assert_allclose(plan.command, expected, atol=1e-12)
    by_yaw = FullState(ZEROS, ZEROS, ZEROS, 0.7).plan(airborne((0, 0, 1)), RULES).command
    assert by_yaw is not None and yaw(by_yaw[9:13]) == pytest.approx(0.7)
    assert plan.timeout == 0.5 and not plan.bounded


def test_an_attitude_turns_from_the_heading_that_there_was() -> None:
    plan = AttitudeThrust(0.1, -0.2, 3.0, 0.3).plan(airborne((0, 0, 1), 40.0), RULES)
    assert plan.held is not None and plan.timeout == 0.5 and not plan.bounded
    roll, pitch, heading, thrust = plan.held.command(0.4)[:4]
    assert (roll, pitch, thrust) == (0.1, -0.2, 0.3)
    assert heading == pytest.approx(40.0 - 12 * np.pi + 1.2)


def test_an_axis_with_a_rate_has_no_angle() -> None:
    told = AttitudeThrust(3.0, -0.2, 0.0, 0.3, roll_is_rate=True)
    attitude = told.plan(airborne((0, 0, 1), 0.0), RULES).held
    assert attitude is not None
    np.testing.assert_allclose(attitude.command(0.4), (0, -0.2, 0, 0.3, 3.0, 0, 0, 1, 0))
    AttitudeThrust(300.0, 0.0, 0.0, 0.3).check(Control.attitude)
    with pytest.raises(ValueError, match="rates need control=state, the drones have attitude"):
        told.check(Control.attitude)
    with pytest.raises(ValueError, match="roll rate must be within"):
        AttitudeThrust(1e6, 0.0, 0.0, 0.3, roll_is_rate=True)


def test_body_rates_of_an_attitude_are_those_of_its_rotation() -> None:
    attitude, h = Attitude(0.4, -0.3, 0.2, 1.7, 0.3), 1e-6

    def rotation(t: float) -> Rotation:
        return Rotation.from_euler("xyz", attitude.command(t)[:3])

    rates = (rotation(0.5 - h).inv() * rotation(0.5 + h)).as_rotvec() / (2 * h)
    np.testing.assert_allclose(attitude.command(0.5)[4:7], rates, atol=1e-6)


def test_hover_reaches_its_velocity_and_height_along_a_bounded_course() -> None:
    start = airborne((1.0, 2.0, 1.0), np.pi / 2)
    plan = Hover((0.4, 0.1), 0.0, 1.3).plan(start, replace(RULES, velocity_timeout=5.0))
    assert plan.timeout == 5.0 and plan.bounded and plan.during is FlightState.flying
    course, envelope = course_of(plan), RULES.envelope
    end = course.at(5.0)
    np.testing.assert_allclose(end.vel[:3], (-0.1, 0.4, 0.0), atol=1e-9)
    assert end.pos[2] == pytest.approx(1.3) and end.pos[3] == pytest.approx(np.pi / 2)
    _, vel, acc = course.along(np.linspace(0.0, 5.0 + LAPSE_MARGIN, 500))[:3]
    assert np.hypot(*vel[:, :2].T).max() <= envelope.speed + 1e-9
    assert np.abs(vel[:, 2]).max() <= envelope.climb + 1e-9
    assert np.hypot(*acc[:, :2].T).max() <= envelope.acceleration + 1e-9
    assert np.abs(acc[:, 2]).max() <= envelope.lift + 1e-9


def test_hover_takes_off_straight_up_and_goes_on_by_itself() -> None:
    plan = Hover((0.5, 0.0), 0.3, 0.8).plan(standing(), RULES)
    course = course_of(plan)
    assert plan.during is FlightState.taking_off and plan.timeout == np.inf
    np.testing.assert_allclose(course.at(course.end).pos, (0.5, -0.5, 0.8, 0.4))


@pytest.mark.parametrize("height", [0.0, -1.0, REST + 0.01])
def test_a_height_on_the_floor_lands(height: float) -> None:
    told = Hover((0.5, 0.0), 0.0, height)
    down = course_of(told.plan(airborne((0, 0, REST + 0.5 * CLEARANCE)), RULES))
    np.testing.assert_allclose(down.at(0.5).vel[:2], 0.0, atol=1e-12)
    landed = told.plan(airborne((0, 0, REST + 0.01)), RULES)
    assert (landed.during, landed.after) == (FlightState.landing, FlightState.landed)
    for state in (FlightState.idle, FlightState.landed):
        assert told.plan(standing(state), RULES).during is state


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Hover((0, np.nan), 0.0, 1.0), "velocity must be 2 finite numbers"),
        (lambda: Hover((0, 2e3), 0.0, 1.0), "velocity must be within 1000 m/s"),
        (lambda: Hover((0, 0), np.inf, 1.0), "yaw rate must be finite, got inf"),
        (lambda: Hover((0, 0), 0.0, 1e5), "height must be within 10000 m, got 100000"),
        (lambda: FullState(ZEROS, ZEROS, (0, 0, 1e5), 0.0), "acceleration must be within"),
        (lambda: FullState(ZEROS, ZEROS, ZEROS, np.zeros(4)), "attitude is the zero quaternion"),
        (lambda: FullState(ZEROS, ZEROS, ZEROS, np.nan), "yaw must be finite, got nan"),
        (lambda: FullState(ZEROS, ZEROS, ZEROS, 0.0, (0, 0, 2e3)), "body rates must be within"),
        (lambda: AttitudeThrust(np.nan, 0.0, 0.0, 0.0), "roll must be finite, got nan"),
        (lambda: AttitudeThrust(0.0, 2e3, 0.0, 0.0), "pitch must be within 1000 rad, got 2000"),
        (lambda: AttitudeThrust(0.0, 0.0, 0.0, -0.1), "thrust must not be negative, got -0.1 N"),
        (lambda: LevelOut(-1.0), "thrust must not be negative, got -1 N"),
        (lambda: HoldHeight(np.inf), "height must be finite, got inf"),
        (lambda: Position(ZEROS, np.nan), "yaw must be finite, got nan"),
        (lambda: VelocityWorld(ZEROS, 2e3), "yaw rate must be within 1000 rad/s"),
        (lambda: AltitudeHold(1.6, 0.0, 0.0, 1.0), "roll must be within 1.57 rad, got 1.6"),
        (lambda: AltitudeHold(0.0, 0.0, 0.0, 1e5), "height must be within 10000 m, got 100000"),
    ],
)
def test_unusable_setpoints_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_who_can_follow_them() -> None:
    for setpoint in (Hover((0, 0), 0.0, 1.0), FullState(ZEROS, ZEROS, ZEROS, 0.0)):
        setpoint.check(Control.state)
        with pytest.raises(ValueError, match="needs control=state, the drones have attitude"):
            setpoint.check(Control.attitude)
    for setpoint in (AttitudeThrust(0, 0, 0, 0.3), LevelOut(0.3)):
        setpoint.check(Control.state)
        setpoint.check(Control.attitude)
        with pytest.raises(ValueError, match="needs control=state or control=attitude, the drones"):
            setpoint.check(Control.rotor_vel)


# In flight.


@pytest.fixture(scope="module")
def thread() -> Iterator[PhysicsThread]:
    config = SimulationConfig(start_paused=True, real_time_factor=0.0, true_mass=True)
    physics = PhysicsThread(config, NAMES)
    physics.start()
    yield physics
    physics.stop()
    assert physics.failed is None and not physics.statistics().failures


@pytest.fixture
def physics(thread: PhysicsThread) -> PhysicsThread:
    """Both drones hover at 1 m, and cf1 goes on to do so. At a tick at which controllers run."""
    thread.state.reset().result(T)
    thread.fly({name: Takeoff(1.0) for name in NAMES}).result(T)
    thread.step(4 * FREQ - thread.snapshot.tick % thread.control_period).result(T)
    return thread


@pytest.fixture
def events(thread: PhysicsThread) -> list[FlightEvent]:
    EVENTS.clear()
    return EVENTS


EVENTS: list[FlightEvent] = []


@pytest.fixture(scope="module", autouse=True)
def watch(thread: PhysicsThread) -> None:
    thread.news.on_flight_event(EVENTS.append)


def fly(physics: PhysicsThread, told: Setpoint, seconds: float) -> Snapshot:
    """Stream a setpoint at 50 Hz; the last one is 20 ms old in the end."""
    for _ in range(round(seconds * 50)):
        assert not physics.fly({"cf0": told}).result(T).refused
        now = physics.step(FREQ // 50).result(T)
    return now


def tilt(now: Snapshot) -> float:
    x, y = now.quat[0, :2]
    return float(np.arccos(1 - 2 * (x * x + y * y)))


def test_level_hover_thrust_keeps_a_drone_level_and_at_its_height(physics: PhysicsThread) -> None:
    before = physics.snapshot
    now = fly(physics, AttitudeThrust(0.0, 0.0, 0.0, RULES.weight), 2.0)
    assert tilt(now) < 0.01
    np.testing.assert_allclose(now.pos[0], before.pos[0], atol=0.05)
    assert yaw(now.quat[0]) == pytest.approx(yaw(before.quat[0]), abs=0.01)
    np.testing.assert_allclose(now.pos[1], before.pos[1], atol=0.01)


def test_it_tilts_and_turns_as_it_is_told(physics: PhysicsThread) -> None:
    heading = float(yaw(physics.snapshot.quat[0]))
    now = fly(physics, AttitudeThrust(0.1, 0.15, 0.0, RULES.weight), 0.5)
    assert now.vel[0, 0] > 0.3 and now.vel[0, 1] < -0.2  # ahead and to the right
    now = fly(physics, AttitudeThrust(0.1, 0.15, 1.0, RULES.weight), 1.0)
    roll, pitch, turned = Rotation.from_quat(now.quat[0]).as_euler("xyz")
    assert (roll, pitch) == pytest.approx((0.1, 0.15), abs=0.02)
    assert turned - heading == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize(("controller", "rate"), [("pid", 9.0), ("mellinger", 1.0)])
def test_rates_are_followed_as_in_the_firmware(
    physics: PhysicsThread, controller: str, rate: float
) -> None:
    """PID flies a full roll; Mellinger's attitude term levels the drone meanwhile."""
    physics.world.set_controller(controller).result(T)  # that of the other tests comes last
    fly(physics, AttitudeThrust(0.0, 0.0, 0.0, 2.0 * RULES.weight), 2.5)
    rolls = AttitudeThrust(rate, 0.0, 0.0, RULES.weight, True, True)
    most, turned = 0.0, 0.0
    for _ in range(40):
        now = fly(physics, rolls, 0.02)
        most, turned = max(most, tilt(now)), turned + now.ang_vel[0, 0] / 50
    if controller == "pid":
        assert most > 3.0 and turned == pytest.approx(0.8 * rate, rel=0.1)
    else:
        assert 0.1 < most < 0.3 and turned == pytest.approx(tilt(now), abs=0.02)
    fly(physics, AttitudeThrust(0.0, 0.0, 0.0, 1.3 * RULES.weight), 1.6)
    assert tilt(physics.snapshot) < 0.1  # nothing has wound up


def test_rates_need_rotors() -> None:
    physics = PhysicsThread(SimulationConfig(start_paused=True, dynamics="so_rpy"), NAMES)
    rolls = AttitudeThrust(1.0, 0.0, 0.0, 0.3, roll_is_rate=True)
    with pytest.raises(ValueError, match="need dynamics first_principles, got so_rpy"):
        physics.fly({"cf0": rolls})


def test_attitudes_are_followed_as_in_attitude_control(thread: PhysicsThread) -> None:
    """The same attitude, the same flight, whichever controller is passed by."""
    config = SimulationConfig(start_paused=True, real_time_factor=0.0, control=Control.attitude)
    other, ends = PhysicsThread(config, NAMES), []
    other.start()
    for physics in (thread, other):
        physics.state.reset(ResetScope.all).result(T)
        physics.step(4).result(T)  # to a tick at which the controllers of both run
        ends.append(fly(physics, AttitudeThrust(0.05, -0.1, 0.0, 1.3 * RULES.weight), 1.5))
    other.stop()
    assert other.failed is None
    np.testing.assert_allclose(ends[0].pos[0], ends[1].pos[0], atol=1e-4)
    np.testing.assert_allclose(ends[0].quat[0], ends[1].quat[0], atol=1e-4)
    assert ends[0].pos[0, 2] > 1.0


@pytest.mark.parametrize(
    ("told", "then", "rises"),
    [
        (
            AttitudeThrust(0.2, 0.0, 1.0, 1.1 * RULES.weight),
            {"kind": "LevelOut", "thrust": 1.1 * RULES.weight},
            0.981,
        ),
        (FullState((-0.4, -0.5, 1.0), (0.2, 0, 0), ZEROS, 0.0), AT_A_METRE, 0.0),
        (Position((0.0, -0.5, 1.0), 0.0), AT_A_METRE, 0.0),
        (VelocityWorld((0.1, 0.0, 0.0), 0.0), {"kind": "HoldHeight", "climb": 0.0}, 0.0),
    ],
    ids=lambda x: type(x).__name__ if isinstance(x, Setpoint) else "",
)
def test_a_program_that_falls_silent(
    physics: PhysicsThread,
    events: list[FlightEvent],
    told: Setpoint,
    then: dict[str, object],
    rises: float,
) -> None:
    """Level after 0.5 s, rotors stopped after 2 s, on exact ticks."""
    fly(physics, told, 0.4)
    begin = physics.snapshot.tick - FREQ // 50
    physics.step(begin + FREQ // 2 - 1 - physics.snapshot.tick).result(T)
    assert followed(physics)["kind"] == type(told).__name__
    physics.step(2).result(T)
    found = followed(physics)
    assert {name: found[name] for name in then} == then
    now = physics.step(FREQ).result(T)
    turns = 0.1 if isinstance(told, FullState) else 0.05  # rad/s; it still brakes
    assert tilt(now) < 0.02 and abs(now.ang_vel[0]).max() < turns
    assert 0.5 * rises - 0.05 < now.acc[0, 2] < rises + 0.05  # there is drag
    physics.step(begin + 2 * FREQ - 1 - physics.snapshot.tick).result(T)
    assert physics.commands.states["cf0"] == "flying" and not events
    physics.step(2).result(T)
    assert physics.commands.states == {"cf0": "landed", "cf1": "flying"}
    (event,) = events
    assert (event.drone, event.kind) == ("cf0", "no setpoint")
    assert event.text == "no setpoint for 2 s: rotors stopped"
    assert event.time_ns == (begin + 2 * FREQ) * 1_000_000_000 // FREQ
    now = physics.step(2 * FREQ).result(T)
    assert now.rotor_vel[0].max() < 300 and len(events) == 1


def followed(physics: PhysicsThread) -> dict[str, object]:
    """The setpoint of cf0, as a checkpoint has it."""
    setpoint: dict[str, object] = (
        physics.state.checkpoint().result(T).about["orders"]["cf0"]["order"]["setpoint"]
    )
    return setpoint


@pytest.mark.parametrize(
    ("told", "climb"),
    [
        (Position((0.0, 0.0, 1.4), 0.0), 0.0),
        (VelocityWorld((0.8, 0.0, -0.3), 0.0), -0.3),
        (VelocityWorld((0.8, 0.0, 0.4), 0.0), 0.4),
    ],
)
def test_a_drone_with_a_load_keeps_its_height_when_its_program_falls_silent(
    physics: PhysicsThread, told: Setpoint, climb: float
) -> None:
    """As the firmware does, with a load of which nobody knows: weight alone would let it fall."""
    weight = (0.0, 0.0, -0.15 * RULES.weight)
    physics.apply_wrench("cf0", TimedWrench(weight, (0.0, 0.0, 0.0), np.inf))
    physics.step(10 * FREQ).result(T)
    fly(physics, told, 3.0 if climb == 0 else 0.6)
    before = physics.step(FREQ // 2).result(T)
    now = physics.step(FREQ).result(T)
    assert followed(physics)["kind"] == "HoldHeight"
    assert now.vel[0] == pytest.approx((0.0, 0.0, climb), abs=0.06)
    assert now.pos[0, 2] - before.pos[0, 2] == pytest.approx(climb, abs=0.1)


def test_a_falling_program_lets_a_drone_come_down_to_the_floor_and_no_farther() -> None:
    told = VelocityWorld((0.3, 0.0, -0.6), 0.0).lapsed()
    plan = told.plan(airborne((0.0, 0.0, REST + 0.3)), RULES)
    course = course_of(plan)
    heights = course.along(np.linspace(0.0, 1.5, 300))[0, :, 2]
    assert heights.min() == pytest.approx(REST, abs=1e-6) and plan.timeout == 1.5
    assert isinstance(told.lapsed(), Stop)


def test_the_planner_waits_until_no_more_setpoints_come(physics: PhysicsThread) -> None:
    hover = Hover((0.3, 0.0), 0.0, 1.2)
    fly(physics, hover, 1.0)
    waits = "cf0: it follows streamed setpoints: call notify_setpoints_stop first"
    for _ in range(2):
        for told in (Land(), GoTo((0, 0, 1), 0.0)):
            assert physics.fly({"cf0": told}).result(T).refused == [waits]
        now = physics.step(2 * FREQ).result(T)  # silent, it hovers
    assert abs(now.vel[0]).max() < 0.05 and now.pos[0, 2] == pytest.approx(1.2, abs=0.03)
    physics.fly({"cf0": NotifySetpointsStop()}).result(T)
    assert not physics.fly({"cf0": GoTo((0.0, 0.0, 0.8), 0.0)}).result(T).refused
    now = physics.step(6 * FREQ).result(T)
    np.testing.assert_allclose(now.pos[0], (0.0, 0.0, 0.8), atol=0.03)


@pytest.mark.parametrize("told", [Pose((0, 0, 1), 0.0), Raw([0, 0, 1, *[0] * 10])])
def test_what_is_commanded_by_topic_wins_at_once(physics: PhysicsThread, told: Setpoint) -> None:
    fly(physics, AttitudeThrust(0.0, 0.0, 0.0, RULES.weight), 0.1)
    assert not physics.fly({"cf0": told}).result(T).refused
    assert not physics.fly({"cf0": Land()}).result(T).refused


def test_a_full_state_that_is_streamed_is_followed(physics: PhysicsThread) -> None:
    x, y, _ = physics.snapshot.pos[0]
    now = fly(physics, FullState((x + 0.2, y, 1.1), ZEROS, ZEROS, 0.5), 4.0)
    np.testing.assert_allclose(now.pos[0], (x + 0.2, y, 1.1), atol=0.03)
    assert yaw(now.quat[0]) == pytest.approx(0.5, abs=0.02)


def test_a_position_is_flown_to_and_landed_at_however_often_it_is_repeated(
    physics: PhysicsThread,
) -> None:
    """Steps of more than a metre, which flip a drone with the bare position controller."""
    now = fly(physics, Position((1.5, -1.0, 1.4), 1.0), 5.0)
    np.testing.assert_allclose(now.pos[0], (1.5, -1.0, 1.4), atol=0.03)
    assert yaw(now.quat[0]) == pytest.approx(1.0, abs=0.02)
    heights = [fly(physics, Position((1.5, -1.0, 0.0), 0.0), 0.1).pos[0, 2] for _ in range(50)]
    assert np.diff(heights).max() < 0.02  # it settles, but never climbs again
    assert physics.commands.states["cf0"] == "landed" and heights[-1] < REST + 0.03
    assert np.ptp(heights[-10:]) < 1e-3


def test_a_velocity_in_the_world_does_not_turn_with_the_drone(physics: PhysicsThread) -> None:
    before = physics.snapshot.pos[0]
    now = fly(physics, VelocityWorld((0.4, -0.3, 0.1), 1.5), 4.0)
    np.testing.assert_allclose(now.vel[0], (0.4, -0.3, 0.1), atol=0.03)
    assert abs(now.ang_vel[0, 2] - 1.5) < 0.05
    away = (now.pos[0] - before)[:2]
    assert away @ (0.3, 0.4) == pytest.approx(0.0, abs=0.05)
    now = fly(physics, VelocityWorld((0.0, 0.0, -0.5), 0.0), 5.0)
    assert physics.commands.states["cf0"] == "landed" and now.pos[0, 2] < REST + 0.03
    assert fly(physics, VelocityWorld((0.4, 0.0, 0.0), 0.0), 0.2).rotor_vel[0].max() < 300
    assert fly(physics, VelocityWorld((0.4, 0.0, 0.4), 0.0), 2.0).pos[0, 2] > 0.5


def test_a_tilt_at_a_height_moves_the_drone_its_way(physics: PhysicsThread) -> None:
    start = physics.snapshot.pos[0]
    now = fly(physics, AltitudeHold(0.0, 0.02, 0.0, 1.2), 3.0)
    balance = 9.81 * np.tan(0.02) / RULES.drag[0]  # of the tilt and drag
    assert now.vel[0, 0] == pytest.approx(min(balance, RULES.envelope.speed), rel=0.05)
    assert now.pos[0, 2] == pytest.approx(1.2, abs=0.03) and abs(now.pos[0, 1] - start[1]) < 0.02
    now = fly(physics, AltitudeHold(0.02, 0.0, 0.0, climb=0.2), 3.0)
    assert now.vel[0, 1] < -0.2 and now.vel[0, 2] == pytest.approx(0.2, abs=0.02)


def test_no_thrust_leaves_a_drone_on_the_floor_alone(physics: PhysicsThread) -> None:
    physics.state.reset().result(T)
    fly(physics, AttitudeThrust(0.0, 0.0, 0.0, 0.0), 0.1)
    assert physics.commands.states.get("cf0", "idle") == "idle"
    assert not physics.fly({"cf0": Takeoff(1.0)}).result(T).refused


@pytest.mark.parametrize("n_ticks", [1, 7, 100])
def test_they_give_the_same_bits_in_any_steps(physics: PhysicsThread, n_ticks: int) -> None:
    """With a checkpoint taken in between."""
    start = physics.state.checkpoint().result(T)
    ends = []
    for steps in (700, n_ticks):
        physics.state.restore(start).result(T)
        physics.fly({"cf0": AttitudeThrust(0.1, 0.05, 2.0, 0.3), "cf1": Hover((1, 0), 1.0, 1.5)})
        for i in range(0, 1400, steps):
            now = physics.step(min(steps, 1400 - i)).result(T)
            if i == 700:
                physics.state.restore(physics.state.checkpoint().result(T)).result(T)
        ends.append(now)
    for name in ("pos", "quat", "vel", "ang_vel", "rotor_vel"):
        np.testing.assert_array_equal(getattr(ends[0], name), getattr(ends[1], name))
