"""What is seen in pictures: compared with a pinhole camera of its own."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from page_tab import pinhole

from crazyflow_ros.view.glb import before_curve, linear
from crazyflow_ros.view.lens import FOV, CameraView, Picture, direction, fit
from crazyflow_ros.view.shown import AUTOMATIC, CHOICES, LARGEST, PIXELS, DrawnSize, needed_size

PICTURES = (
    Picture.uncovered(1280, 720),
    Picture(1280, 720, 0, 0, 940, 720),  # beside the panel
    Picture(390, 844, 0, 40, 390, 420),  # above the sheet of a phone
)


def pixels(points: np.ndarray, view: CameraView, picture: Picture) -> np.ndarray:
    return pinhole(points, *view, FOV, (picture.width, picture.height))


@pytest.mark.parametrize("picture", PICTURES)
@pytest.mark.parametrize("elevation", [15, 45, 84])
def test_everything_fits_into_the_free_part_of_the_picture_and_fills_it(
    picture: Picture, elevation: float
) -> None:
    random = np.random.default_rng(3)
    for _ in range(20):
        points = random.uniform(-1, 1, (random.integers(1, 8), 3)) * random.uniform(0.1, 2, 3)
        towards = direction(random.uniform(-3, 3), math.radians(elevation))
        view = fit(points, 0.3, towards, picture)
        seen = pixels(points, view, picture)
        low, high = np.array([picture.left, picture.top]), np.array([picture.right, picture.bottom])
        assert (seen > low).all() and (seen < high).all()
        nearer = CameraView(view.position + 0.2 * (view.look_at - view.position), view.look_at)
        balls = random.normal(size=(200, 1, 3))
        balls *= 0.3 / np.linalg.norm(balls, axis=2, keepdims=True)
        around = (points + balls).reshape(-1, 3)
        seen = pixels(around, nearer, picture)
        assert (seen < low).any() or (seen > high).any(), "it could be larger"


@pytest.mark.parametrize(
    "content",
    [
        None, [], {"width": 100, "height": 100},
        {"width": 0, "height": 100, "free": [0, 0, 0, 100]},
        {"width": 100, "height": math.nan, "free": [0, 0, 1, 1]},
        {"width": 100, "height": 1e9, "free": [0, 0, 1, 1]},
        {"width": "100", "height": True, "free": [0, 0, 1, 1]},
        {"width": 100, "height": 100, "free": [0, 0, 1]},
    ],
)  # fmt: skip
def test_what_is_no_picture_is_refused(content: Any) -> None:
    with pytest.raises(ValueError, match="expected"):
        Picture.read(content)


def test_a_picture_that_is_all_covered_counts_as_uncovered() -> None:
    for free in ([10, 10, 20, 200], [0, 0, 900, 200]):
        read = Picture.read({"width": 300, "height": 200, "free": free})
        assert read == Picture.uncovered(300, 200)


def test_drones_are_as_large_as_asked_or_as_needed() -> None:
    size = DrawnSize()
    assert size.value == 1
    focal, diameter, depth = 869.0, 0.1, 4.0
    least = needed_size(diameter, depth, focal)
    assert focal * least * diameter / depth == pytest.approx(PIXELS)
    size.choose(AUTOMATIC, [0.2, least], math.inf)
    assert least <= size.value < 1.25 * least
    before = size.value
    for change in (1.0, 0.95, 0.8, 1.0):
        size.choose(AUTOMATIC, [least * change], math.inf)
        assert size.value == before, "it flickers"
    for near in (0.1, 1.0, 0.9):
        size.choose(AUTOMATIC, [near], math.inf)
        assert size.value == 1, "near drones are as large as they are"
    size.choose(AUTOMATIC, [100.0], math.inf)
    assert size.value == LARGEST
    size.choose(AUTOMATIC, [], math.inf)
    assert size.value == LARGEST, "without a picture nothing changes"
    size.choose(CHOICES[2], [100.0], 0.0)
    assert size.value == 2


def test_the_size_changes_smoothly() -> None:
    size, seen = DrawnSize(), []
    for _ in range(60):
        size.choose(AUTOMATIC, [5.0], 1 / 30)
        seen.append(size.value)
    steps = np.diff([1.0, *seen])
    assert (steps >= 0).all() and steps.max() < 1 and seen[-1] >= 5.0
    assert seen[-1] == seen[-2], "it ends"


def test_colours_are_what_the_browsers_curve_is_undone_for() -> None:
    """The curve of three.js, written out here as in its shader."""
    into = np.array(
        [0.59719, 0.07600, 0.02840, 0.35458, 0.90834, 0.13383, 0.04823, 0.01566, 0.83777]
    )
    out = np.array(
        [1.60475, -0.10208, -0.00327, -0.53108, 1.10813, -0.07276, -0.07367, -0.00605, 1.07602]
    )
    seen = np.random.default_rng(4).uniform(0.1, 0.9, (500, 1)) + np.random.default_rng(5).uniform(
        -0.09, 0.09, (500, 3)
    )
    v = before_curve(seen) / 0.6 @ into.reshape(3, 3)
    v = (v * (v + 0.0245786) - 0.000090537) / (v * (0.983729 * v + 0.4329510) + 0.238081)
    assert np.allclose(v @ out.reshape(3, 3), linear(seen), atol=2e-3)
