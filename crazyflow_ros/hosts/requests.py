"""The requests that all simulators carry out, each for the one that was asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any

from crazyflow_ros.checks import limits
from crazyflow_ros.checks.limits import shown, unknown
from crazyflow_ros.hosts.calls import call, read_call
from crazyflow_ros.hosts.rounds import Rounds
from crazyflow_ros.hosts.settings import Hosts
from crazyflow_ros.runtime import Checkpoint, PhysicsThread, Snapshot, Steps
from crazyflow_ros.runtime.checkpoint_content import check_kept
from crazyflow_ros.runtime.health import Health
from crazyflow_ros.runtime.loop import Loop
from crazyflow_ros.runtime.resets import ResetScope
from crazyflow_ros.runtime.simulation import Simulation

_METHODS = (
    *("pause", "resume", "switch", "set_real_time_factor", "reset", "set_drone_states"),
    *("capture_initial_state", "notify_reset", "restart", "set_upright", "tune", "untune"),
    *("restart_estimate", "tell_pose", "spawn", "despawn", "disturb", "set_controller"),
)
"""Methods of `PhysicsThread` that need nothing else."""


class SharedRequests:
    """Carries out the requests of all simulators. Physics thread.

    Args:
        thread: The physics thread of this simulator.
        hosts: Its settings.

    Attributes:
        own_steps: Steps of this simulator that are not agreed yet, by number.
        checkpoints: Checkpoints for this simulator that are not complete yet, by number.
    """

    def __init__(self, thread: PhysicsThread, hosts: Hosts) -> None:
        self._thread, self._hosts = thread, hosts
        self.own_steps: dict[int, Steps] = {}
        self.checkpoints: dict[int, Future[Checkpoint]] = {}
        self._steps: dict[tuple[str, int], Steps] = {}
        self._parts: dict[int, dict[str, Any]] = {}  # of checkpoints
        self._bases: dict[int, Checkpoint] = {}
        # Of all requests, those that do more than a method of the thread.
        self._special: dict[str, Callable[..., Future[Any] | None]] = {
            "nothing": lambda _: None,
            "step": self._step,
            "drop_steps": self._drop_steps,
            "withdraw": self._withdraw,
            "checkpoint": self._checkpoint,
            "contribute": self._contribute,
            "restore": self._restore,
        }

    def connect(self, rounds: Rounds, simulation: Simulation, loop: Loop, health: Health) -> None:
        """Take what needs these requests to be built."""
        self._rounds, self._simulation, self._loop, self._health = rounds, simulation, loop, health

    def ask(self, name: str, *arguments: Any) -> Future[Any]:
        """Let all carry out a request at the same tick as that under way, if there is one.

        The future is done once this simulator has carried it out.
        """
        future: Future[Any] = Future()
        self._rounds.ask(call(name, arguments, {}), future, once_here=True)
        return future

    def carry_out(self, origin: str, request: dict[str, Any]) -> Future[Any] | None:
        """Begin a request of a simulator; it raises nothing."""
        name = ""
        try:
            name, arguments, by_name = read_call(request)
            begun = self._begin(name)(origin, *arguments, **by_name)
        except Exception as error:
            begun = Future()
            begun.set_exception(error)
        if begun is not None:
            begun.add_done_callback(partial(self._note_end, origin, name, request))
        return begun

    def _begin(self, name: str) -> Callable[..., Future[Any] | None]:
        if name in self._special:
            return self._special[name]
        if name not in _METHODS:
            raise ValueError(unknown("request", name, [*_METHODS, *self._special]))
        method = getattr(PhysicsThread, name)
        return lambda _, *arguments, **by_name: method(self._thread, *arguments, **by_name)

    def _note_end(self, origin: str, name: str, request: Any, done: Future[Any]) -> None:
        error = done.exception()
        if error is not None:
            if origin != self._hosts.name:
                self._health.warn(f"{shown(name)}, which {origin} asked for, is refused: {error}")
            return
        owners, (_, arguments, by_name) = self._rounds.owners, read_call(request)
        if name == "spawn":
            owners[[*arguments, *by_name.values()][0]] = origin
        elif name == "reset" and ResetScope.spawned in [*arguments, *by_name.values()][0]:
            self._rounds.owners = self._rounds.members.owners()

    # Steps.

    def _step(self, origin: str, number: int, n_ticks: int) -> None:
        if type(n_ticks) is not int or not 1 <= n_ticks <= limits.STEPS:
            raise ValueError(f"ticks must be from 1 to {limits.STEPS}, got {shown(n_ticks)}")
        if origin == self._hosts.name:
            steps = self.own_steps.pop(number)
            self._loop.enqueue(steps)
        else:
            steps = PhysicsThread.step(self._thread, n_ticks)
        self._steps[origin, number] = steps
        steps.add_done_callback(lambda _: self._steps.pop((origin, number), None))

    def _drop_steps(self, origin: str, number: int) -> Future[Any] | None:
        steps = self._steps.get((origin, number))
        # Not at once: they may not be in the queue yet.
        return None if steps is None else self._loop.ask(lambda: self._loop.drop(steps))

    # Drones that are lost because their commands failed.

    def _withdraw(self, origin: str, name: str, why: str) -> None:
        self._simulation.known([name])
        if self._rounds.owners.get(name) != origin:
            raise ValueError(f"{origin} does not own {name}")
        self._simulation.withdraw(name, limits.text("reason", why))

    # Checkpoints.

    def _checkpoint(self, origin: str, number: int) -> None:
        """Say which commands and forces there are here; the simulator that was asked has a base."""
        commands, error = self._simulation.commands, ""
        orders: dict[str, Any] = {}
        try:
            orders = commands.capture()
            if origin == self._hosts.name:
                self._bases[number], self._parts[number] = self._simulation.capture(), {}
        except ValueError as refusal:
            error = str(refusal)
        wrenches = self._simulation.wrenches.capture()
        self.ask("contribute", origin, number, error, orders, wrenches)

    def _contribute(
        self, origin: str, collector: str, number: int, error: str, orders: Any, wrenches: Any
    ) -> None:
        if collector != self._hosts.name or number not in self.checkpoints:
            return
        parts = self._parts.setdefault(number, {})
        parts[origin] = error, orders, wrenches
        if len(parts) < len(self._rounds.members.names):
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
            ValueError: One cannot be stored, or is none.
        """
        merged: dict[str, Any] = {}
        wrenches: list[Any] = []
        for origin in sorted(parts):
            error, orders, forces = parts[origin]
            if error:
                raise ValueError(f"at the simulator {origin}: {shown(error, 300)}")
            merged |= {
                name: orders[name] for name in self._rounds.drones_of(origin) if name in orders
            }
            wrenches += [one for one in forces if self._rounds.owners.get(one["name"]) == origin]
        assert base is not None
        about = base.about | {"orders": merged, "wrenches": wrenches}
        check_kept(about, self._thread.freq)
        return Checkpoint(base.arrays, about)

    def _restore(self, _: str, checkpoint: Checkpoint) -> Future[Snapshot]:
        """Restore the state of all drones, and the commands of those of this simulator."""
        if not isinstance(checkpoint, Checkpoint):
            raise ValueError(f"expected a checkpoint, got {shown(checkpoint)}")
        own = self._rounds.drones_of(self._hosts.name)
        kept = checkpoint.about
        orders = {name: order for name, order in kept["orders"].items() if name in own}
        wrenches = [wrench for wrench in kept["wrenches"] if wrench["name"] in own]
        part = Checkpoint(checkpoint.arrays, kept | {"orders": orders, "wrenches": wrenches})
        return PhysicsThread.restore(self._thread, part)
