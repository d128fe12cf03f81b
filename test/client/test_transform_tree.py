"""Transforms between frames, compared with SciPy's rotations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation, Slerp

from crazyflow_ros.client.transform_tree import (
    OutOfTime,
    Transform,
    TransformTree,
    Unconnected,
    UnknownFrame,
)

S = 1_000_000_000  # ns
LEVEL = (0.0, 0.0, 0.0, 1.0)


def matrix(pos: np.ndarray, quat: np.ndarray) -> np.ndarray:
    made = np.eye(4)
    made[:3, :3], made[:3, 3] = Rotation.from_quat(quat).as_matrix(), pos
    return made


def homogeneous(found: Transform) -> np.ndarray:
    return matrix(found.pos, found.quat)


def test_any_two_frames_of_a_random_tree() -> None:
    random = np.random.default_rng(3)
    names = [f"f{i}" for i in range(12)]
    tree, in_root = TransformTree(), {names[0]: np.eye(4)}
    for i, name in enumerate(names[1:], 1):
        parent = names[random.integers(i)]
        pos, quat = random.normal(size=3), random.normal(size=4)
        tree.add(parent, name, 0, pos, 3 * quat, is_static=bool(i % 3))
        in_root[name] = in_root[parent] @ matrix(pos, quat)
    for target in names:
        for source in names:
            wanted = np.linalg.solve(in_root[target], in_root[source])
            assert np.allclose(homogeneous(tree.lookup(target, source)), wanted, atol=1e-9)


def test_between_two_times_it_moves_straight_and_turns_at_a_constant_rate() -> None:
    random = np.random.default_rng(5)
    for _ in range(20):
        tree = TransformTree()
        pos, quat = random.normal(size=(2, 3)), random.normal(size=(2, 4))
        quat[1] *= random.choice([-1, 1])
        for i in range(2):
            tree.add("map", "drone", (2 + i) * S, pos[i], quat[i])
        turn = Slerp([2.0, 3.0], Rotation.from_quat(quat))
        for share in (0.0, 0.25, 0.9, 1.0):
            found = tree.lookup("map", "drone", 2 * S + round(share * S))
            assert np.allclose(found.pos, (1 - share) * pos[0] + share * pos[1])
            error = Rotation.from_quat(found.quat).inv() * turn(2.0 + share)
            assert error.magnitude() < 1e-7


def test_the_latest_time_is_the_one_that_all_have() -> None:
    tree = TransformTree()
    tree.add("map", "a", 3 * S, (3.0, 0.0, 0.0), LEVEL)
    tree.add("map", "a", 5 * S, (5.0, 0.0, 0.0), LEVEL)
    tree.add("map", "b", 3 * S, (0.0, 3.0, 0.0), LEVEL)
    tree.add("map", "b", 4 * S, (0.0, 4.0, 0.0), LEVEL)
    tree.add("a", "camera", 0, (0.0, 0.0, 1.0), LEVEL, is_static=True)
    found = tree.lookup("b", "camera")
    assert found.time_ns == 4 * S
    assert np.allclose(found.pos, (4.0, -4.0, 1.0))
    assert tree.lookup("a", "camera").time_ns == 0  # it holds at all times


def test_what_is_not_known_is_refused_with_the_reason() -> None:
    tree = TransformTree(kept=2.0)
    for second in range(1, 6):
        tree.add("map", "cf0/base_link", second * S, (float(second), 0.0, 0.0), LEVEL)
    tree.add("world", "tower", 0, (0.0, 0.0, 0.0), LEVEL, is_static=True)
    with pytest.raises(UnknownFrame, match=r"no frame 'cf0/base'; did you mean 'cf0/base_link'"):
        tree.lookup("map", "cf0/base")
    with pytest.raises(Unconnected, match="nothing connects tower, below world, with cf0"):
        tree.lookup("tower", "cf0/base_link")
    for second in (2, 6):  # forgotten, and to come
        with pytest.raises(OutOfTime, match=r"not known, but from 3\.000 s to 5\.000 s"):
            tree.lookup("map", "cf0/base_link", second * S)
    for pos, quat in (((np.nan, 0, 0), LEVEL), ((0, 0, 0), (0, 0, 0, 0))):
        with pytest.raises(ValueError, match="is no pose"):
            tree.add("map", "b", 0, pos, quat)
    with pytest.raises(ValueError, match="no pair of frames"):
        tree.add("map", "map", 0, (0, 0, 0), LEVEL)


def test_after_a_jump_of_time_it_begins_anew() -> None:
    tree = TransformTree()
    tree.add("map", "a", 100 * S, (1.0, 0.0, 0.0), LEVEL)
    tree.add("map", "a", 0, (2.0, 0.0, 0.0), LEVEL)
    assert tree.lookup("map", "a").pos[0] == 2.0
    with pytest.raises(OutOfTime):
        tree.lookup("map", "a", 100 * S)


def test_frames_in_a_circle_end_the_search() -> None:
    tree = TransformTree()
    tree.add("a", "b", 0, (0, 0, 0), LEVEL)
    tree.add("b", "a", 0, (0, 0, 0), LEVEL)
    tree.add("c", "d", 0, (0, 0, 0), LEVEL)
    with pytest.raises(Unconnected):
        tree.lookup("a", "d")
