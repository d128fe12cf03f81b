"""The assembly: the drones that there are, in a scene, with what they collide with there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import mujoco
import numpy as np

from crazyflow_ros.dynamics.obstacles import Obstacles
from crazyflow_ros.runtime.config import SimulationConfig
from crazyflow_ros.runtime.engine import Engine
from crazyflow_ros.runtime.health import Health
from crazyflow_ros.scene import Mirror, build_spec
from crazyflow_ros.scene.obstacles import obstacles_of

SceneEdit = Callable[[mujoco.MjSpec], None]

_MIN_SLOTS = 32  # shapes, from the first one on


def _no_edit(spec: mujoco.MjSpec) -> None:
    """Leave the scene as it is."""


class Assembly:
    """Keeps three things of one mind: slots of the engine, model of the mirror, and obstacles.

    Args:
        config: What is simulated.
        names: Of the drones.
        engine: With these drones.
        health: Takes note of what is left out, and of pauses.

    Attributes:
        start: The drones of the start, with their initial poses.
        mirror: The MuJoCo side.
    """

    def __init__(
        self, config: SimulationConfig, names: Sequence[str], engine: Engine, health: Health
    ) -> None:
        self._drone_model, self._scene = config.drone_model, config.scene
        self._engine, self._health = engine, health
        self._edit: SceneEdit = _no_edit
        self._ignored: tuple[str, ...] = ()
        self._heeds_scene = True
        self.start = self.roster()
        self.mirror = Mirror(self._model(self.start), names)
        self._see_obstacles(at_start=True)

    def roster(self) -> dict[str, np.ndarray]:
        """The drones, with their initial poses."""
        return dict(zip(self._engine.names, self._engine.initial_poses()))

    def assemble(self, roster: Mapping[str, np.ndarray]) -> None:
        """Make these the drones; those that stay do not notice.

        Raises:
            ValueError: They cannot be put into the scene; then nothing has changed.
        """
        engine, health, names = self._engine, self._health, tuple(roster)
        model = self._model(roster)
        for name in engine.names:
            if name not in roster:
                engine.remove(name)
        if len(names) > engine.n_slots:
            n_slots = max(len(names), 2 * engine.n_slots)
            health.warn(
                f"no room for {len(names)} drones: time stands while {n_slots} are compiled"
            )
            health.doing = f"compiling for {n_slots} drones"
            engine.resize(n_slots)
        for name in names:
            if name not in engine.names:
                engine.add(name, roster[name])
        engine.arrange(names)
        self.mirror.use(model, names)
        self._see_obstacles()

    def use_scene(self, scene: str | Path | None, edit: SceneEdit | None) -> None:
        """Put the drones, as they are, into another scene.

        Args:
            scene: As in `SimulationConfig`; None is the present one.
            edit: Changes the specification that it is compiled from, now and each time that drones
                come or go; it may refuse with ValueError.

        Raises:
            ValueError: There is no such scene, or it does not compile; then nothing has changed.
        """
        before = self._scene, self._edit
        self._scene = self._scene if scene is None else str(scene)
        self._edit = _no_edit if edit is None else edit
        try:
            self.mirror.use(self._model(self.roster()), self._engine.names)
        except BaseException:
            self._scene, self._edit = before
            raise
        self._see_obstacles()

    def use_obstacles(self, obstacles: Obstacles | None) -> None:
        """Let the drones collide with these, instead of what is in the scene, now and later."""
        self._heeds_scene = False
        self._engine.obstacles = obstacles

    def _model(self, roster: Mapping[str, np.ndarray]) -> mujoco.MjModel:
        """The scene with some drones.

        Raises:
            ValueError: It does not compile.
        """
        spec = build_spec(
            self._drone_model,
            tuple(roster),
            scene=self._scene,
            poses=np.array(list(roster.values())),
        )
        self._edit(spec)
        return spec.compile()

    def _see_obstacles(self, *, at_start: bool = False) -> None:
        """Let the drones collide with what is in the mirror's model."""
        if not self._heeds_scene:
            return
        engine, health = self._engine, self._health
        room = engine.obstacles.n_slots if engine.obstacles is not None else 0

        def slots(shapes: int) -> int:
            return room if shapes <= room else max(shapes, _MIN_SLOTS, 2 * room)

        found, ignored = obstacles_of(self.mirror.model, slots=slots)
        for why in ignored:
            if why not in self._ignored:
                health.warn(why)
        self._ignored = ignored
        if found.n_slots > room and not at_start:
            health.warn(
                f"time stands while collisions with up to {found.n_slots} shapes are compiled"
            )
        engine.obstacles = found if found.n_slots else None
