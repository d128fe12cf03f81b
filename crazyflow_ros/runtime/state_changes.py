"""Requests that change the state of the drones, carried out between two ticks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, replace

import numpy as np

from crazyflow_ros.engine.attachments import Attachment, carried
from crazyflow_ros.engine.disturbances import Wind
from crazyflow_ros.engine.interventions import command_rotors
from crazyflow_ros.engine.kept_state import OF_BODIES, capture, captured_bodies, restore
from crazyflow_ros.engine.snapshot import SIZES, DroneState, Fields, Snapshot
from crazyflow_ros.runtime.checkpoint import Checkpoint, about
from crazyflow_ros.runtime.loop import Loop
from crazyflow_ros.runtime.news import Setting
from crazyflow_ros.runtime.resets import ResetScope
from crazyflow_ros.runtime.roster import Roster
from crazyflow_ros.runtime.roster_plan import PreparedRoster, RosterPlan
from crazyflow_ros.runtime.simulation import FIRST_TICK, Simulation
from crazyflow_ros.runtime.world_changes import WorldChanges
from crazyflow_ros.runtime.wrenches import MIRROR
from crazyflow_ros.scene import MirrorState

StateEdit = Callable[[Snapshot], MirrorState]
"""Maps the present state to the one to continue from."""


class StateChanges:
    """Requests for another state of the drones. Any thread may ask, unless a method says otherwise.

    Args:
        simulation: The simulation to change.
        roster: Its drones.
        world: Exchanges the drones.
        loop: Carries the requests out between two ticks.
    """

    def __init__(
        self, simulation: Simulation, roster: Roster, world: WorldChanges, loop: Loop
    ) -> None:
        self._simulation, self._roster, self._world, self._loop = simulation, roster, world, loop
        self._engine, self._door, self._news = simulation.engine, simulation.door, simulation.news

    def reset(
        self,
        scope: ResetScope = ResetScope.state,
        drones: Sequence[str] | None = None,
        states: Mapping[str, DroneState] | None = None,
    ) -> Future[Snapshot]:
        """Reset in one step; the epoch increases, and steps under way are aborted.

        Args:
            scope: Parts to reset; without `time`, the clock runs on.
            drones: Only these drones; the scope is then `state`. The other drones are unaffected.
            states: States of drones after the reset.

        The future raises ValueError for an unknown drone or an impossible state.
        """
        if ResetScope.spawned not in scope and not self._roster.held:
            return self._loop.change(lambda: self._reset(scope, drones, states))

        def wanted() -> RosterPlan:
            plan = self._released(scope, drones)
            return replace(plan, poses=self._roster.start) if ResetScope.spawned in scope else plan

        def then(prepared: PreparedRoster) -> None:
            self._reset(scope, drones, states, prepared=prepared)

        return self._loop.preparation.put(wanted, then)

    def set_drone_states(self, states: Mapping[str, DroneState]) -> Future[Snapshot]:
        """Set the states of some drones, all at once; what they hold moves along, see `carried`.

        The future raises ValueError for an unknown drone or an impossible state.
        """

        def carry_out() -> None:
            values = self._checked(states, self._simulation.snapshot.names)
            held, bodies = self._roster.held, self._engine.bodies
            if held and bodies is not None:
                for name, own in carried(bodies.model, bodies.data, held, values).items():
                    if name.startswith("drone:"):
                        values[name.removeprefix("drone:")] = own
                    else:
                        bodies.place(name, own)
            for name, own in values.items():
                self._engine.put([name], own)
            self._simulation.show()
            self._simulation.commands.moved(values, self._simulation.snapshot)

        return self._loop.change(carry_out)

    def set_body_state(self, name: str, state: DroneState) -> Future[Snapshot]:
        """Set the state of a body of the world that moves freely.

        The future raises ValueError if the body does not, or the state is impossible.
        """

        def carry_out() -> None:
            values, bodies = state.checked(name), self._engine.bodies
            if bodies is None:
                raise ValueError(f"{name} does not move: nothing but drones does in this world")
            bodies.place(name, values)
            self._simulation.show()

        return self._loop.change(carry_out)

    def edit_state(
        self, plan: Callable[[], StateEdit], *, reset: bool = False, to_keyframe: bool = False
    ) -> Future[Snapshot]:
        """Set all drones to a state that depends on the present one, or on that after a reset.

        Args:
            plan: Called between two ticks, before anything changes; returns the function that maps
                the state between these ticks to the new one. It may refuse with ValueError.
            reset: Reset first, as `reset` does.
            to_keyframe: The new state is that of a keyframe, which the mirror's reset callback is
                told.
        """

        def begin(prepared: PreparedRoster | None = None) -> None:
            self._reset(
                ResetScope.state,
                edit=plan(),
                prepared=prepared,
                fill_initial_state=not to_keyframe,
            )

        if reset and self._roster.held:
            return self._loop.preparation.put(lambda: self._released(ResetScope.state), begin)

        def carry_out() -> None:
            if reset:
                begin()
            else:
                edit = plan()
                before = self._simulation.snapshot
                self._put(edit(before))
                self._simulation.show()
                after = self._simulation.snapshot
                self._simulation.commands.moved(_moved(before, after), after)

        return self._loop.change(carry_out)

    def capture_initial_state(self) -> Future[Snapshot]:
        """Make the present state, and the commands in force, the initial ones.

        Commands of a door are left out: the door sends them anew.
        """

        def carry_out() -> None:
            self._loop.driver.take_up()
            self._engine.capture_initial_state(self._simulation.snapshot)
            self._news.on_setting.tell(Setting("capture_initial_state", {}))

        return self._loop.change(carry_out)

    def notify_reset(self) -> Future[Snapshot]:
        """End the mirror's wrenches and run its reset callback; the state stays."""

        def carry_out() -> None:
            self._simulation.wrenches.replace({}, instead_of=[(MIRROR,)])
            self._simulation.notify_mirror(False)

        return self._loop.change(carry_out)

    # Checkpoints.

    def checkpoint(self) -> Future[Checkpoint]:
        """Capture everything that the future depends on, except commands from outside.

        The future raises ValueError if a drone follows a setpoint that cannot be stored.
        """
        return self._loop.requests.ask(self.capture)

    def capture(self) -> Checkpoint:
        """Capture a checkpoint at once. Physics thread only.

        Raises:
            ValueError: See `checkpoint`.
        """
        simulation, engine = self._simulation, self._engine
        self._loop.driver.take_up()
        return Checkpoint(
            capture(engine),
            about(
                engine.config,
                engine.names,
                tick=simulation.snapshot.tick,
                epoch=simulation.epoch,
                orders=simulation.commands.commanders.capture(simulation.commands.moving),
                wrenches=simulation.wrenches.capture(),
                lives=simulation.lives.capture(),
                wind=asdict(engine.wind),
                gusts=engine.world.gusts,
                gains=engine.gains.captured(),
                draws=engine.gains.draws,
                held={name: asdict(held) for name, held in self._roster.held.items()},
                by_door=self._by_door(),
                conditions=asdict(self._roster.conditions),
            ),
        )

    def restore(self, checkpoint: Checkpoint) -> Future[Snapshot]:
        """Continue from a checkpoint bit for bit; time and epoch become those of the checkpoint.

        Steps under way are aborted. Objects in the scene stay as they are.

        The future raises ValueError for a checkpoint of other drones, of another configuration, of
        a world with other gravity, air or floor, or with impossible content; in that case, nothing
        has changed.
        """
        gusts = bool(checkpoint.about.get("gusts"))
        held = {name: Attachment(**x) for name, x in checkpoint.about.get("held", {}).items()}

        def wanted() -> RosterPlan:
            return replace(self._roster.plan(), gusts=gusts, held=held)

        return self._loop.preparation.put(
            wanted, lambda prepared: self._restore(checkpoint, prepared)
        )

    # In the physics thread.

    def _reset(
        self,
        scope: ResetScope,
        drones: Sequence[str] | None = None,
        states: Mapping[str, DroneState] | None = None,
        edit: StateEdit | None = None,
        prepared: PreparedRoster | None = None,
        fill_initial_state: bool = True,
    ) -> None:
        """Reset, without showing any state in between; see `reset` and `edit_state`.

        Args:
            scope: Parts to reset.
            drones: Only these drones; then epoch and time stay.
            states: States of drones after the reset.
            edit: Maps the state after these changes to the one of all drones to continue from.
            prepared: The initial drones, if the scope has `spawned`, without what they hold.
            fill_initial_state: For the mirror's reset callback.
        """
        simulation = self._simulation
        before = simulation.snapshot.time_ns
        if drones is not None and scope is not ResetScope.state:
            raise ValueError(f"only the state of single drones can be reset, not {scope}")
        names = simulation.known(simulation.snapshot.names if drones is None else drones)
        if ResetScope.spawned in scope:
            names = tuple(self._roster.start)
        fields = self._checked({} if states is None else states, names)
        if prepared is not None:
            self._world.exchange(prepared)
        tick = FIRST_TICK if ResetScope.time in scope else simulation.snapshot.tick
        if drones is None:
            simulation.epoch += 1
        if ResetScope.state in scope:
            simulation.drop_commands(names)
            if drones is None:
                simulation.wrenches.clear(simulation.wrenches.names)
            self._engine.reset(names if drones is not None else None)
        else:
            names = ()
        if ResetScope.time in scope:
            simulation.commands.rewind(before - self._engine.output.time_ns(tick))
            simulation.wrenches.rewind(simulation.snapshot.tick - tick)
            self._engine.lost = {name: min(at, tick) for name, at in self._engine.lost.items()}
            simulation.lost.report()
        for name, values in fields.items():
            self._engine.put([name], values)
        if edit is not None:
            self._put(edit(simulation.evaluate(tick)))
        simulation.refresh(tick)
        is_of_mirror = drones is None and ResetScope.state in scope
        fill = fill_initial_state if is_of_mirror else None
        simulation.tell_reset(scope, names, fill_initial_state=fill)
        if drones is None:
            self._loop.jump("the simulation was reset")

    def _restore(self, checkpoint: Checkpoint, prepared: PreparedRoster) -> None:
        simulation, engine, kept = self._simulation, self._engine, checkpoint.about
        arrays = capture(engine)
        if prepared.model is not None:  # the one that will be there then
            arrays = {k: x for k, x in arrays.items() if not k.startswith(OF_BODIES)}
            arrays |= captured_bodies(prepared.bodies)
        here = engine.config, simulation.control, engine.names, arrays
        checkpoint.check(*here, self._by_door(), self._roster.conditions)
        wind = Wind(**kept["wind"])
        engine.world.check_wind(wind)
        self._news.on_restore.tell(checkpoint)
        self._world.exchange_world(prepared)
        restore(engine, checkpoint.arrays)
        engine.gains.restore(kept.get("gains", {}), kept.get("draws", {}))
        engine.blow(wind)
        simulation.commands.restore(kept["orders"])
        simulation.wrenches.restore(kept["wrenches"])
        if engine.bodies is not None:
            engine.bodies.apply({})  # the next tick applies those of the checkpoint
        simulation.lives.restore(kept["lives"])
        if self._door is not None:
            self._door.forget(engine.names)
        simulation.lost.report()
        simulation.epoch = kept["epoch"]
        simulation.show(kept["tick"])
        self._loop.jump("the simulation was restored")

    def _released(self, scope: ResetScope, drones: Sequence[str] | None = None) -> RosterPlan:
        """Return the present roster without what a reset lets drones let go of."""
        plan = self._roster.plan()
        if not scope & (ResetScope.state | ResetScope.spawned):
            return plan
        return replace(plan, held={}) if drones is None else plan.without(drones)

    def _put(self, state: MirrorState) -> None:
        fields = {name: getattr(state, name) for name in SIZES}
        names = self._simulation.snapshot.names
        self._engine.put(names, fields)
        if self._engine.bodies is not None and state.bodies is not None:
            self._engine.bodies.put(state.bodies)
        if state.rotor_command is not None:
            command_rotors(self._engine, names, state.rotor_command)

    def _by_door(self) -> list[str]:
        return [] if self._door is None else list(self._door.drones)

    def _checked(self, states: Mapping[str, DroneState], known: Sequence[str]) -> dict[str, Fields]:
        self._simulation.known(states, known)
        n_rotors = self._engine.world.form.n_rotors
        return {name: state.checked(name, n_rotors) for name, state in states.items()}


def _moved(before: Snapshot, after: Snapshot) -> list[str]:
    """Return the drones whose motion differs."""
    pairs = ((getattr(before, k), getattr(after, k)) for k in ("pos", "quat", "vel", "ang_vel"))
    differs = np.any([(a != b).any(axis=1) for a, b in pairs], axis=0)
    return [name for name, is_so in zip(after.names, differs.tolist()) if is_so]
