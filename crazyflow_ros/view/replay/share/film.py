"""A recorded flight as a film, drawn by rays: neither a GPU nor a display is needed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from crazyflow_ros.checks.limits import unknown
from crazyflow_ros.raytracing.optics import Optics
from crazyflow_ros.raytracing.renderer import PictureFn, RayCamera
from crazyflow_ros.raytracing.tracer import Frames
from crazyflow_ros.ros.messages import NS
from crazyflow_ros.scene.shapes import VisibleShape
from crazyflow_ros.sim.compile.cores import n_cores, on_each_core
from crazyflow_ros.view.backdrop import scenery_of
from crazyflow_ros.view.recording import Recording
from crazyflow_ros.view.replay.recorded_samples import read_samples
from crazyflow_ros.view.replay.share.film_camera import FOV, FilmView, Shots, shots
from crazyflow_ros.view.replay.share.film_file import check_suffix, film_file
from crazyflow_ros.view.replay.share.film_scene import FilmScene
from crazyflow_ros.view.replay.share.flight_content import Tell
from crazyflow_ros.view.replay.share.flight_states import poses_at
from crazyflow_ros.view.replay.share.span import Span, new_file
from crazyflow_ros.view.swarm import radius_of

SIZES, RATES, SPEEDS = (16, 3840), (1.0, 60.0), (0.05, 20.0)
"""Least and greatest side [pixels], pictures per second, and speed."""
MOST_PICTURES = 20_000
MOST_DRONES = 50
_STATE_RATE = 100.0  # Hz, of states that are read
_MOST_STATES = 60_000
_WIDTH = 0.04  # of the picture's height, as wide as drones are drawn at least
_LARGEST = 10.0  # times their real size

_take = jax.jit(PictureFn.__call__)  # compiled once for worlds of the same structure


@dataclass(frozen=True)
class FilmCfg:
    """How a flight is filmed."""

    width: int = 1920
    """Pixels in a row; even."""
    height: int = 1080
    """Pixels in a column; even."""
    fps: float = 30.0
    """Pictures per second."""
    speed: float = 1.0
    """Multiple of the recorded speed."""
    view: FilmView = FilmView.ORBIT
    """What the camera does."""
    drone: str = ""
    """Which drone the camera follows; by default the first one."""

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            ValueError: One is out of range.
        """
        for side in (self.width, self.height):
            if not SIZES[0] <= side <= SIZES[1] or side % 2:
                raise ValueError(
                    f"a picture's sides must be even, from {SIZES[0]} to {SIZES[1]} pixels, got "
                    f"{self.width}x{self.height}"
                )
        for name, value, (least, most) in (
            ("fps", self.fps, RATES),
            ("speed", self.speed, SPEEDS),
        ):
            if not (math.isfinite(value) and least <= value <= most):
                raise ValueError(f"{name} must be from {least:g} to {most:g}, got {value:g}")


def write_film(
    recording: Recording,
    span: Span,
    path: Path,
    cfg: FilmCfg,
    tell: Tell = lambda _: None,
    *,
    overwrite: bool = False,
) -> None:
    """Write a part of a recorded flight as a film.

    Args:
        recording: The recording.
        span: The part.
        path: The file, `.mp4`, `.gif` or `.webp`.
        cfg: How it is filmed.
        tell: Told how far it is.
        overwrite: Whether an existing file is replaced.

    Raises:
        OSError: The recording cannot be read, or the file not written.
        ValueError: The recording is damaged or has nothing to see, or the film is too long.
        ModuleNotFoundError: The package that writes such files is not installed.
    """
    check_suffix(path)
    film = Film(recording, span, cfg)
    with (
        new_file(path, overwrite=overwrite) as part,
        film_file(part, (cfg.width, cfg.height), cfg.fps) as file,
    ):
        for number, picture in enumerate(film.pictures(), 1):
            file.add(picture)
            tell(number / len(film.times_ns))


