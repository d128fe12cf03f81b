"""Requests that all simulators carry out on behalf of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any

from numpy.typing import ArrayLike

from crazyflow_ros.checks import limits
from crazyflow_ros.checks.limits import shown, unknown
from crazyflow_ros.hosts.agenda import Agenda
from crazyflow_ros.hosts.calls import call, read_call
from crazyflow_ros.hosts.members import Members, Owners
from crazyflow_ros.runtime import Checkpoint, InvalidState, PhysicsThread, Snapshot, Steps
from crazyflow_ros.runtime.checkpoint_content import check_kept

AGREED = {
    "": ["pause", "resume", "switch", "set_real_time_factor"],
    "state": [
        *("reset", "set_drone_states", "set_body_state", "capture_initial_state"),
        *("notify_reset", "restore"),
    ],
    "firmware": [
        "restart",
        "set_upright",
        "tune",
        "untune",
        "restart_estimate",
        "set_beacons",
        "tell_pose",
    ],
    "world": ["spawn", "despawn", "disturb", "set_controller"],
    "robots": ["command_joints"],
}
"""Methods of a physics thread and of its parts that all simulators carry out."""


class SharedRequests:
    """Carries out the requests of all simulators. Physics thread.

    Args:
        physics: The physics thread of this simulator.
        members: All simulators.
        owners: Who owns which drone.

    Attributes:
        members: As given.
        owners: As given.
        agenda: The requests that are not carried out yet.
        own_steps: Steps of this simulator that are not agreed yet, by number.
        checkpoints: Checkpoints for this simulator that are not complete yet, by number.
    """

    def __init__(self, physics: PhysicsThread, members: Members, owners: Owners) -> None:
        self._physics, self.members, self.owners = physics, members, owners
        self.agenda = Agenda(members.own, self._carry_out)
        self.own_steps: dict[int, Steps] = {}
        self.checkpoints: dict[int, Future[Checkpoint]] = {}
        self._steps: dict[tuple[str, int], Steps] = {}
        self._parts: dict[int, dict[str, Any]] = {}  # of checkpoints
        self._bases: dict[int, Checkpoint] = {}
        self._methods: dict[str, Callable[..., Future[Any]]] = {
            name: getattr(getattr(physics, part) if part else physics, name)
            for part, names in AGREED.items()
            for name in names
        }
        # What takes more than a method; the name of the simulator that asks comes first.
        self._special: dict[str, Callable[..., Future[Any] | None]] = {
            "nothing": lambda _: None,
            "step": self._step,
            "drop_steps": self._drop_steps,
            "spawn": self._spawn,
            "withdraw": self._withdraw,
            "checkpoint": self._checkpoint,
            "contribute": self._contribute,
            "restore": self._restore,
        }

    def put(self, request: dict[str, Any], future: Future[Any], *, once_here: bool = False) -> None:
        """Let all simulators carry out a request in the next round.

        Args:
            request: See `calls.call`.
            future: Receives the result once all have carried the request out.
            once_here: Whether it receives the result as soon as this simulator has carried the
                request out; requests made at once are then carried out by all at the same tick.
        """
        held = self._physics.loop.held
        if held and self.members.missing and not future.done():
            future.set_exception(InvalidState(held))
        else:
            self.agenda.ask(request, future, once_here=once_here)

    def ask(self, name: str, *arguments: Any) -> Future[Any]:
        """Let all carry out a request, at the same tick as the one under way, if any.

        The future is done once this simulator has carried it out.
        """
        future: Future[Any] = Future()
        self.put(call(name, arguments, {}), future, once_here=True)
        return future

    def _carry_out(self, origin: str, request: dict[str, Any]) -> Future[Any] | None:
        """Begin a request of a simulator; raise nothing."""
        name = ""
        try:
            name, arguments, by_name = read_call(request)
            begun = self._method(name, origin)(*arguments, **by_name)
        except Exception as error:
            begun = Future()
            begun.set_exception(error)
        if begun is not None and origin != self.members.own:
            begun.add_done_callback(partial(self._note_refusal, origin, name))
        return begun

    def _method(self, name: str, origin: str) -> Callable[..., Future[Any] | None]:
        if name in self._special:
            return partial(self._special[name], origin)
        if name not in self._methods:
            raise ValueError(unknown("request", name, [*self._methods, *self._special]))
        return self._methods[name]

    def _note_refusal(self, origin: str, name: str, done: Future[Any]) -> None:
        if error := done.exception():
            text = f"{shown(name)}, which {origin} asked for, is refused: {error}"
            self._physics.health.warn(text)

    # Steps.

    def _step(self, origin: str, number: int, n_ticks: int) -> None:
        if type(n_ticks) is not int or not 1 <= n_ticks <= limits.STEPS:
            raise ValueError(f"ticks must be from 1 to {limits.STEPS}, got {shown(n_ticks)}")
        if origin == self.members.own:
            steps = self.own_steps.pop(number)
            self._physics.loop.enqueue(steps)
        else:
            steps = self._physics.step(n_ticks)
        self._steps[origin, number] = steps
        steps.add_done_callback(lambda _: self._steps.pop((origin, number), None))

    def _drop_steps(self, origin: str, number: int) -> Future[Any] | None:
        steps, loop = self._steps.get((origin, number)), self._physics.loop
        # Not at once: they may not be in the queue yet.
        return None if steps is None else loop.change(lambda: loop.drop(steps))

    # Drones: those that come have another owner, and may be lost because their commands failed.

    def _spawn(self, origin: str, name: str, pose: ArrayLike | None = None) -> Future[Snapshot]:
        def note(done: Future[Snapshot]) -> None:
            if done.exception() is None:
                self.owners.use(self.owners.of | {name: origin})

        begun = self._physics.world.spawn(name, pose)
        begun.add_done_callback(note)
        return begun

    def _withdraw(self, origin: str, name: str, why: str) -> None:
        simulation = self._physics.simulation
        simulation.known([name])
        if self.owners.of.get(name) != origin:
            raise ValueError(f"{origin} does not own {name}")
        simulation.withdraw(name, limits.text("reason", why))

    # Checkpoints.

    def _checkpoint(self, origin: str, number: int) -> None:
        """Contribute this simulator's commands and forces; the one that was asked keeps a base."""
        simulation, error = self._physics.simulation, ""
        orders: dict[str, Any] = {}
        try:
            orders = simulation.commands.commanders.capture(simulation.commands.moving)
            if origin == self.members.own:
                self._bases[number], self._parts[number] = self._physics.state.capture(), {}
        except ValueError as refusal:
            error = str(refusal)
        wrenches = simulation.wrenches.capture()
        self.ask("contribute", origin, number, error, orders, wrenches)

    def _contribute(
        self, origin: str, collector: str, number: int, error: str, orders: Any, wrenches: Any
    ) -> None:
        if collector != self.members.own or number not in self.checkpoints:
            return
        parts = self._parts.setdefault(number, {})
        parts[origin] = error, orders, wrenches
        if len(parts) < len(self.members.names):
            return
        future, base = self.checkpoints.pop(number), self._bases.pop(number, None)
        del self._parts[number]
        try:
            future.set_result(self._merged(base, parts))
        except Exception as refusal:
            future.set_exception(refusal)

    def _merged(self, base: Checkpoint | None, parts: Mapping[str, Any]) -> Checkpoint:
        """Return a checkpoint with the commands and forces of all simulators.

        Raises:
            ValueError: A command or force cannot be stored, or is invalid.
        """
        owners = self.owners
        merged: dict[str, Any] = {}
        wrenches: list[Any] = []
        for origin in sorted(parts):
            error, orders, forces = parts[origin]
            if error:
                raise ValueError(f"at the simulator {origin}: {shown(error, 300)}")
            merged |= {name: orders[name] for name in owners.drones_of(origin) if name in orders}
            wrenches += [one for one in forces if owners.of.get(one["name"]) == origin]
        assert base is not None
        about = base.about | {"orders": merged, "wrenches": wrenches}
        check_kept(about, self._physics.freq)
        return Checkpoint(base.arrays, about)

    def _restore(self, _: str, checkpoint: Checkpoint) -> Future[Snapshot]:
        """Restore the state of all drones, and the commands of those of this simulator."""
        if not isinstance(checkpoint, Checkpoint):
            raise ValueError(f"expected a checkpoint, got {shown(checkpoint)}")
        own = self.owners.drones_of(self.members.own)
        kept = checkpoint.about
        orders = {name: order for name, order in kept["orders"].items() if name in own}
        wrenches = [wrench for wrench in kept["wrenches"] if wrench["name"] in own]
        part = Checkpoint(checkpoint.arrays, kept | {"orders": orders, "wrenches": wrenches})
        return self._physics.state.restore(part)
