"""The supervisor's state machine of the Crazyflie's firmware, of release 2026.08.

It is pure: what it sees comes as arguments, and nothing but its own attributes changes. Read from
supervisor.c, supervisor_state_machine.c and crtp_supervisor.c; times are the firmware's ticks of
1 ms, of which 0 means "never".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import sqrt
from typing import NamedTuple

from crazyflow_ros.crazyflie.supervisor_transitions import TRANSITIONS, Condition, State

RATE = 25
"""Updates a second."""

_WATCHDOG = 1000  # ms for which a notification of the emergency stop's watchdog counts
_FLYING = 2000  # ms after the last thrust over idle for which the drone counts as flying
_LEVEL_OUT, _SHUTDOWN = 500, 2000  # ms since the setpoint in force arrived
_FALLS = 0.1  # g along each axis, below which the drone falls freely
_TILTED, _TILT_TIME = 0.5, 1000  # g along z, ms
_UPSIDE_DOWN, _UPSIDE_DOWN_TIME = -0.2, 100  # g along z, ms
_RPM_VALID = range(1000, 3501)  # of idling motors
_RPM_TIME = 200  # ms for which they turn so, and for which a motor does not respond
_RPM_NOT_RESPONDING = 500

PARAMETERS: Mapping[str, float] = {
    "supervisor.prefltTimeout": 30000,
    "supervisor.landedTimeout": 3000,
    "supervisor.spinupTimeout": 2000,
    "supervisor.tmblChckEn": 1,
    "supervisor.crashDetectGs": 0.0,
    "stabilizer.stop": 0,
}
"""The parameters of the firmware that it reads, with their defaults; times in ms."""


_CAN_FLY = (State.ready, State.flying, State.level_out, State.landed)
_RUNS_MOTORS = (State.arming, *_CAN_FLY)
_SAYS = {
    State.free_fall: "free falling!",
    State.locked: "Locked, reboot required",
    State.crashed: "Crashed, recovery required",
}


class Platform(NamedTuple):
    """What the firmware's configuration says about a platform."""

    arms_itself: bool
    """Not CONFIG_MOTORS_REQUIRE_ARMING."""
    idle: int
    """Thrust of armed motors [PWM]."""
    counts_turns: bool
    """Whether the motors' controllers tell their speeds (bidirectional DSHOT)."""


BRUSHED = Platform(arms_itself=True, idle=0, counts_turns=False)
"""cf2: Crazyflie 2.x."""
BRUSHLESS = Platform(arms_itself=False, idle=7000, counts_turns=True)
"""cf21bl: Crazyflie 2.1 Brushless."""
BRUSHLESS_MODEL = "cf21B_500"
"""The drone model on that platform."""


class Seen(NamedTuple):
    """What the machine sees of the drone."""

    acc: Sequence[float] = (0.0, 0.0, 1.0)
    """(3,) of the accelerometer, body axes [g]."""
    thrust: float = 0
    """Greatest ratio of a motor [PWM]."""
    setpoint_tick: int = 0
    """When the setpoint in force arrived; 0 also stands for the null setpoint of a drone that
    cannot fly."""
    rpm: Sequence[float] = (2000, 2000, 2000, 2000)
    """Of the motors, where they are counted."""
    plans: bool = False
    """Whether the high-level commander flies, a landing included."""
    finished: bool = True
    """Whether its latest trajectory is over."""


class SetpointQueue:
    """The setpoint in force, of commander.c: who sent it, and when it arrived.

    The high-level commander sends one whenever the drone can fly: the null setpoint, which stops
    the motors, while it plans nothing.

    Attributes:
        is_streamed: Whether the setpoint was streamed, and its stream has not ended: then it counts
            more than those of the high-level commander.
        tick: When it arrived.
    """

    def __init__(self) -> None:
        self.is_streamed, self.tick = False, 0

    def stream(self, tick: int) -> None:
        """Take a streamed setpoint."""
        self.is_streamed, self.tick = True, tick

    def relax(self) -> None:
        """End the stream."""
        self.is_streamed = False

    def plan(self, tick: int) -> None:
        """Take a setpoint of the high-level commander, unless setpoints are streamed."""
        if not self.is_streamed:
            self.tick = tick


