"""States of the supervisor of the Crazyflie's firmware, and what leads from one to another.

Read from supervisor_state_machine.c of release 2026.08.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, IntFlag, auto
from typing import NamedTuple


class State(Enum):
    """States, in the order of the firmware's numbers, with its names."""

    not_initialized = "Not initialized"
    checks_not_passed = "Pre-flight checks not passed"
    checks_passed = "Pre-flight checks passed"
    arming = "Arming"
    ready = "Ready to fly"
    flying = "Flying"
    landed = "Landed"
    reset = "Reset"
    level_out = "Warning, level out"
    free_fall = "Exception, free fall"
    locked = "Locked"
    crashed = "Crashed"


class Condition(IntFlag):
    """Conditions, with the firmware's bits and names."""

    armed = auto()
    isFlying = auto()
    isTumbled = auto()
    commanderWdtWarning = auto()
    commanderWdtTimeout = auto()
    emergencyStop = auto()
    isCrashed = auto()
    preflightTimeout = auto()
    landingTimeout = auto()
    deckFault = auto()
    rpmAtArmingValid = auto()
    spinupTimeout = auto()
    motorsNotResponding = auto()


_C = Condition
_NO = Condition(0)


class _Transition(NamedTuple):
    """To a state if all, or any, of what it needs holds, and nothing that blocks it."""

    to: State
    on: Condition = _NO
    off: Condition = _NO
    all: bool = True
    blocked: Condition = _NO

    def holds(self, now: Condition) -> bool:
        if now & self.blocked:
            return False
        if self.all:
            return not (self.on & ~now or now & self.off)
        return bool(now & self.on or self.off & ~now)


def _any(to: State, on: Condition, off: Condition = _NO) -> _Transition:
    return _Transition(to, on, off, all=False)


_STOPPED = _any(State.free_fall, _C.emergencyStop)
TRANSITIONS: Mapping[State, Sequence[_Transition]] = {
    State.not_initialized: (_Transition(State.checks_not_passed),),
    State.checks_not_passed: (
        _STOPPED,
        _Transition(State.checks_passed, blocked=_C.isTumbled | _C.deckFault),
    ),
    State.checks_passed: (
        _STOPPED,
        _any(State.checks_not_passed, _C.isTumbled | _C.deckFault),
        _Transition(State.arming, _C.armed, blocked=_C.isTumbled),
    ),
    State.arming: (
        _STOPPED,
        _any(State.checks_not_passed, _C.isTumbled | _C.spinupTimeout, off=_C.armed),
        _Transition(State.ready, _C.rpmAtArmingValid),
    ),
    State.ready: (
        _any(State.free_fall, _C.emergencyStop | _C.motorsNotResponding),
        _any(
            State.checks_not_passed, _C.isTumbled | _C.preflightTimeout | _C.deckFault, off=_C.armed
        ),
        _Transition(State.flying, _C.isFlying),
    ),
    State.flying: (
        _any(
            State.free_fall,
            _C.commanderWdtTimeout | _C.emergencyStop | _C.deckFault | _C.motorsNotResponding,
        ),
        _any(State.crashed, _C.isTumbled),
        _Transition(State.reset, off=_C.armed),
        _Transition(State.level_out, _C.commanderWdtWarning),
        _Transition(State.landed, off=_C.isFlying),
    ),
    State.landed: (
        _any(State.reset, _C.landingTimeout, off=_C.armed),
        _Transition(State.free_fall, _C.motorsNotResponding),
        _Transition(State.flying, _C.isFlying),
    ),
    State.reset: (_Transition(State.checks_not_passed),),
    State.level_out: (
        _any(
            State.free_fall,
            _C.commanderWdtTimeout | _C.isTumbled | _C.emergencyStop | _C.deckFault,
        ),
        _Transition(State.free_fall, _C.motorsNotResponding),
        _Transition(State.flying, off=_C.commanderWdtWarning | _C.commanderWdtTimeout),
    ),
    State.free_fall: (_Transition(State.locked),),
    State.locked: (),
    State.crashed: (
        _Transition(State.checks_not_passed, off=_C.isCrashed | _C.isTumbled),
        _Transition(State.locked, _C.emergencyStop),
    ),
}
"""From each state, in the order in which they are tried."""
