"""A recorded flight as a film: its pictures show the drones where they were."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("viser", reason="`view` needs viser")

from known_recordings import NS, states, write
from page_tab import pinhole
from PIL import Image

from crazyflow_ros.ros.messages.scene_markers import markers_of
from crazyflow_ros.scene.shapes import ShapeForm, VisibleShape
from crazyflow_ros.view.__main__ import main
from crazyflow_ros.view.recording import Recording
from crazyflow_ros.view.replay.share.film import Film, FilmCfg
from crazyflow_ros.view.replay.share.film_camera import FOV, FilmView, shots
from crazyflow_ros.view.replay.share.span import span_of

PARAMETERS = {"drone_model": "cf2x_L250"}
SIZE, FPS = (160, 120), 5
SECONDS = 2.0


def place(time: float) -> tuple[float, float, float]:
    """Where the drone is [m]."""
    return 0.6 * time - 0.6, 0.4 * math.sin(3 * time), 1.0 + 0.2 * time


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One drone flies, beside a box, and another one comes later."""
    pose = np.array([0.0, 1.5, 0.25]), np.array([0.0, 0.0, 0.0, 1.0])
    blue = np.array([0.1, 0.2, 0.9, 1.0])
    box = VisibleShape(ShapeForm.BOX, *pose, np.array([0.5, 0.5, 0.5]), blue)
    entries = [(0, "/crazyflow/scene", markers_of([box]))]
    for k in range(round(50 * SECONDS) + 1):
        time = k / 50
        there = {"cf0": place(time)} | ({"cf1": (0.0, -0.5, 0.5)} if time > 1 else {})
        entries.append(states(k * NS // 50, there))
    return write(tmp_path_factory.mktemp("film") / "flight.mcap", entries, PARAMETERS)


def cut(recorded: Path, file: Path, *options: str) -> int:
    """Write a film with few and small pictures."""
    size = f"{SIZE[0]}x{SIZE[1]}"
    shared = ("--camera", "fixed", "--size", size, "--fps", str(FPS))
    return main([str(recorded), "--video", str(file), *shared, *options])


def check(pictures: np.ndarray, recorded: Path) -> None:
    """The pixels that change between two pictures are around the drone that moves.

    Args:
        pictures: (K, height, width, 3).
        recorded: The recording.
    """
    recording = Recording(recorded)
    film = Film(recording, span_of(recording), FilmCfg(*SIZE, fps=FPS, view=FilmView.FIXED))
    assert len(pictures) == len(film.times_ns) == SECONDS * FPS
    eye, target = film.shots.eyes[0], film.shots.targets[0]
    np.testing.assert_array_equal(film.shots.eyes, np.tile(eye, (len(pictures), 1)))
    background = np.median(pictures[: len(pictures) // 2], axis=0)
    for number in range(len(pictures) // 2):  # as long as it is alone
        differs = np.abs(pictures[number] - background).max(axis=2) > 40
        rows, columns = np.nonzero(differs)
        assert len(rows) >= 6
        expected = pinhole(np.array([place(number / FPS)]), eye, target, FOV, SIZE)[0]
        seen = np.stack([columns, rows], axis=1) + 0.5
        near = seen[np.linalg.norm(seen - expected, axis=1) < 12]
        assert len(near) >= 6
        np.testing.assert_allclose(near.mean(axis=0), expected, atol=3.5)


def test_a_video_shows_the_flight(recorded: Path, tmp_path: Path) -> None:
    av = pytest.importorskip("av", reason="videos need the Python package av")
    file = tmp_path / "flight.mp4"
    assert cut(recorded, file) == 0
    with av.open(str(file)) as container:
        stream = container.streams.video[0]
        assert (stream.codec_context.name, float(stream.average_rate)) == ("h264", FPS)
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(stream)]
    assert frames[0].shape == (SIZE[1], SIZE[0], 3)
    check(np.array(frames, float), recorded)
    assert not list(tmp_path.glob(".*"))


def test_a_gif_shows_the_flight(recorded: Path, tmp_path: Path) -> None:
    file = tmp_path / "flight.gif"
    assert cut(recorded, file) == 0
    with Image.open(file) as film:
        assert film.size == SIZE and film.info["duration"] == 1000 / FPS
        pictures = []
        for number in range(film.n_frames):
            film.seek(number)
            pictures.append(np.asarray(film.convert("RGB"), float))
    check(np.array(pictures), recorded)


def test_cameras_orbit_follow_and_stand_still() -> None:
    times = np.arange(200) / 20
    moving = np.stack([times, np.zeros(200), 1 + 0.1 * times], axis=1)
    gone = np.where(times[:, None] < 5, [0.0, 1.0, 1.0], np.nan)
    places = np.stack([moving, gone], axis=1)
    found = {view: shots(view, places, 0, 20.0, 16 / 9, 0.0) for view in FilmView}
    for view, shot in found.items():
        assert np.isfinite(shot.eyes).all() and (shot.eyes[:, 2] > 0.1).all()
        identity = shot.axes.transpose(0, 2, 1) @ shot.axes
        np.testing.assert_allclose(identity, np.tile(np.eye(3), (200, 1, 1)), atol=1e-12)
        steps = np.linalg.norm(np.diff(shot.eyes, axis=0), axis=1)
        assert (steps.max() == 0) == (view is FilmView.FIXED)
        assert steps.max() < 1.0, view
    follow = found[FilmView.FOLLOW]
    np.testing.assert_allclose(follow.targets[50:-50], moving[50:-50], atol=1e-6)
    away = follow.eyes - follow.targets
    np.testing.assert_allclose(away, np.tile(away[0], (200, 1)), atol=1e-9)
    orbit = found[FilmView.ORBIT]
    away = orbit.eyes - orbit.targets
    turned = np.unwrap(np.arctan2(away[:, 1], away[:, 0]))
    np.testing.assert_allclose(np.diff(turned), math.radians(10) / 20, atol=1e-9)
    for view in (FilmView.ORBIT, FilmView.FIXED):  # all drones are in the picture
        for number in range(0, 200, 10):
            shot, there = found[view], places[number][np.isfinite(places[number]).all(axis=1)]
            pixels = pinhole(there, shot.eyes[number], shot.targets[number], FOV, (1920, 1080))
            assert ((pixels > 0) & (pixels < (1920, 1080))).all(), view


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"width": 161}, "even, from 16 to 3840 pixels, got 161x1080"),
        ({"height": 8}, "got 1920x8"),
        ({"fps": 0.0}, "fps must be from 1 to 60, got 0"),
        ({"speed": math.nan}, "speed must be from 0.05 to 20, got nan"),
    ],
)
def test_a_film_that_cannot_be_is_refused(values: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FilmCfg(**values)  # type: ignore[arg-type]


def test_what_cannot_be_filmed_is_refused(recorded: Path) -> None:
    recording = Recording(recorded)
    span = span_of(recording)
    with pytest.raises(ValueError, match="there is no drone 'cf9', only cf0, cf1"):
        Film(recording, span, FilmCfg(drone="cf9"))
    still = [states(0, {"cf0": (0, 0, 1)}), states(600 * NS, {"cf0": (0, 0, 1)})]
    long = Recording(write(recorded.with_name("long.mcap"), still, PARAMETERS))
    with pytest.raises(ValueError, match="36000 pictures are too many, at most 20000"):
        Film(long, span_of(long), FilmCfg(fps=60.0))