class SupervisorMachine:
    """The supervisor of one firmware.

    Args:
        platform: The platform.
        parameter: Returns the value of one of `PARAMETERS`.
        say: Takes each line for the console.

    Attributes:
        state: The state.
        info: The bits of `supervisor.info`, as of the latest update, as the three that follow.
        is_flying: `sys.isFlying`.
        is_tumbled: `sys.isTumbled`.
        conditions: All conditions.
        stop_requested: Whether an emergency stop was requested.
        watchdog_tick: When the watchdog of the emergency stop was last notified; 0 if never.
        dumps: Whether the next update says everything on the console, as `supervisor.infdmp`.
    """

    def __init__(
        self,
        platform: Platform,
        parameter: Callable[[str], float] = PARAMETERS.__getitem__,
        say: Callable[[str], object] = lambda _: None,
    ) -> None:
        self._platform, self._parameter, self._say = platform, parameter, say
        self.state = State.not_initialized
        self.info, self.conditions = 0, Condition(0)
        self.is_flying = self.is_tumbled = self.stop_requested = self.dumps = False
        self.watchdog_tick = 0
        self.is_armed = self.is_crashed = False
        self._tumbled_tick = self._thrust_tick = self._armed_tick = self._landed_tick = 0
        self._spinup_tick = self._valid_tick = self._silent_tick = 0
        self._slow: list[int] = []  # motors that do not turn as they should
        self._silent: list[int] = []

    @property
    def can_fly(self) -> bool:
        """Whether setpoints act."""
        return self.state in _CAN_FLY

    @property
    def runs_motors(self) -> bool:
        """Whether motors may turn."""
        return self.state in _RUNS_MOTORS

    def request_arming(self, armed: bool) -> bool:
        """Arm or disarm; return whether that is granted."""
        if armed != self.is_armed and armed and self.state is not State.checks_passed:
            return False
        self.is_armed = armed
        return True

    def request_recovery(self) -> bool:
        """Leave the crash behind; return whether that is granted."""
        if self.is_crashed and self.is_tumbled:
            return False
        self.is_crashed = False
        return True

    def set_upright(self) -> None:
        """Note that somebody has set the drone upright, and seen it lie still."""
        self._tumbled_tick, self.is_tumbled = 0, False

    def resume(self, state: State) -> None:
        """Be in a state."""
        self.state = state
        self.is_armed, self.is_crashed = self.runs_motors, state is State.crashed

    def update(self, tick: int, seen: Seen) -> None:
        """Update the state, `RATE` times a second."""
        self.conditions = now = self._look(tick, seen)
        before = self.state
        for transition in TRANSITIONS[before]:
            if transition.holds(now):
                self.state = transition.to
                break
        if self.state is not before:
            self._act(before, tick)
        self.is_flying = self.state in (State.flying, State.level_out)
        self.is_tumbled = Condition.isTumbled in now
        bits = (
            *(self.state is State.checks_passed, self.is_armed, self._platform.arms_itself),
            *(self.can_fly, self.is_flying, self.is_tumbled, self.state is State.locked),
            *(self.is_crashed, seen.plans, seen.finished, False, Condition.deckFault in now),
        )
        self.info = sum(bool(bit) << i for i, bit in enumerate(bits))
        if self.dumps:
            self._dump()

    def _look(self, tick: int, seen: Seen) -> Condition:
        """Return the conditions."""
        platform, age = self._platform, tick - seen.setpoint_tick
        if seen.thrust > platform.idle:
            self._thrust_tick = tick
        found = {
            Condition.armed: self.is_armed,
            Condition.isFlying: self._thrust_tick and tick - self._thrust_tick < _FLYING,
            Condition.isTumbled: self._tumbles(tick, seen.acc)
            and self._parameter("supervisor.tmblChckEn"),
            Condition.commanderWdtWarning: age > _LEVEL_OUT,
            Condition.commanderWdtTimeout: age > _SHUTDOWN,
            Condition.emergencyStop: self.stop_requested
            or self._parameter("stabilizer.stop")
            or (self.watchdog_tick and tick >= self.watchdog_tick + _WATCHDOG),
            Condition.isCrashed: self.is_crashed,
            Condition.preflightTimeout: self.state is State.ready
            and tick - self._armed_tick > self._parameter("supervisor.prefltTimeout"),
            Condition.landingTimeout: self._landed_tick
            and tick - self._landed_tick > self._parameter("supervisor.landedTimeout"),
            Condition.rpmAtArmingValid: not platform.counts_turns
            or (self.state is State.arming and self._turns(tick, seen.rpm)),
            Condition.spinupTimeout: self.state is State.arming
            and self._spinup_tick
            and tick - self._spinup_tick > self._parameter("supervisor.spinupTimeout"),
            Condition.motorsNotResponding: platform.counts_turns and self._fails(tick, seen.rpm),
        }
        return Condition(sum(condition for condition, holds in found.items() if holds))

    def _tumbles(self, tick: int, acc: Sequence[float]) -> bool:
        """Return whether the drone has been tilted, or upside down, for too long, or has hit."""
        norm, most = sqrt(sum(a * a for a in acc)), self._parameter("supervisor.crashDetectGs")
        if most > 0 and abs(norm - 1) > most:
            self._say(f"SUP: Crash detected @ {norm:.2f} Gs (max {most:.2f})")
            return True
        if all(abs(a) < _FALLS for a in acc):
            self._tumbled_tick = 0
        if not acc[2] < _TILTED:
            self._tumbled_tick = 0
            return False
        self._tumbled_tick = self._tumbled_tick or tick
        tumbled = tick - self._tumbled_tick
        return (acc[2] < _UPSIDE_DOWN and tumbled > _UPSIDE_DOWN_TIME) or tumbled > _TILT_TIME

    def _turns(self, tick: int, rpm: Sequence[float]) -> bool:
        """Return whether all motors have idled for long enough."""
        slow = [i for i, speed in enumerate(rpm) if int(speed) not in _RPM_VALID]
        if slow:
            self._slow, self._valid_tick = slow, 0
            return False
        self._valid_tick = self._valid_tick or tick
        return tick - self._valid_tick >= _RPM_TIME

    def _fails(self, tick: int, rpm: Sequence[float]) -> bool:
        """Return whether a motor has not responded for some time."""
        turning = rpm if self.can_fly else ()
        self._silent = [i for i, speed in enumerate(turning) if 0 < speed < _RPM_NOT_RESPONDING]
        if not self._silent:
            self._silent_tick = 0
            return False
        self._silent_tick = self._silent_tick or tick
        return tick - self._silent_tick >= _RPM_TIME

    def _act(self, before: State, tick: int) -> None:
        """Do what follows a transition."""
        state, arms_itself = self.state, self._platform.arms_itself
        self._spinup_tick = tick if state is State.arming else 0
        self._valid_tick = self._silent_tick = 0
        if state is State.arming:
            self._slow, self._silent = [], []
        elif state is State.ready:
            self._armed_tick = tick
        elif state is State.landed:
            self._landed_tick = tick
        elif state is State.crashed:
            self.is_crashed = True
        self._report(before)
        if not self.runs_motors:
            self.is_armed = arms_itself and state is State.checks_passed

    def _report(self, before: State) -> None:
        """Say what a transition means."""
        state, arms_itself = self.state, self._platform.arms_itself
        disarms = (before in (State.flying, State.landed) and state is State.reset) or (
            before in (State.ready, State.arming) and state is State.checks_not_passed
        )
        if not arms_itself and (disarms or state is State.ready):
            self._say("SUP: Disarming" if disarms else "SUP: Ready to fly")
        if before is State.arming and state is State.checks_not_passed:
            valid = f"{_RPM_VALID[0]}-{_RPM_VALID[-1]}rpm"
            for i in self._slow:
                self._say(f"SUP: M{i + 1} arming RPM check ({valid}) [FAIL]")
        if state is State.free_fall:
            for i in self._silent:
                self._say(f"SUP: M{i + 1} blocked or not responding [FAIL]")
        if state in _SAYS:
            self._say(f"SUP: {_SAYS[state]}")

    def _dump(self) -> None:
        """Say everything."""
        self.dumps = False
        self._say("SUP: Supervisor info ---")
        self._say(f"SUP: State: {self.state.value}")
        self._say(f"SUP: Conditions: (0x{self.conditions:x})")
        for condition in Condition:
            self._say(
                f"SUP:   {condition.name} (0x{condition:x}): {condition in self.conditions:d}"
            )
