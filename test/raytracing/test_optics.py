"""Lenses against the formulas of OpenCV."""

from __future__ import annotations

import math
from typing import Any

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opencv_lenses import projected

from crazyflow_ros.raytracing import Distortion, Lens, Optics
from crazyflow_ros.scene.intrinsics import Intrinsics

CAMERA = Intrinsics(44, 28, 31.0, 33.0, 23.0, 12.0)
FISHEYE = Distortion("equidistant", (0.06, -0.02, 0.004, -5e-4))


def check(distortion: Distortion) -> Lens:
    """The rays of pixels are projected to their pixels, and slopes are differences."""
    optics = Optics(CAMERA, distortion=distortion)
    lens = optics.lens()
    column, row = projected(optics, lens.x, -lens.y)
    expected = np.meshgrid(np.arange(44), np.arange(28))
    np.testing.assert_allclose([column, row], expected, atol=1e-5)
    step, slopes = 1e-6, optics.slopes(lens)
    for axis, (dx, dy) in enumerate(((step, 0.0), (0.0, step))):
        after, before = (
            np.stack(projected(optics, lens.x + s * dx, -(lens.y + s * dy)), -1) for s in (1, -1)
        )
        differences = (after - before) / (2 * step)
        np.testing.assert_allclose(slopes[..., axis], differences, rtol=1e-5, atol=1e-4)
    return lens


COEFFICIENT = st.floats(-0.02, 0.02)  # with which no lens folds the picture


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([("plumb_bob", 4), ("plumb_bob", 5), ("rational_polynomial", 8)]),
    st.lists(COEFFICIENT, min_size=8, max_size=8),
)
def test_rays_of_pixels_are_those_that_the_lens_sends_there(kind: Any, numbers: Any) -> None:
    model, count = kind
    tangential = [0.1 * x for x in numbers[2:4]]
    check(Distortion(model, (*numbers[:2], *tangential, *numbers[4:count])))


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(-0.02, 0.05), min_size=4, max_size=4))
def test_rays_of_a_fisheye(numbers: list[float]) -> None:
    check(Distortion("equidistant", tuple(numbers)))


@pytest.mark.parametrize("coefficients", [(0.0, 0.0, 0.0, 0.0), (0.03, -0.004, 2e-4, 1e-5)])
def test_a_fisheye_sees_what_is_beside_and_behind_it(coefficients: tuple[float, ...]) -> None:
    """Its rays are where the formula of the fisheye says, at up to 120 degrees from the axis."""
    focal = 60 / math.radians(120.0)
    size = Intrinsics(121, 91, focal, 1.1 * focal, 60.0, 40.0)
    optics = Optics(size, distortion=Distortion("equidistant", coefficients))
    lens = optics.lens()
    assert lens.z is not None
    rays = np.stack([lens.x, lens.y, lens.z], axis=-1)
    np.testing.assert_allclose(np.linalg.norm(rays, axis=-1), 1.0, rtol=1e-12)

    def pixels(rays: np.ndarray) -> np.ndarray:
        x, y, z = np.moveaxis(rays, -1, 0)
        return np.stack(projected(optics, x, -y, -z), axis=-1)

    expected = np.stack(np.meshgrid(np.arange(121), np.arange(91)), axis=-1)
    np.testing.assert_allclose(pixels(rays), expected, atol=1e-6)
    assert rays[40, 0, 2] > 0.3 and rays[40, 60, 2] == -1.0
    slopes, step = optics.slopes(lens), 1e-6
    for axis in range(3):
        aside = step * np.eye(3)[axis]
        differences = (pixels(rays + aside) - pixels(rays - aside)) / (2 * step)
        np.testing.assert_allclose(slopes[..., axis], differences, rtol=1e-4, atol=1e-4)


def test_without_coefficients_nothing_is_bent() -> None:
    for model in ("plumb_bob", "equidistant"):
        lens = Optics(CAMERA, distortion=Distortion(model)).lens()  # type: ignore[arg-type]
        np.testing.assert_array_equal(lens.x[0], (np.arange(44) - 23.0) / 31.0)
        np.testing.assert_array_equal(lens.y[:, 0], (12.0 - np.arange(28)) / 33.0)


@pytest.mark.parametrize(
    ("model", "coefficients", "message"),
    [
        ("plumb_bob", (-0.6, 0.0, 0.0, 0.0), "column 0, row 0 gets no ray"),
        ("equidistant", (-0.4, 0.0, 0.0, 0.0), r"\(-0.4, .* gets no ray"),
        ("equidistant", (0.0, 0.0, 0.0, 0.0), "column 0, row 0 gets no ray$"),
        ("plumb_bob", (), "column 0, row 0 gets no ray within 85 degrees of the axis"),
    ],
)
def test_pixels_without_rays_are_named(model: Any, coefficients: Any, message: str) -> None:
    focal = 16.0 if any(coefficients) else 1.5
    wide = Intrinsics(44, 28, focal, focal, 21.5, 13.5)
    with pytest.raises(ValueError, match=message):
        Optics(wide, distortion=Distortion(model, coefficients)).lens()


def test_an_orthographic_camera_has_no_distortion() -> None:
    camera = '<camera name="flat" projection="orthographic" fovy="3"/>'
    xml = f"<mujoco><worldbody>{camera}</worldbody></mujoco>"
    model = mujoco.MjModel.from_xml_string(xml)
    with pytest.raises(ValueError, match="an orthographic camera has no distortion"):
        Optics.of_camera(model, 0, 44, 28, FISHEYE)
