"""The commander of a drone: its states against a small table, and what it does about what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from flight_helpers import DRONE, course_of
from hypothesis import given, settings
from hypothesis import strategies as st

from crazyflow_ros.flight import (
    Arm,
    AttitudeThrust,
    Emergency,
    FlightConfig,
    FlyTrajectory,
    FullState,
    GoTo,
    HoldHeight,
    Hover,
    HoverOn,
    Land,
    LevelOut,
    NotifySetpointsStop,
    PolynomialTrajectory,
    Pose,
    Raw,
    Setpoint,
    Spiral,
    Stop,
    Takeoff,
    Trajectory,
    Velocity,
)
from crazyflow_ros.flight import FlightState as Is
from crazyflow_ros.flight.commander import Commander
from crazyflow_ros.flight.course import Reference
from crazyflow_ros.flight.plan import Rules, StartState
from crazyflow_ros.flight.setpoint import CLEARANCE, TOUCHDOWN, Brake
from crazyflow_ros.flight.tracking import is_lost

RULES = Rules.of(DRONE, FlightConfig())
REST = RULES.rest_height
SECOND = 1_000_000_000
FALLING = Velocity((0.0, 0.0, -0.5), 0.0)
FULL = FullState(np.zeros(3), np.zeros(3), np.zeros(3), 0.5)
LEVEL = AttitudeThrust(0.0, 0.0, 0.0, 0.3)
WAVE = PolynomialTrajectory([2.0], np.zeros((1, 4, 8)))


class Pilot:
    """A commander, and a drone that is where it is to be."""

    def __init__(self, rules: Rules = RULES) -> None:
        self.commander = Commander(rules)
        self.time_ns = SECOND
        self.reference = Reference.at_rest((0.0, 0.0, REST), 0.0)

    @property
    def state(self) -> Is:
        return self.commander.state

    def tell(self, setpoint: Setpoint) -> None:
        """Now; what is refused raises ValueError."""
        self.commander.command(setpoint, self.motion())

    def motion(self) -> StartState:
        """How the drone moves."""
        return StartState(self.time_ns, self.reference, self.state)

    def wait(self, seconds: float, *, look: float = 0.25) -> None:
        """Time passes, in which the commander is asked now and then."""
        end = self.time_ns + round(seconds * SECOND)
        while self.time_ns < end:
            self.time_ns = min(end, self.time_ns + round(look * SECOND))
            self.look()

    def look(self) -> None:
        """See what is to be done now."""
        order = self.commander.order
        if order is not None and (now := order.reference(self.time_ns)) is not None:
            self.reference = now
        self.commander.update(self.time_ns, self.motion)

    def fly(self, height: float = 1.0) -> Pilot:
        """Take off."""
        self.tell(Takeoff(height))
        self.wait(10.0)
        return self


# For each command the state after it, by the one before; those that lack are refused.
AIR = (Is.taking_off, Is.flying, Is.landing)
STANDS = (Is.idle, Is.landed)
FLY = dict.fromkeys(AIR, Is.flying)
TABLE: dict[str, tuple[Setpoint, dict[Is, Is]]] = {
    "takeoff": (Takeoff(1.0), dict.fromkeys(STANDS, Is.taking_off)),
    "land": (Land(), {Is.taking_off: Is.landing, Is.flying: Is.landing}),
    "go_to": (GoTo((1.0, 0.0, 1.5), 0.3), FLY),
    "spiral": (Spiral(2.0, 0.5, 0.3, 0.2), FLY),
    "trajectory": (FlyTrajectory(WAVE), FLY),
    "pose": (Pose((0.5, 0.5, 1.0), 0.5), FLY | dict.fromkeys(STANDS, Is.taking_off)),
    "pose on the floor": (Pose((1, 1, 0), 0.0), FLY | dict.fromkeys(STANDS, Is.taking_off)),
    "stick": (
        Velocity((0.5, 0.0, 0.1), 0.5),
        FLY | dict.fromkeys((*STANDS, Is.taking_off), Is.taking_off),
    ),
    "no stick": (
        Velocity((0.0, 0.0, 0.0), 0.0),
        FLY | {Is.taking_off: Is.taking_off} | {state: state for state in STANDS},
    ),
    "stop": (Stop(), dict.fromkeys((*AIR, *STANDS), Is.landed)),
    "arm": (Arm(True), {state: state for state in (*AIR, *STANDS)}),
    "disarm": (Arm(False), dict.fromkeys((*AIR, *STANDS), Is.landed)),
    "raw": (Raw(np.zeros(16)), dict.fromkeys((*AIR, *STANDS), Is.flying)),
    "hover": (
        Hover((0.4, 0.1), 0.3, 0.8),
        FLY | dict.fromkeys((*STANDS, Is.taking_off), Is.taking_off),
    ),
    "full state": (FULL, dict.fromkeys((*AIR, *STANDS), Is.flying)),
    "attitude": (LEVEL, dict.fromkeys((*AIR, *STANDS), Is.flying)),
    "notify": (NotifySetpointsStop(), {state: state for state in (*AIR, *STANDS)}),
    "emergency": (Emergency(), dict.fromkeys(Is, Is.locked)),
}
NEEDS_ARMING = set(TABLE) - {"arm", "disarm", "stop", "emergency", "notify"}
LAPSE = {"full state", "attitude"}  # and stop the rotors
STREAMED = {*LAPSE, "hover"}
HIGH_LEVEL = {"takeoff", "land", "go_to", "spiral", "trajectory"}
IN_THE_END = {Is.taking_off: Is.flying, Is.landing: Is.landed}
WAITS = {"wait": 60.0, "blink": 0.01}


@settings(max_examples=60)
@given(st.lists(st.sampled_from([*TABLE, *TABLE, *WAITS, "wait", "come down"]), max_size=15))
def test_any_commands_lead_through_the_states_of_the_table(told: list[str]) -> None:
    pilot, state, armed, lands, follows = Pilot(), Is.idle, True, False, ""
    for name in told:
        before = pilot.reference
        if name == "come down":
            if state is Is.flying:
                pilot.tell(Pose((0.0, 0.0, 1.0), 0.0))
                pilot.wait(60.0)
                for _ in range(40):
                    if pilot.state is Is.flying:
                        pilot.tell(FALLING)
                    pilot.wait(0.3)
                state = Is.landed
        elif name in WAITS:
            pilot.wait(WAITS[name])
            if name == "wait":
                stops = lands or (follows in LAPSE and not state.stands)
                state = Is.landed if stops else IN_THE_END.get(state, state)
                lands = False
        else:
            setpoint, after = TABLE[name]
            expected = after.get(state)
            if state in STANDS and not armed and name in NEEDS_ARMING:
                expected = None
            in_air = not (state.stands or state.needs_reset)
            order = pilot.commander.order
            if order is not None and order.setpoint is setpoint and name.startswith("pose"):
                expected = state  # it goes on as before
            if name in HIGH_LEVEL and follows in STREAMED and in_air:
                expected = None
            if expected is None:
                order = pilot.commander.order
                with pytest.raises(ValueError, match=r"it is|it follows|cannot|needs"):
                    pilot.tell(setpoint)
                assert pilot.commander.order is order
            else:
                pilot.tell(setpoint)
                pilot.look()
                on_floor = before.pos[2] == REST  # it has not risen yet
                changes = name != "arm"
                if name == "notify":
                    changes = in_air and follows in (*STREAMED, "raw")
                if "arm" in name:
                    armed = name == "arm"
                if changes:
                    lands = name == "pose on the floor" or (
                        name == "no stick" and state is Is.flying and on_floor
                    )
                    low = before.pos[2] < REST + TOUCHDOWN
                    if low and follows in (*LAPSE, "raw"):  # it comes to rest by itself
                        before = Reference.at_rest(before.pos[:3], before.pos[3])
                    state, follows = Is.flying if name == "notify" else expected, name
                    if name == "notify" and low:
                        assert pilot.state in (Is.landing, Is.landed) or before.vel[2] > 0
                        state = pilot.state
                    if name == "land" and on_floor and not before.vel.any():
                        state = Is.landed
                    assert_steady(before, pilot, name)
        assert pilot.state is state, name
        if state.stands:  # it has fallen, if it did not stand
            x, y, _, yaw = pilot.reference.pos
            pilot.reference = Reference.at_rest((x, y, REST), yaw)
        assert (pilot.commander.order is None) == (state.stands or state.needs_reset)
        assert pilot.commander.armed == armed


def assert_steady(before: Reference, pilot: Pilot, name: str) -> None:
    """A course goes on from where the drone was to be, without a jolt."""
    order = pilot.commander.order
    if order is not None and order.plan.course is not None:
        now = order.plan.course.at(order.seconds(pilot.time_ns))
        np.testing.assert_allclose(now.pos[:3], before.pos[:3], atol=1e-9)
        # A pose lets a drone rise before it moves across or turns.
        rises = "pose" in name and before.pos[2] < REST + CLEARANCE
        if name != "spiral" and not rises:
            axes = slice(3 if name == "go_to" else 4)  # go_to turns on as the firmware does
            np.testing.assert_allclose(now.vel[axes], before.vel[axes], atol=1e-9)
            np.testing.assert_allclose(now.acc[axes], before.acc[axes], atol=1e-6)


def test_a_velocity_that_is_repeated_lasts_and_one_that_is_not_ends_in_hovering() -> None:
    pilot = Pilot().fly()
    for _ in range(20):
        pilot.tell(Velocity((0.8, 0.0, 0.0), 0.3))
        pilot.wait(0.4)
    assert np.hypot(*pilot.reference.vel[:2]) == pytest.approx(0.8)
    pilot.wait(0.09)
    assert not isinstance(pilot.commander.order.setpoint, Brake)  # type: ignore[union-attr]
    pilot.wait(0.02)
    assert isinstance(pilot.commander.order.setpoint, Brake)  # type: ignore[union-attr]
    pilot.wait(3.0)
    assert not pilot.reference.vel.any() and pilot.state is Is.flying
    assert pilot.reference.pos[2] == pytest.approx(1.0)


def test_a_hover_that_is_not_repeated_ends_in_hovering_and_keeps_its_priority() -> None:
    pilot = Pilot().fly()
    for _ in range(20):
        pilot.tell(Hover((0.8, 0.0), 0.3, 1.4))
        pilot.wait(0.4)
    assert np.hypot(*pilot.reference.vel[:2]) == pytest.approx(0.8)
    assert pilot.reference.pos[2] == pytest.approx(1.4)
    pilot.wait(3.0)
    assert isinstance(pilot.commander.order.setpoint, HoverOn)  # type: ignore[union-attr]
    assert not pilot.reference.vel.any() and pilot.state is Is.flying
    with pytest.raises(ValueError, match="it follows streamed setpoints: call notify_setpoints"):
        pilot.tell(Land())
    pilot.tell(NotifySetpointsStop())
    pilot.tell(Land())
    pilot.wait(20.0)
    assert pilot.state is Is.landed


def test_a_hover_takes_off_and_lands() -> None:
    pilot = Pilot()
    for height, seconds in ((0.7, 3.0), (0.0, 4.0)):
        for _ in range(round(seconds / 0.1)):
            pilot.tell(Hover((0.2, 0.0), 0.0, height))
            pilot.wait(0.1)
        if height:
            assert pilot.state is Is.flying
            assert pilot.reference.pos[2] == pytest.approx(height, abs=1e-6)
    assert pilot.state is Is.landed and pilot.commander.order is None
    pilot.tell(Hover((0.2, 0.0), 0.0, 0.0))
    assert pilot.state is Is.landed and pilot.commander.order is None


@pytest.mark.parametrize("told", [FULL, LEVEL])
def test_bare_setpoints_that_are_not_repeated_level_out_then_stop(told: Setpoint) -> None:
    pilot = Pilot().fly()
    pilot.tell(told)
    begin = pilot.time_ns
    for tick in range(1, 201):  # of 10 ms
        order = pilot.commander.order
        assert order is not None and pilot.state is Is.flying
        assert isinstance(order.setpoint, HoldHeight | LevelOut) == (tick > 50)
        changes = begin + (SECOND // 2 if tick <= 50 else 2 * SECOND)
        assert pilot.commander.next_change_ns() == changes
        pilot.time_ns = begin + tick * SECOND // 100
        text = pilot.commander.update(pilot.time_ns, pilot.motion)
        assert text == ("no setpoint for 2 s: rotors stopped" if tick == 200 else "")
        if tick == 50:
            assert order is not pilot.commander.order
            attitude = pilot.commander.order.plan.held  # type: ignore[union-attr]
            assert (attitude is None) == (told is FULL)
            if attitude is not None:
                assert attitude[:5] == (0.0, 0.0, pilot.reference.pos[3], 0.0, 0.3)
                assert attitude.are_rates == (False, False)
    assert pilot.state is Is.landed and pilot.commander.order is None
    pilot.tell(Takeoff(1.0))  # there is nothing left that it follows


def test_a_heading_goes_on_from_setpoint_to_setpoint() -> None:
    pilot = Pilot().fly()
    start = pilot.reference.pos[3]
    for i in range(100):
        pilot.tell(AttitudeThrust(0.0, 0.0, 2.0 if i % 2 else -1.0, 0.3))
        pilot.wait(0.1, look=0.1)
    order = pilot.commander.order
    assert order is not None and order.plan.held is not None
    turned = order.plan.held.heading(order.seconds(pilot.time_ns)) - start
    assert np.exp(1j * turned) == pytest.approx(np.exp(1j * 5.0))


def test_a_stick_held_down_lands_and_one_held_up_takes_off() -> None:
    pilot = Pilot()
    for _ in range(30):
        pilot.tell(Velocity((0.0, 0.0, 0.4), 0.0))
        pilot.wait(0.1)
    assert pilot.state is Is.flying and pilot.reference.pos[2] > RULES.takeoff_height
    for _ in range(60):
        if pilot.state is not Is.landed:
            pilot.tell(Velocity((0.3, 0.0, -0.4), 0.0))
        pilot.wait(0.1)
        if pilot.reference.pos[2] < REST + 0.04:
            np.testing.assert_allclose(pilot.reference.vel[:2], 0.0, atol=0.2)
    assert pilot.state is Is.landed
    assert pilot.reference.pos[2] == pytest.approx(REST, abs=0.021)
    held_on = pilot.commander.command(FALLING, pilot.motion())
    assert held_on is not None and held_on.note == "stands on the floor and cannot go down"
    assert pilot.state is Is.landed and pilot.commander.order is None


@pytest.mark.parametrize("height", [0.05, 0.4, 3.0])
def test_a_drone_takes_off_until_it_is_clear_of_the_floor_or_as_high_as_it_will_be(
    height: float,
) -> None:
    """Whatever comes after that, it flies."""
    points = np.array([(0.0, 0.0, REST), (0.0, 0.0, height), (5.0, 0.0, height)])
    across = Trajectory([0, 3 * SECOND, 30 * SECOND], points, np.zeros(3), *(0 * points,) * 2)
    whole = REST + CLEARANCE  # to which a pose lets it rise before it goes on
    for told, clear in ((across, min(whole, height)), (Pose(points[-1], 0.0), whole)):
        pilot = Pilot()
        pilot.tell(told)
        while pilot.state is Is.taking_off:
            assert pilot.reference.pos[2] < clear + 0.06
            pilot.wait(0.02, look=0.02)
        assert pilot.state is Is.flying and pilot.reference.pos[0] < 0.05
        assert pilot.reference.pos[2] == pytest.approx(clear, abs=0.06)
        pilot.wait(1.0)
        assert pilot.state is Is.flying


def test_a_drone_that_misses_the_end_of_its_trajectory_on_the_floor_lands_from_where_it_is() -> (
    None
):
    pilot = Pilot().fly()
    points = np.array([(0.0, 0.0, 1.0), (0.0, 0.0, 0.0)])
    pilot.tell(Trajectory([0, 2 * SECOND], points, [0.0, 0.0], 0 * points, 0 * points))
    pilot.wait(1.9)
    pilot.reference = Reference.at_rest((1.0, 0.5, 2.0), 0.0)  # somebody has moved it
    pilot.time_ns += SECOND
    pilot.commander.update(pilot.time_ns, pilot.motion)
    assert pilot.state is Is.landing
    pilot.wait(20.0)
    assert pilot.state is Is.landed
    np.testing.assert_allclose(pilot.reference.pos[:3], (1.0, 0.5, REST), atol=1e-6)


def test_a_take_off_that_would_not_lift_a_large_drone_is_refused() -> None:
    large = replace(RULES, rest_height=0.35)
    pilot = Pilot(large)
    pilot.reference = Reference.at_rest((0.0, 0.0, 0.35), 0.0)
    with pytest.raises(ValueError, match=r"to 0\.2 m is too low: a drone rests at 0\.35 m"):
        pilot.tell(Takeoff(0.2))
    pilot.tell(Takeoff(0.2, relative=True))
    assert pilot.state is Is.taking_off


def test_near_the_floor_no_stick_moves_it_across() -> None:
    pilot = Pilot().fly()
    pilot.tell(Pose((0.0, 0.0, 0.08), 0.0))
    pilot.wait(30.0)
    pilot.tell(Velocity((1.0, 1.0, 0.0), 0.0))
    pilot.wait(0.5)
    np.testing.assert_allclose(pilot.reference.pos[:3], (0.0, 0.0, 0.08), atol=1e-9)


def test_landed_drones_stop_their_rotors() -> None:
    pilot = Pilot().fly()
    pilot.tell(Land(0.0, 3.0))
    pilot.wait(2.9)
    assert pilot.state is Is.landing and pilot.commander.order is not None
    assert pilot.commander.next_change_ns() == pytest.approx(pilot.time_ns + 0.1 * SECOND, abs=2)
    pilot.wait(0.2)
    assert pilot.state is Is.landed and pilot.commander.order is None


@pytest.mark.parametrize("arrives", [True, False])
def test_rotors_turn_until_a_drone_that_follows_late_has_landed(arrives: bool) -> None:
    """With INDI it is 0.4 m high when its reference is on the floor."""
    pilot = Pilot().fly()
    pilot.tell(Land(0.0, 3.0))
    pilot.wait(2.9)
    high = Reference.at_rest((0.0, 0.0, REST + 0.4), 0.0)

    def look(after: float, reference: Reference) -> None:
        pilot.time_ns += round(after * SECOND)
        pilot.commander.update(
            pilot.time_ns, lambda: StartState(pilot.time_ns, reference, pilot.state)
        )

    for after in (0.2, 1.0, 1.8):
        look(after, high)
        assert pilot.state is Is.landing and pilot.commander.order is not None
    look(
        0.05 if arrives else 0.2,
        Reference.at_rest((0.0, 0.0, REST + 0.03), 0.0) if arrives else high,
    )
    assert pilot.state is Is.landed and pilot.commander.order is None


def restarts(commander: Commander, now: StartState, lag: float = 0.0) -> bool:
    """Restart the course where the drone is if it is lost, as the supervisor does."""
    lost = is_lost(commander, now.time_ns, now.reference.pos[:3], lag)
    return lost and commander.restart(now)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (Pose((9.0, 0.0, 1.0), 0.0), Pose),
        (GoTo((9.0, 0.0, 1.0), 0.0), Pose),
        (Velocity((1.0, 0.0, 0.0), 0.0), Brake),
        (Hover((1.0, 0.0), 0.0, 1.2), HoverOn),
        (Land(), Land),
        (Brake(), Brake),
    ],
)
def test_a_drone_that_lost_its_course_begins_it_anew_where_it_is(
    told: Setpoint, expected: type[Setpoint]
) -> None:
    pilot = Pilot().fly()
    pilot.tell(told)
    pilot.wait(0.3)
    commander, order, state = pilot.commander, pilot.commander.order, pilot.state
    for off, lost in (((0.0, 0.7, 0.0), False), ((0.0, 0.8, 0.0), True)):
        pos = pilot.reference.pos + np.array([*off, 0.0])
        moving = Reference(pos, np.array([0.5, 0.0, 0.2, 0.0]), np.zeros(4))
        assert restarts(commander, StartState(pilot.time_ns, moving)) == lost
        assert (commander.order is not order) == lost
    assert commander.order is not None and isinstance(commander.order.setpoint, expected)
    assert commander.state is state
    now = commander.order.reference(pilot.time_ns)
    assert now is not None
    for one, other in zip(now, moving):
        np.testing.assert_allclose(one, other, atol=1e-12)
    if isinstance(told, GoTo):
        pilot.wait(20.0)
        np.testing.assert_allclose(pilot.reference.pos[:3], (9.0, 0.0, 1.0), atol=1e-9)


@pytest.mark.parametrize("lag", [0.5, 1.0])
def test_a_drone_that_follows_late_has_not_lost_its_course(lag: float) -> None:
    """It is as far behind as it flies in its lag, and somewhat more where the course turns back."""
    pilot = Pilot().fly()
    pilot.tell(Pose((30.0, 0.0, 1.0), 0.0))
    pilot.wait(5.0)
    assert pilot.reference.vel[0] == pytest.approx(RULES.envelope.speed)
    behind = lag * RULES.envelope.speed
    for off, lost in ((behind + 0.7, False), (1.5 * behind + 0.8, True)):
        pos = pilot.reference.pos - np.array([off, 0.0, 0.0, 0.0])
        there = StartState(pilot.time_ns, pilot.reference._replace(pos=pos))
        assert restarts(pilot.commander, there, lag) == lost


@pytest.mark.parametrize("fastest", [0.4, 0.99])
@pytest.mark.parametrize(
    "told", [Pose((-6.0, 5.0, 3.0), 1.0), Velocity((1.8, -0.5, 0.8), 0.4), GoTo((4, 4, 2), 0.0)]
)
def test_courses_are_no_faster_than_the_controller(told: Setpoint, fastest: float) -> None:
    pilot = Pilot().fly()
    plan = pilot.commander.command(told, replace(pilot.motion(), fastest=fastest))
    course = course_of(plan)
    vel = course.along(np.linspace(0.0, course.end, 300))[1]
    assert np.hypot(vel[:, 0], vel[:, 1]).max() < 1.001 * fastest
    assert np.abs(vel[:, 2]).max() < 1.001 * fastest
    assert np.linalg.norm(vel[:, :3], axis=1).max() > 0.3 * fastest


def test_what_is_flown_as_it_is_told_is_not_begun_anew() -> None:
    points = np.array([[9.0, 0.0, 1.0]])
    for told in (
        FlyTrajectory(WAVE),
        *(Raw(np.zeros(16)), FULL, LEVEL),
        Trajectory([SECOND], points, [0.0], 0 * points, 0 * points),
    ):
        pilot = Pilot().fly()
        pilot.tell(told)
        far = Reference.at_rest((5.0, 5.0, 5.0), 0.0)
        assert not restarts(pilot.commander, StartState(pilot.time_ns, far))


def test_a_drone_that_was_told_a_bare_command_goes_on_from_where_it_is() -> None:
    pilot = Pilot().fly()
    pilot.tell(Raw(np.zeros(16)))
    pilot.reference = Reference(np.array([3.0, 0, 2.0, 1.0]), np.array([0.5, 0, 0, 0]), np.zeros(4))
    pilot.tell(Pose((0.0, 0.0, 1.0), 0.0))
    order = pilot.commander.order
    assert order is not None
    np.testing.assert_allclose(course_of(order.plan).at(0.0).pos, pilot.reference.pos)


def test_a_drone_has_to_be_armed_first_where_that_is_so() -> None:
    pilot = Pilot(replace(RULES, auto_arm=False))
    for setpoint in (Takeoff(1.0), Pose((0, 0, 1), 0.0), Velocity((0, 0, 1), 0.0)):
        with pytest.raises(ValueError, match="it is not armed: call arm first"):
            pilot.tell(setpoint)
    pilot.tell(Arm(True))
    pilot.fly()
    pilot.tell(Arm(False))
    assert pilot.state is Is.landed and pilot.commander.order is None
    with pytest.raises(ValueError, match="not armed"):
        pilot.tell(Takeoff(1.0))


MAKE: list[Callable[[int], Setpoint]] = [
    lambda mask: Takeoff(1.0, group_mask=mask),
    lambda mask: Land(group_mask=mask),
    lambda mask: GoTo((0, 0, 1), 0.0, group_mask=mask),
    lambda mask: FlyTrajectory(WAVE, group_mask=mask),
    lambda mask: Stop(group_mask=mask),
    lambda mask: Arm(False, group_mask=mask),
]


@pytest.mark.parametrize("make", MAKE)
def test_only_drones_of_a_group_heed_what_is_for_it(make: Callable[[int], Setpoint]) -> None:
    for groups, mask, heeds in ((0, 0, True), (5, 0, True), (5, 4, True), (5, 2, False)):
        pilot = Pilot()
        if not isinstance(make(0), Takeoff):
            pilot.fly()
        pilot.commander.groups = groups
        before = pilot.commander.order
        pilot.tell(make(mask))
        assert (pilot.commander.order is not before) == heeds
        assert pilot.commander.armed == (not heeds or not isinstance(make(0), Arm))


def test_a_crashed_drone_says_why_it_does_not_fly() -> None:
    pilot = Pilot().fly()
    pilot.commander.stop(Is.crashed, "upside down")
    with pytest.raises(ValueError, match=r"it is crashed \(upside down\): reset it first"):
        pilot.tell(Takeoff(1.0))
    pilot.tell(Emergency())
    assert pilot.state is Is.locked


def test_the_clock_can_be_rewound() -> None:
    one, other = Pilot().fly(), Pilot().fly()
    for pilot in (one, other):
        pilot.tell(Velocity((0.5, 0.0, 0.0), 0.4))
        pilot.wait(0.3)
    other.commander.stuck_ns = other.time_ns
    other.commander.rewind(7 * SECOND)
    other.time_ns -= 7 * SECOND
    assert other.commander.stuck_ns == other.time_ns
    for _ in range(8):
        for pilot in (one, other):
            pilot.wait(0.2)
        for a, b in zip(one.reference, other.reference):
            np.testing.assert_array_equal(a, b)
    assert not one.reference.vel.any()
