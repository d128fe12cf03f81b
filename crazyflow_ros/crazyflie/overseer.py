"""The firmware's supervisor in the simulation: it sees a drone, and decides when rotors stop."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from crazyflow_ros.control.pid import firmware_units
from crazyflow_ros.crazyflie.supervisor_states import (
    BRUSHED,
    BRUSHLESS,
    BRUSHLESS_MODEL,
    PARAMETERS,
    RATE,
    Seen,
    SetpointQueue,
    SupervisorMachine,
)
from crazyflow_ros.crazyflie.supervisor_transitions import Condition, State
from crazyflow_ros.dynamics import RPM
from crazyflow_ros.flight import (
    Arm,
    Emergency,
    FirmwareSetpoint,
    FlightEvent,
    FlightState,
    HighLevelStop,
    Land,
    NotifySetpointsStop,
    NullSetpoint,
    Recover,
    SetGroups,
    Setpoint,
    Stop,
    Takeoff,
)
from crazyflow_ros.flight.commander import FlightStatus, Order
from crazyflow_ros.flight.streamed import Streamed
from crazyflow_ros.runtime import PhysicsThread, Snapshot

_GRAVITY = 9.81  # m/s^2, of the firmware's unit of acceleration
_FULL = 65535  # PWM
_IDLES = 2000.0  # revolutions per minute of an armed brushless motor, which stands still here
_BEGIN = 1000  # tick at which the drone was found on its feet
_PERIOD = 1000 // RATE  # ticks
_UPDATES = 5  # until a drone that stands is ready
_ALOFT = 0.1  # m above the resting height, from which on a stop of the rotors is a fall
_STATES = {
    State.free_fall: FlightState.locked,
    State.locked: FlightState.locked,
    State.crashed: FlightState.crashed,
}
_STARVED = "the watchdog of the emergency stop was not reset for 1 s"
_WHY: Mapping[Condition, str] = {
    Condition.emergencyStop: _STARVED,
    Condition.isTumbled: "it tumbled",
    Condition.motorsNotResponding: "a motor does not respond",
    Condition.commanderWdtTimeout: "no setpoint for 2 s",
}


class Overseer:
    """The supervisor of one drone's firmware. Its requests may come from any thread.

    It was switched on before the simulation began, and is ready: armed, if it arms itself.

    Args:
        physics: The simulation.
        name: Name of the drone.
        say: Takes each line for the console.

    Attributes:
        machine: The firmware's state machine.
        queue: The firmware's setpoint in force.
        parameter: Returns the value of a parameter.
        is_on: Returns whether the firmware has power.
    """

    def __init__(self, physics: PhysicsThread, name: str, say: Callable[[str], object]) -> None:
        self._physics, self._name, self._say = physics, name, say
        model = physics.config.drone_model
        units = {**firmware_units("state", model), **firmware_units("attitude", model)}
        self._units = np.array([units["thrust_max"], *units["torque_max"]])
        self.parameter: Callable[[str], float] = PARAMETERS.__getitem__
        self.is_on: Callable[[], bool] = lambda: True
        self.boot()

    def boot(self) -> None:
        """Start the firmware anew."""
        config = self._physics.config
        platform = BRUSHLESS if config.drone_model == BRUSHLESS_MODEL else BRUSHED
        self.machine = SupervisorMachine(
            platform._replace(arms_itself=config.flight.auto_arm),
            lambda name: float(self.parameter(name)),
            lambda line: self._lines.append(line),
        )
        self._lines: list[str] = []
        self.queue = SetpointQueue()
        self._pending: Setpoint | None = None  # a high-level command that waits for a stream's end
        self._last: Setpoint | None = None  # the latest streamed setpoint, if it was interrupted
        self._imposed: FlightState | None = None
        self._commanding = self._falls = self._resumes = False
        self._ahead = _BEGIN - self._physics.snapshot.time_ns // 1_000_000
        self._tick = _BEGIN
        for left in range(_UPDATES, 0, -1):
            self.machine.update(_BEGIN - left * _PERIOD, Seen())
        self._lines.clear()

    @property
    def why(self) -> str:
        """Why the drone cannot fly, and what helps."""
        state, advice = self.machine.state, self._physics.commands.rules.advice
        helps = {
            State.checks_passed: advice.disarmed,
            State.locked: advice.locked,
            State.crashed: advice.crashed,
        }.get(state, "")
        return f"it is in the state {state.value!r}{f', {helps} first' if helps else ''}"

    def takes(self, setpoint: Setpoint) -> bool:
        """Return whether the high-level commander takes a command now."""
        return self.machine.can_fly or isinstance(setpoint, SetGroups | HighLevelStop)

    def resume(self) -> None:
        """Go on from the flight that a checkpoint brings back, at the next look."""
        self._resumes = True

    # Requests.

    def hold(self, setpoint: Setpoint) -> None:
        """Keep a streamed setpoint that arrives while the drone cannot fly."""
        self.queue.stream(self._tick)
        self._last, self._pending = setpoint, None

    def stream(self) -> None:
        """Note a streamed setpoint, which takes effect at the next tick."""
        self.queue.stream(self._tick)
        self._last = self._pending = None

    def wait(self, setpoint: Setpoint | None) -> None:
        """Keep a high-level command until the stream of setpoints ends; None forgets it."""
        self._pending = setpoint

    def relax(self) -> None:
        """End the stream of setpoints. In the physics thread."""
        was_streamed, pending = self.queue.is_streamed, self._pending
        self.queue.relax()
        self._last = self._pending = None
        if was_streamed:
            self._physics.commands.drop_posted(self._name)
            self._cut()
        if pending is not None and self.machine.can_fly:
            self.prepare(pending)
            self._command(pending)

    def prepare(self, setpoint: Setpoint) -> None:
        """Let a drone take off, or fly from where it falls. In the physics thread."""
        flight = self._flight()
        if flight.order is not None or flight.state.needs_reset:
            return
        if isinstance(setpoint, Takeoff) and not flight.state.stands:
            self._physics.commands.halt(self._name, FlightState.landed)
        elif not isinstance(setpoint, Takeoff | Land) and flight.state.stands:
            self._physics.commands.halt(self._name, FlightState.flying)

    def notify_watchdog(self) -> None:
        """Start the watchdog of the emergency stop, or reset it."""
        self.machine.watchdog_tick = self._tick

    # In the physics thread.

    def note(self, setpoint: Setpoint) -> None:
        """Note a setpoint that has just taken effect."""
        if self._commanding:
            return
        machine = self.machine
        if isinstance(setpoint, Arm):
            if not machine.request_arming(setpoint.armed):
                health = self._physics.health
                health.warn(
                    f"{self._name} cannot be armed: it is in the state {machine.state.value!r}"
                )
        elif isinstance(setpoint, Emergency):
            machine.stop_requested = True
        elif isinstance(setpoint, Recover):
            machine.request_recovery()
        elif isinstance(setpoint, HighLevelStop):
            self._cut()
        elif isinstance(setpoint, NotifySetpointsStop | NullSetpoint):
            self.relax()
        elif isinstance(setpoint, Stop):
            self.queue.relax()
        elif isinstance(setpoint, Streamed):
            self.stream()

    def check(self, now: Snapshot, row: int) -> None:
        """Update the state machine, and let it act."""
        flight, machine = self._flight(), self.machine
        self._count(now)
        if not self.is_on() or flight.state is FlightState.lost:
            return
        if self._resumes:
            self.boot()
            self.machine.resume(_state_of(flight))
            self._imposed = flight.state if flight.state.needs_reset else None
            machine = self.machine
        order, was_able = flight.order, machine.can_fly
        is_course = order is not None and not order.is_streamed
        if is_course:
            self.queue.relax()
        if was_able:
            self.queue.plan(self._tick)
        seen = Seen(
            acc=(now.specific_force[row] / _GRAVITY).tolist(),
            thrust=self._thrust(now, row, flight),
            setpoint_tick=self.queue.tick if was_able else 0,
            rpm=np.maximum(now.rotor_vel[row] / RPM, _IDLES).tolist(),
            plans=is_course,
            finished=order is None or order.plan.course is None or self._is_over(order, now),
        )
        before = machine.state
        machine.update(self._tick, seen)
        for line in self._lines:
            self._say(line)
        self._lines.clear()
        self._physics.commands.set_armed(self._name, machine.can_fly)
        self._act(before, flight, now, row)

    def _act(self, before: State, flight: FlightStatus, now: Snapshot, row: int) -> None:
        """Let the drone do what the machine's state asks for."""
        commands, name, state = self._physics.commands, self._name, self.machine.state
        wanted, order = _STATES.get(state), flight.order
        if state is not before:
            self._tell_state(before, flight, now, row)
        if order is not None and not self.machine.can_fly:
            self._pending = None
            if order.is_streamed:
                self._last = order.setpoint
        if wanted is not None:
            if flight.state is not wanted:
                commands.halt(name, wanted, f"its firmware is in the state {state.value!r}")
                self._imposed = wanted
        elif self._imposed is not None or (order is not None and not self.machine.can_fly):
            commands.halt(name, FlightState.landed)
            self._imposed = None
        elif self.machine.can_fly:
            self._fly(before, flight, now, row)
        falls = order is None and flight.state is FlightState.flying and wanted is None
        if falls and not self._falls and self._height(now, row) > _ALOFT:
            text = "has stopped its rotors: nothing asks for thrust"
            self._tell("no setpoint", now, row, text)
        self._falls = falls

    def _fly(self, before: State, flight: FlightStatus, now: Snapshot, row: int) -> None:
        """Replace the order of a drone that can fly where the firmware would."""
        commands, name, state = self._physics.commands, self._name, self.machine.state
        order = flight.order
        if state is State.level_out and state is not before:
            if order is not None and isinstance(order.setpoint, FirmwareSetpoint):
                self._command(order.setpoint.levelled())
        elif state is State.ready and before is State.arming and self._last is not None:
            self._command(self._last)  # the setpoint in the queue, however old
        elif order is None and flight.state is FlightState.flying and state is State.landed:
            commands.halt(name, FlightState.landed)
        elif order is not None and order.plan.after.stands and self._is_over(order, now):
            aloft = self._height(now, row) > _ALOFT
            commands.halt(name, FlightState.flying if aloft else FlightState.landed)

    def _tell_state(self, before: State, flight: FlightStatus, now: Snapshot, row: int) -> None:
        """Tell the drone's pilot of a state that stops it, or soon will."""
        machine, advice = self.machine, self._physics.commands.rules.advice
        flies = flight.order is not None and self._height(now, row) > _ALOFT
        if machine.state is State.free_fall:
            why = next((why for c, why in _WHY.items() if c in machine.conditions), "")
            if why == _STARVED and (machine.stop_requested or self.parameter("stabilizer.stop")):
                why = "an emergency stop"
            self._tell("locked", now, row, f"stops its rotors and locks it: {why}", advice.locked)
        elif machine.state is State.crashed:
            call = advice.call.format(self._name)
            self._tell("crashed", now, row, "stops its rotors: it tumbled", call)
        elif machine.state is State.level_out and flies:
            self._tell("no setpoint", now, row, "levels it out: no setpoint for 0.5 s")
        elif not machine.can_fly and before in (State.flying, State.landed) and flies:
            self._tell("disarmed", now, row, "stops its rotors: it was disarmed", advice.disarmed)

    def _is_over(self, order: Order, now: Snapshot) -> bool:
        """Return whether a course has ended, although the drone may lag behind it."""
        course = order.plan.course
        return course is not None and order.seconds(now.time_ns) >= course.end

    def _height(self, now: Snapshot, row: int) -> float:
        """Return the height above the resting height [m]."""
        return float(now.pos[row, 2]) - self._physics.commands.rules.rest_height

    def _tell(self, kind: str, now: Snapshot, row: int, text: str, remedy: str = "") -> None:
        """Tell the drone's pilot what its firmware does."""
        place = f"({', '.join(f'{x:z.2f}' for x in now.pos[row].tolist())}) m"
        text = f"at {place}, its firmware {text}{f'; {remedy}' if remedy else ''}"
        self._physics.commands.announce(FlightEvent(now.time_ns, self._name, kind, text, remedy))

    def _thrust(self, now: Snapshot, row: int, flight: FlightStatus) -> float:
        """Return the greatest ratio of a motor [PWM]; armed motors idle."""
        if flight.order is None:
            return 0.0
        if now.desired is None:
            return float(_FULL)
        thrust, roll, pitch, yaw = (np.abs(now.desired[row, 7:11]) / self._units).tolist()
        return thrust and thrust + (roll + pitch) / 2 + yaw

    def _count(self, now: Snapshot) -> None:
        """Count ticks, also when the clock was moved back."""
        tick = now.time_ns // 1_000_000 + self._ahead
        if tick < self._tick:
            self._ahead += self._tick - tick
        self._tick = max(tick, self._tick)

    def _cut(self) -> None:
        """Stop the rotors of a drone that may fly on."""
        flight = self._flight()
        if flight.order is not None:
            self._physics.commands.halt(self._name, FlightState.flying)

    def _command(self, setpoint: Setpoint) -> None:
        """Command the drone in the firmware's own name."""
        self._commanding = True
        try:
            response = self._physics.commands.command(
                {self._name: setpoint}, self._physics.snapshot
            )
        finally:
            self._commanding = False
        for text in response.refused:
            self._physics.health.warn(text)

    def _flight(self) -> FlightStatus:
        (flight,) = self._physics.commands.commanders.flights([self._name])
        return flight


def _state_of(flight: FlightStatus) -> State:
    """Return the state in which a drone would fly so."""
    if flight.state in (FlightState.locked, FlightState.crashed):
        return State[flight.state.name]
    if flight.order is not None:
        return State.flying
    return State.ready if flight.armed else State.checks_passed