class Film:
    """The pictures of a film.

    Args:
        recording: The recording; its reading position changes.
        span: The part.
        cfg: How it is filmed.

    Attributes:
        times_ns: Time of each picture in the file [ns], shape (K,).
        names: Names of the drones, M of them.
        position: Their positions [m], shape (K, M, 3); NaN where a drone is not there.
        shots: The camera of each picture.

    Raises:
        OSError: The recording cannot be read.
        ValueError: It is damaged or has nothing to see, or the film is too long.
    """

    def __init__(self, recording: Recording, span: Span, cfg: FilmCfg) -> None:
        self._recording, self._cfg = recording, cfg
        count = max(round(span.seconds / cfg.speed * cfg.fps), 1)
        if count > MOST_PICTURES:
            raise ValueError(
                f"{count} pictures are too many, at most {MOST_PICTURES}: choose fewer per second, "
                "a higher speed, or a part with --begin and --end"
            )
        steps = np.arange(count) / cfg.fps * cfg.speed * NS
        self.times_ns = span.begin_ns + np.rint(steps).astype(np.int64)
        most = min(round(_STATE_RATE * span.seconds) + 1, _MOST_STATES)
        samples = read_samples(recording, span.begin_ns, span.end_ns, most)
        self.names = list(dict.fromkeys(name for frame in samples.frames for name in frame.names))
        if not 0 < len(self.names) <= MOST_DRONES:
            raise ValueError(
                f"a film shows 1 to {MOST_DRONES} drones, {recording.file.path.name} has "
                f"{len(self.names)} in these {span.seconds:.2f} s"
            )
        if cfg.drone and cfg.drone not in self.names:
            raise ValueError(unknown("drone", cfg.drone, self.names))
        tracks = [poses_at(samples.of(name), self.times_ns) for name in self.names]
        self.position, self._attitude = (np.stack(parts, axis=1) for parts in zip(*tracks))
        if not np.isfinite(self.position).any():
            raise ValueError(f"{recording.file.path.name} has no finite places of drones there")
        followed = self.names.index(cfg.drone or self.names[0])
        still = [shape for shape in self._world(0) if not shape.frame]
        aspect, floor = cfg.width / cfg.height, scenery_of(still).floor
        self.shots: Shots = shots(cfg.view, self.position, followed, cfg.fps, aspect, floor)

    def _world(self, number: int) -> list[VisibleShape]:
        return self._recording.world(int(self.times_ns[number]))

    def pictures(self) -> Iterator[np.ndarray]:
        """Yield the pictures, (height, width, 3) uint8.

        Raises:
            OSError: The recording cannot be read.
            ValueError: It is damaged, or its world has more than rays can draw.
        """
        begin, count = 0, len(self.times_ns)
        while begin < count:
            world = self._world(begin)
            end = begin + 1
            while end < count and self._world(end) is world:
                end += 1
            yield from self._in_world(world, range(begin, end))
            begin = end

    def _in_world(self, world: Sequence[VisibleShape], numbers: range) -> Iterator[np.ndarray]:
        scene = FilmScene(world, self._recording.looks, len(self.names), self._size())
        optics = Optics.of_camera(scene.model, 0, self._cfg.width, self._cfg.height)
        camera = RayCamera(optics, (0, 1, 2), ("rgb",), textures=True, shadows=True)
        pictures = PictureFn(scene.model, camera)
        axes, n_parts = self.shots.axes, n_cores()
        for first in range(numbers.start, numbers.stop, n_parts):
            part = range(first, min(first + n_parts, numbers.stop))
            frames = [self._frames(scene, number, axes) for number in part]
            taken: list[np.ndarray] = [np.empty(0)] * len(part)

            def draw(row: int, frames: Sequence[tuple[Frames, Frames]] = frames) -> None:
                taken[row] = np.asarray(_take(pictures, *frames[row])["rgb"][0])  # noqa: B023

            on_each_core(draw, len(part))
            yield from taken

    def _frames(self, scene: FilmScene, number: int, axes: np.ndarray) -> tuple[Frames, Frames]:
        eye, frame = self.shots.eyes[number], self._recording.frame(int(self.times_ns[number]))
        bodies = None if frame is None else frame.bodies
        geoms = scene.frames(self.position[number], self._attitude[number], bodies, eye)
        cast = [jnp.asarray(part[None], jnp.float32) for part in (*geoms, eye, axes[number])]
        return Frames(*cast[:2]), Frames(*cast[2:])

    def _size(self) -> float:
        """Return how large drones are drawn, so that they are seen."""
        away = np.linalg.norm(self.shots.eyes - self.shots.targets, axis=1)
        width = 2 * radius_of(self._recording.looks) / (2 * math.tan(FOV / 2) * np.median(away))
        return float(np.clip(_WIDTH / width, 1.0, _LARGEST))
