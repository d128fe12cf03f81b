"""One world of a `Sim` as one function call: packed state, parameters as constants.

A call takes 10 us or more besides the computation, nearly all of it for arguments and results:
some 10 us for each NumPy array, less for JAX's own arrays. So state and inputs share one array, in
memory that both libraries read, and so do state and results.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax import Array

from crazyflow_ros.checks.enum_members import member
from crazyflow_ros.checks.limits import read_bytes
from crazyflow_ros.control import Controller
from crazyflow_ros.drones.folders import FIGURES, folder_of
from crazyflow_ros.dynamics.obstacles import Obstacles
from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.engine.disturbances import Wind
from crazyflow_ros.engine.form import GUSTS, Leaves, counted
from crazyflow_ros.engine.slots import neighbours_together
from crazyflow_ros.estimation import Estimator
from crazyflow_ros.scene.conditions import STANDARD, Conditions
from crazyflow_ros.sim.leaves import layout
from crazyflow_ros.sim.policies import MOST_BYTES
from crazyflow_ros.xla import compiled_files
from crazyflow_ros.xla.on_device import default_platform, seen_by_jax

if TYPE_CHECKING:
    from crazyflow_ros.engine.drawn_figures import DrawnFigures
    from crazyflow_ros.engine.world_function import WorldFunction

WEATHER = f"plugins.{GUSTS}"
"""Path of the state of gusts, which a reset of some drones leaves; exists only with gusts."""
_ALIGNMENT = 64  # bytes; XLA on the CPU copies arrays with less


@dataclass(frozen=True)
class WorldProgram:
    """A function compiled for obstacles of one layout."""

    layout: object
    """Layout of the obstacles, see `sim.leaves.layout`."""
    advance: Callable[[Array | np.ndarray, Any, Obstacles | None], tuple[Any, tuple[Any, ...]]]
    """The function: arguments for JAX, other vectors of the state, and obstacles."""

    def is_for(self, obstacles: Obstacles | None) -> bool:
        """Return whether it works with these obstacles."""
        return self.layout == layout(obstacles)


class CompiledWorld:
    """The compiled function that advances all drones, and its state.

    Attributes:
        n_drones: Number of drones.
        freq: Ticks per second.
        control: Meaning of commands.
        control_period: Ticks between two runs of the outermost controller.
        controller: Position and attitude controller.
        has_rotors: Whether the model has rotors that turn.
        max_stretches: Maximum number of stretches into which the ticks of a call are divided.
        feels_wind: Whether the model has drag.
        gusts: Whether the wind has gusts.
        by_door: Number of drones that a door flies, the first ones.
        contacts: Whether the drones touch things.
        state: All leaves of the state of the dtype of positions as one vector, to read and to write
            to, see `Form.views`.
        numbers: Leaves of the state by path, one row per drone, to read and to write to; only those
            of the dtype of positions.
        conditions: Gravity, air and floor.
        form: Names of the columns, among others.
        inputs: Inputs of the drones, see `form.input_columns`, to write to; initially zeros.
        later: Commands and levels of each stretch after the first, (`max_stretches`, M, k + 1), to
            write to; the last row is unused.
        wind: `Dryden.numbers`, to write to.
        obstacles: Obstacles that the drones collide with, see `use`; initially None.
        present_program: Program in use; None before the first call.
    """

    def __init__(
        self,
        config: SimulationConfig,
        n_drones: int,
        *,
        by_door: int = 0,
        gusts: bool = False,
        contacts: bool = True,
        conditions: Conditions = STANDARD,
    ) -> None:
        """Build the simulation; the first call compiles it.

        Args:
            config: Configuration; its control mode is ignored if a door flies all drones.
            n_drones: Number of drones.
            by_door: Number of drones that a door flies, the first ones.
            gusts: The wind has gusts, which make a tick of a single drone a third slower.
            contacts: The drones touch things; not so if `MovingBodies` computes that.
            conditions: Gravity, air and floor of the world.

        Raises:
            ValueError: The configuration names something that does not exist, or a rate that does
                not divide `freq`.
        """
        self.n_drones, self.freq, self.gusts = n_drones, config.freq, gusts
        self.controller, self.conditions = member(Controller, config.controller), conditions
        self._config, self.by_door, self.contacts = config, by_door, contacts
        if config.is_own:
            form = compiled_files.traced(lambda: self._function.form, "form", self._kind)
        else:
            form = self._function.form
        self.form = form
        self.control, self.control_period = form.control, form.control_period
        self.has_rotors, self.feels_wind = form.has_rotors, form.feels_wind
        self.max_stretches = form.max_stretches
        self._counted = counted(self.freq)
        self._arguments, self._seen = _readable_by_jax(form.size, form.dtype)
        parts = form.parts(self._arguments)
        self.state, self._counts, self._gains = (parts[k] for k in ("state", "counts", "gains"))
        self.numbers = {path: x[0] for path, x in form.views(self.state).items() if x.ndim == 3}
        self.inputs, self.wind, self.later = (parts[k] for k in ("inputs", "wind", "later"))
        if "ground" in form.inputs:
            self.inputs[:, form.inputs["ground"]] = conditions.ground
        self._order = parts.get("order")
        if self._order is not None:
            self._order[:] = np.arange(n_drones)
        self._rest: tuple[Any, ...] = ()
        self.obstacles: Obstacles | None = None
        self.present_program: WorldProgram | None = None
        self.leaves = self.fresh()
        for slot in range(n_drones):
            self.tune(slot, {})

    @cached_property
    def figures(self) -> DrawnFigures | None:
        """Parameters that the drones draw, if they do."""
        if not self._config.randomize:
            return None
        from crazyflow_ros.engine.drawn_figures import DrawnFigures  # with all of `Sim`

        return DrawnFigures(self._config, self.compiled_conditions)

    def take_inputs(self, inputs: np.ndarray) -> None:
        """Copy the inputs of drones in another world, without the ground there, which is last."""
        own = min(inputs.shape[1], self.inputs.shape[1])
        self.inputs[: len(inputs), :own] = inputs[:, :own]

    def tune(self, slot: int, gains: Mapping[str, np.ndarray]) -> None:
        """Set the gains of a drone.

        Args:
            slot: Number of the drone's slot.
            gains: Gains that differ from the controller's own, by name; see `control.gains`.

        Raises:
            ValueError: A gain has no effect.
        """
        columns = [(self.form.gain(name), np.ravel(values)) for name, values in gains.items()]
        own = [gain.ravel() for gain in self.form.gains.values()]
        self._gains[slot] = np.concatenate(own) if own else 0
        for column, values in columns:
            self._gains[slot, column] = values

    @property
    def gains(self) -> Set[str]:
        """Names of the gains that have an effect."""
        return self.form.gains.keys()

    def check_wind(self, wind: Wind) -> None:
        """Check that wind has an effect, unless it is calm.

        Raises:
            ValueError: The dynamics have no drag.
        """
        if not (self.feels_wind or wind.is_calm):
            need = "wind needs dynamics first_principles or so_rpy_rotor_drag"
            raise ValueError(f"{need}, got {self._config.dynamics}")

    def is_compiled_for(self, obstacles: Obstacles | None) -> bool:
        """Return whether `use` compiles nothing for these obstacles."""
        return self.present_program is not None and self.present_program.is_for(obstacles)

    def program(self, obstacles: Obstacles | None) -> WorldProgram:
        """Return a compiled program for `use` with obstacles of this layout. Thread-safe.

        A new program is called once, so that its first use takes no longer than others.

        Args:
            obstacles: Obstacles, or None.
        """
        present = self.present_program
        if present is not None and present.is_for(obstacles):
            return present
        made = self._compiled(obstacles)
        made.advance(jax.device_put(np.zeros_like(self._arguments)), self._rest, obstacles)
        return made

    def use(self, obstacles: Obstacles | None, program: WorldProgram | None = None) -> None:
        """Let the drones collide with obstacles.

        Args:
            obstacles: Obstacles, or None.
            program: Result of `program`. By default the present program is used if it is for
                obstacles of this layout; otherwise the next call compiles.
        """
        if program is not None:
            self.present_program = program
        elif not self.is_compiled_for(obstacles):
            self.present_program = None
        self.obstacles = obstacles

    def advance(self, tick: int, stretches: Sequence[int]) -> np.ndarray:
        """Advance by one or more stretches of ticks.

        Args:
            tick: The present tick.
            stretches: Ticks of each stretch, at most `max_stretches`; 0 only evaluates
                accelerations.

        Returns:
            Output at the end of each stretch, (n, M, k), see `form.output_columns`.
        """
        if self.present_program is None:
            self.present_program = self._compiled(self.obstacles)
        counts, n = self._counts, len(stretches)
        counts[0], counts[1], counts[2 : 2 + n] = tick % self._counted, n, stretches
        packed, self._rest = self.present_program.advance(self._seen, self._rest, self.obstacles)
        results, n_state = np.asarray(packed), self.state.size
        self.state[:] = results[:n_state]
        rows = results[n_state:].reshape(self.max_stretches, self.n_drones, -1)[:n]
        if self._order is not None:
            self._order[:] = neighbours_together(rows[-1, :, self.form.outputs["pos"]])
        return rows

    @cached_property
    def _function(self) -> WorldFunction:
        """What JAX traces; built if something has to be compiled."""
        from crazyflow_ros.engine.world_function import WorldFunction  # with all of `Sim`

        return WorldFunction(
            *(self._config, self.n_drones),
            by_door=self.by_door,
            gusts=self.gusts,
            contacts=self.contacts,
            conditions=self.compiled_conditions,
        )

    @property
    def compiled_conditions(self) -> Conditions:
        """The conditions on which the compiled code depends."""
        estimates = self._config.estimator != Estimator.none
        return self.conditions.compiled_part(estimates=estimates)

    @cached_property
    def _kind(self) -> tuple[object, ...]:
        """All that the function depends on, besides this package and the versions of others."""
        config = self._config.compiled_part()
        figures = (folder_of(config.drone_model) / FIGURES).read_bytes()
        weights = ""
        if config.policy:
            weights = hashlib.sha256(read_bytes(config.policy, MOST_BYTES)).hexdigest()
        conditions = self.compiled_conditions
        own = () if conditions == STANDARD else (conditions,)
        if self.figures is not None:  # whose file may change
            own = (*own, tuple((name, x.shape) for name, x in self.figures.nominal.items()))
        kind = self.by_door, self.gusts, self.contacts
        return config, figures, weights, self.n_drones, *kind, *own

    def _compiled(self, obstacles: Obstacles | None) -> WorldProgram:
        arguments = self._seen, self._rest, obstacles
        # The code of other packages may change, and then has to be traced to be told.
        what = ("advance", self._kind) if self._config.is_own else ()
        program = compiled_files.compiled(lambda: self._function.new(), arguments, *what)
        return WorldProgram(layout(obstacles), program)

    def is_own(self, path: str) -> bool:
        """Return whether each drone has its own part of a leaf, on the second of three axes."""
        return self.form.initial[path].ndim == 3

    def fresh(self) -> Leaves:
        """Return the state of drones side by side, with reset controllers."""
        return {path: leaf.copy() for path, leaf in self.form.initial.items()}

    @property
    def leaves(self) -> Leaves:
        """Copies of the state; assign changed ones to apply them."""
        rest = [np.asarray(vector) for vector in self._rest]
        return self.form.unpacked(self.form.joined(self.state, rest))

    @leaves.setter
    def leaves(self, leaves: Leaves) -> None:
        self.state[:], self._rest = self.form.parted(self.form.packed(leaves))


def _readable_by_jax(size: int, dtype: np.dtype) -> tuple[np.ndarray, Array | np.ndarray]:
    """Return an array of zeros, and an argument that passes its numbers to compiled functions.

    On the CPU, the argument is a JAX array over the same memory: before writing to the array, wait
    for the last call to finish. Elsewhere it is the array itself, which JAX copies in each call.
    """
    memory = np.zeros(size * dtype.itemsize + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    array = memory[start : start + size * dtype.itemsize].view(dtype)
    return array, seen_by_jax(array) if default_platform() == "cpu" else array
