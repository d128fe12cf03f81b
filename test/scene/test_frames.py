"""Frames and quaternion order, against SciPy."""

from collections.abc import Callable
from typing import Any, TypeAlias

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from crazyflow_ros.scene import frames

Array: TypeAlias = Callable[..., Any]
"""Makes an array of one of the libraries."""

RNG = np.random.default_rng(3)
QUATS = Rotation.random(50, rng=RNG).as_quat()
VECTORS = RNG.normal(size=(50, 3))


@pytest.fixture(params=[np.asarray, jnp.asarray], ids=["numpy", "jax"])
def array(request: pytest.FixtureRequest) -> Array:
    return request.param


def close(actual: Any, expected: Any, array: Array) -> None:
    assert isinstance(actual, type(array([0.0])))
    tolerance = 1e-12 if actual.dtype == np.float64 else 2e-5
    np.testing.assert_allclose(actual, expected, atol=tolerance)


def test_order_of_a_quaternion_that_reads_differently_both_ways(array: Array) -> None:
    xyzw = array([0.1, 0.2, 0.3, 0.9])
    close(frames.xyzw_to_wxyz(xyzw), [0.9, 0.1, 0.2, 0.3], array)
    close(frames.wxyz_to_xyzw(array([0.9, 0.1, 0.2, 0.3])), [0.1, 0.2, 0.3, 0.9], array)


def test_rotation_matrix(array: Array) -> None:
    close(frames.rotation_matrix(array(QUATS)), Rotation.from_quat(QUATS).as_matrix(), array)
    close(frames.rotation_matrix(array(QUATS[0])), Rotation.from_quat(QUATS[0]).as_matrix(), array)


def test_quaternion_of_a_matrix(array: Array) -> None:
    half_turns = np.concatenate([np.eye(4), -np.eye(4)[:3]])
    rotations = Rotation.from_quat(np.concatenate([QUATS, half_turns]))
    quats = frames.quat_from_matrix(array(rotations.as_matrix()))
    close(quats[:50], np.where(QUATS[:, 3:] < 0, -QUATS, QUATS), array)
    close(frames.rotation_matrix(quats), rotations.as_matrix(), array)


def test_both_signs_of_a_quaternion_are_one_attitude(array: Array) -> None:
    quats, vectors = array(QUATS), array(VECTORS)
    close(frames.rotation_matrix(-quats), frames.rotation_matrix(quats), array)
    close(frames.body_to_world(-quats, vectors), frames.body_to_world(quats, vectors), array)
    close(frames.rpy(-quats), frames.rpy(quats), array)


def test_body_to_world_and_back(array: Array) -> None:
    quats, vectors = array(QUATS), array(VECTORS)
    world = frames.body_to_world(quats, vectors)
    close(world, Rotation.from_quat(QUATS).apply(VECTORS), array)
    close(frames.world_to_body(quats, world), VECTORS, array)


def test_one_attitude_for_many_vectors(array: Array) -> None:
    turned = frames.body_to_world(array(QUATS[:1]), array(VECTORS))
    close(turned, Rotation.from_quat(QUATS[0]).apply(VECTORS), array)


def test_multiply(array: Array) -> None:
    first, second = QUATS[:25], QUATS[25:]
    product = frames.rotation_matrix(frames.multiply(array(first), array(second)))
    expected = Rotation.from_quat(first) * Rotation.from_quat(second)
    close(product, expected.as_matrix(), array)


def test_rpy_round_trip(array: Array) -> None:
    angles = RNG.uniform([-3.1, -1.5, -3.1], [3.1, 1.5, 3.1], size=(50, 3))
    quats = frames.quat_from_rpy(array(angles))
    close(frames.rotation_matrix(quats), Rotation.from_euler("xyz", angles).as_matrix(), array)
    close(frames.rpy(quats), angles, array)


def test_rpy_at_the_singularity_is_finite(array: Array) -> None:
    quat = frames.quat_from_rpy(array([0.0, np.pi / 2, 0.0]))
    np.testing.assert_allclose(frames.rpy(quat)[1], np.pi / 2, atol=1e-3)
    assert np.isfinite(frames.rpy(quat)).all()


def test_yaw_is_the_last_of_rpy(array: Array) -> None:
    close(frames.yaw(array(QUATS)), Rotation.from_quat(QUATS).as_euler("xyz")[:, 2], array)


def test_heading_frame_is_level(array: Array) -> None:
    yaw = np.linspace(-3.0, 3.0, 50)
    turned = frames.heading_to_world(array(yaw), array(VECTORS))
    close(turned, Rotation.from_euler("z", yaw[:, None]).apply(VECTORS), array)
    forward = frames.heading_to_world(array([np.pi / 2])[0], array([1.0, 0.0, 0.5]))
    close(forward, [0.0, 1.0, 0.5], array)


def test_camera_link_looks_forward_and_optical_frame_looks_along_z() -> None:
    camera = Rotation.random(rng=RNG)  # MuJoCo: looks along -z, y up, x right
    forward, up, right = (
        -camera.as_matrix()[:, 2],
        camera.as_matrix()[:, 1],
        camera.as_matrix()[:, 0],
    )
    link_quat = frames.camera_link(camera.as_quat())
    link = Rotation.from_quat(link_quat).as_matrix()
    np.testing.assert_allclose(link, np.column_stack([forward, -right, up]), atol=1e-12)
    optical = Rotation.from_quat(frames.multiply(link_quat, frames.OPTICAL_IN_LINK)).as_matrix()
    np.testing.assert_allclose(optical, np.column_stack([right, -up, forward]), atol=1e-12)
    np.testing.assert_allclose(optical, camera.as_matrix() @ np.diag([1, -1, -1]), atol=1e-12)


NED_OF_ENU = np.array([[0, 1, 0], [1, 0, 0], [0, 0, -1]])
FRD_OF_FLU = np.diag([1, -1, -1])


def test_frames_of_autopilots(array: Array) -> None:
    close(frames.enu_to_ned(array(VECTORS)), VECTORS @ NED_OF_ENU.T, array)
    close(frames.flu_to_frd(array(VECTORS)), VECTORS @ FRD_OF_FLU.T, array)
    attitudes = frames.rotation_matrix(frames.frd_in_ned(array(QUATS)))
    flu_in_enu = Rotation.from_quat(QUATS).as_matrix()
    close(attitudes, NED_OF_ENU @ flu_in_enu @ FRD_OF_FLU, array)
