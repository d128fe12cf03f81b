"""The physics thread: what other threads may ask of the one that owns the drones' state."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

from numpy.typing import ArrayLike

from crazyflow_ros.dynamics.obstacles import Obstacles
from crazyflow_ros.engine.config import SimulationConfig, check_real_time_factor
from crazyflow_ros.engine.disturbances import Disturbance, Wind
from crazyflow_ros.engine.snapshot import DroneState, Snapshot
from crazyflow_ros.flight import Setpoint
from crazyflow_ros.runtime.changes import StateEdit
from crazyflow_ros.runtime.checkpoint import Checkpoint
from crazyflow_ros.runtime.command_source import CommandSource
from crazyflow_ros.runtime.drone_commands import Told
from crazyflow_ros.runtime.events import SnapshotCallback
from crazyflow_ros.runtime.health import Logger
from crazyflow_ros.runtime.loop import Loop
from crazyflow_ros.runtime.reset import ResetScope
from crazyflow_ros.runtime.roster import Prepared, SceneEdit
from crazyflow_ros.runtime.statistics import Statistics
from crazyflow_ros.runtime.steps import Progress, Steps
from crazyflow_ros.runtime.wrenches import Wrench
from crazyflow_ros.scene import MirrorState

T = TypeVar("T")
_MIRROR_TIMEOUT = 10.0  # s that the mirror waits for a request


class PhysicsThread(Loop):
    """The running simulation, for all other threads.

    They post commands, queue requests, which are carried out between two ticks, and read
    snapshots.
    """

    def __init__(
        self,
        config: SimulationConfig,
        names: Sequence[str],
        source: CommandSource | None = None,
        logger: Logger | None = None,
    ) -> None:
        super().__init__(config, names, source, logger)
        self.mirror.requests = MirrorRequests(self)

    def command(self, name: str, setpoint: Setpoint) -> None:
        """Tell a drone what to do from the next tick on. The latest setpoint wins.

        Raises:
            ValueError: There is no such drone, or its control mode cannot follow the setpoint.
        """
        self._simulation.known([name])
        if self._source is not None:
            raise ValueError("the drones obey ros2_control alone, see parameter ros2_control.mode")
        setpoint.check(self.control)
        self._simulation.orders.post(name, setpoint)

    def fly(self, setpoints: Mapping[str, Setpoint]) -> Future[Told]:
        """Tell drones what to do, all between the same two ticks, and hear what they do about it.

        Raises:
            ValueError: There is no such drone, or its control mode cannot follow the setpoint.
        """
        self._simulation.known(setpoints)
        if self._source is not None:
            raise ValueError("the drones obey ros2_control alone, see parameter ros2_control.mode")
        for setpoint in setpoints.values():
            setpoint.check(self.control)
        orders = self._simulation.orders
        return self._ask(lambda: orders.tell(setpoints, self.snapshot))

    def apply_wrench(self, name: str, wrench: Wrench, key: Hashable = None) -> Future[None]:
        """Let an external force and torque act on a drone from the next tick on.

        Args:
            name: Of the drone.
            wrench: What acts.
            key: Of several with the same key the latest acts; None is different from all others.

        Returns:
            Done when it has ended. Fails with `InvalidState` if a reset ends it.

        Raises:
            ValueError: There is no such drone.
        """
        self._simulation.known([name])
        return self._simulation.wrenches.post(name, wrench, object() if key is None else key)

    def end_wrench(self, key: Hashable) -> None:
        """End the wrench of a key, see `apply_wrench`, before the next tick."""
        self._simulation.wrenches.end(key)

    def pause(self) -> Future[Snapshot]:
        """Stop time. No tick follows the completion of the future; steps under way are aborted."""
        return self._request(self._pause)

    def resume(self) -> Future[Snapshot]:
        """Let time run; steps that are not done yet fail."""
        return self._request(self._resume)

    def switch(self, *, paused: bool) -> Future[tuple[bool, Snapshot]]:
        """Pause or resume; the result also says whether that changed anything."""

        def carry_out() -> tuple[bool, Snapshot]:
            changes = self.paused != paused
            if paused:
                self._pause()
            elif changes:
                self._resume()
            return changes, self.snapshot

        return self._ask(carry_out)

    def step(self, n_ticks: int, progress: Progress | None = None) -> Steps:
        """Advance by exactly `n_ticks`, at full speed. Only while paused.

        Args:
            n_ticks: How many.
            progress: Is told in the physics thread how many are done, after each stretch.

        Returns:
            A future that can be cancelled half-way. It fails with `StepAborted` if time is let run,
            the simulation is paused once more, or the drones are reset meanwhile.

        Raises:
            ValueError: There is nothing to do.
        """

        def cancel(steps: Steps) -> None:
            self._request(lambda: self._steps.drop(steps))

        steps = Steps(n_ticks, progress, cancel)
        self._requests.put(lambda: self._enqueue(steps), steps)
        self._interrupt_source()
        return steps

    def reset(
        self,
        scope: ResetScope = ResetScope.state,
        drones: Sequence[str] | None = None,
        states: Mapping[str, DroneState] | None = None,
    ) -> Future[Snapshot]:
        """Put things back between two ticks; the epoch rises, and steps under way are aborted.

        Args:
            scope: What; without `time`, time goes on.
            drones: Only these, whose state it is then. The others do not notice.
            states: What drones are put into afterwards.

        The future raises ValueError if a drone, or a state, is not one.
        """
        if ResetScope.spawned not in scope:
            return self._request(lambda: self._reset(scope, drones, states))

        def put_back(assembly: Prepared) -> Snapshot:
            self._reset(scope, drones, states, assembly=assembly)
            return self.snapshot

        return self._preparation.put(self._changes.to_start(put_back))

    def set_drone_states(self, states: Mapping[str, DroneState]) -> Future[Snapshot]:
        """Put drones into states, all at once.

        The future raises ValueError if a drone, or a state, is not one.
        """
        return self._request(lambda: self._changes.set_states(states))

    def set_state(self, state: MirrorState) -> Future[Snapshot]:
        """Put all drones into a state."""
        return self._request(lambda: self._changes.set_state(state))

    def edit_state(self, plan: Callable[[], StateEdit], *, reset: bool = False) -> Future[Snapshot]:
        """Put all drones into a state that depends on the present one, or on that after a reset.

        Args:
            plan: Gives what makes of the state between two ticks the one to go on from. Is called
                between the same two, before anything is changed, and may refuse with ValueError.
            reset: Reset before, as `reset` does.
        """

        def carry_out() -> None:
            edit = plan()
            if reset:
                self._reset(ResetScope.state, edit=edit)
            else:
                self._changes.set_state(edit(self.snapshot))

        return self._request(carry_out)

    def spawn(self, name: str, pose: ArrayLike | None = None) -> Future[Snapshot]:
        """Add a drone between two ticks; the others do not notice.

        It is prepared beside the simulation, which flies on; beyond `SimulationConfig.max_drones`
        that takes some seconds, for it is compiled for more.

        Args:
            name: Letters, digits, underscores.
            pose: (7,) position and attitude (xyzw), also after a reset; None: on the floor, where
                there is room.

        The future raises ValueError if the name or the pose is not usable, and InvalidState if the
        drones are commanded from outside.
        """
        return self._preparation.put(self._changes.spawn(name, pose))

    def despawn(self, name: str) -> Future[Snapshot]:
        """Remove a drone between two ticks.

        The future raises ValueError if there is none, and InvalidState if it is the last one or the
        drones are commanded from outside.
        """
        return self._preparation.put(self._changes.despawn(name))

    def set_scene(
        self, scene: str | Path | None = None, edit: SceneEdit | None = None
    ) -> Future[Snapshot]:
        """Put the drones, as they are, into another scene. See `Changes.set_scene`.

        It is prepared beside the simulation, `edit` is called in another thread. With more shapes
        to collide with than there is room for that takes some seconds, to compile.
        """
        return self._preparation.put(self._changes.set_scene(scene, edit))

    def set_obstacles(self, obstacles: Obstacles | None) -> Future[Snapshot]:
        """Let the drones collide with these, and no longer with what is in the scene.

        With another number of slots that takes some seconds, in which the simulation flies on.
        """
        return self._preparation.put(self._changes.set_obstacles(obstacles))

    def checkpoint(self) -> Future[Checkpoint]:
        """All that the future of the simulation depends on, but for what is commanded from outside.

        The future raises ValueError if a drone follows a setpoint that cannot be kept.
        """
        return self._ask(self._simulation.capture)

    def capture(self) -> Checkpoint:
        """The same at once, in a callback. Physics thread only."""
        return self._simulation.capture()

    def restore(self, checkpoint: Checkpoint) -> Future[Snapshot]:
        """Go on from a checkpoint bit for bit; time, and the epoch, jump to what they were then.

        Steps under way are aborted. What else is in the scene stays as it is.

        The future raises ValueError if it is one of other drones or of another configuration.
        """

        def restore(prepared: Prepared) -> Snapshot:
            self._restore(checkpoint, prepared)
            return self.snapshot

        gusts = bool(checkpoint.about.get("gusts"))
        return self._preparation.put(self._changes.to_checkpoint(gusts, restore))

    @property
    def wind(self) -> Wind:
        """That blows."""
        return self._simulation.wind

    def disturb(self, disturbance: Disturbance) -> Future[Snapshot]:
        """Let something disturb the drones from the next tick on.

        The first gusts take some seconds, to compile, in which the simulation flies on.

        The future raises ValueError if there is no such drone, or it has no effect on it.
        """
        return self._preparation.put(self._changes.disturb(disturbance))

    def hold(self, reason: str) -> Future[Snapshot]:
        """Pause, and refuse to resume and to step, with a reason, until `release`."""
        return self._request(lambda: self._hold(reason))

    def release(self) -> Future[Snapshot]:
        """Allow what `hold` has refused; time still stands."""
        return self._request(lambda: self._hold(""))

    def show_to(self, callback: SnapshotCallback) -> Future[Snapshot]:
        """Call `callback` between two ticks, with the state that the mirror has, too."""

        def show() -> None:
            self._health.call("callback that is shown the state", callback, self.snapshot)

        return self._request(show)

    def capture_initial_state(self) -> Future[Snapshot]:
        """Make the present state, and the commands in force, the initial ones."""
        return self._request(self._changes.capture_initial_state)

    def notify_reset(self) -> Future[Snapshot]:
        """Drop the mirror's staged controls and run its reset callback; the state stays."""
        notify, name = self.mirror.notify_reset, "reset callback of the mirror"
        return self._request(lambda: self._health.call(name, notify, False))

    def set_real_time_factor(self, factor: float) -> Future[Snapshot]:
        """Change the speed; 0 runs as fast as possible.

        Raises:
            ValueError: Negative, NaN or infinite.
        """
        factor = check_real_time_factor(factor)
        return self._request(lambda: self._set_factor(factor))

    def statistics(self) -> Statistics:
        """How the simulation is doing."""
        pacer = self._pacer
        return Statistics(
            requested_factor=pacer.factor,
            achieved_factor=0.0 if self.paused else pacer.achieved_factor(),
            overruns=pacer.overruns,
            stalls=pacer.stalls,
            tick=self.snapshot.tick,
            epoch=self.epoch,
            paused=self.paused,
            faults=self._health.faults,
            failures=self._health.failures,
            stalled=self._health.stalled,
        )

    def _request(self, action: Callable[[], None]) -> Future[Snapshot]:
        """Have `action` carried out between two ticks; the future has the state after it."""

        def carry_out() -> Snapshot:
            action()
            return self.snapshot

        return self._ask(carry_out)

    # In the thread itself.

    def _reset(
        self,
        scope: ResetScope,
        drones: Sequence[str] | None = None,
        states: Mapping[str, DroneState] | None = None,
        edit: StateEdit | None = None,
        assembly: Prepared | None = None,
    ) -> None:
        self._changes.reset(scope, drones, states, edit, assembly)
        if drones is None:
            self._steps.abort("the simulation was reset")
            self._pacer.restart(self.snapshot.tick)

    def _restore(self, checkpoint: Checkpoint, prepared: Prepared) -> None:
        self._changes.restore(checkpoint, prepared)
        self._steps.abort("the simulation was restored")
        self._pacer.restart(self.snapshot.tick)

    def _set_factor(self, factor: float) -> None:
        self._pacer.factor = factor
        self._anchor()


class MirrorRequests:
    """See `scene.mirror.PhysicsRequests`; each call returns when it is done."""

    def __init__(self, physics: PhysicsThread) -> None:
        self._physics = physics

    def set_state(self, state: MirrorState) -> None:
        """Go on from a state."""
        self._physics.set_state(state).result(_MIRROR_TIMEOUT)

    def capture_initial_state(self) -> None:
        """Make the present state the initial one."""
        self._physics.capture_initial_state().result(_MIRROR_TIMEOUT)

    def reset(self) -> None:
        """Reset all drones."""
        self._physics.reset().result(_MIRROR_TIMEOUT)

    def notify_reset(self) -> None:
        """Drop staged controls and run the mirror's reset callback."""
        self._physics.notify_reset().result(_MIRROR_TIMEOUT)
