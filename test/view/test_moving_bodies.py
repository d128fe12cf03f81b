"""Bodies that move on the page: those that look alike in one node, with a pose for each frame."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("viser", reason="the page needs viser")

import mujoco
from moving_worlds import FRAMES, SHOWN, WORLDS

from crazyflow_ros.scene import build_spec
from crazyflow_ros.scene.bodies import Bodies
from crazyflow_ros.scene.description import read_text
from crazyflow_ros.scene.moving_frames import MovingFrames
from crazyflow_ros.scene.shapes import world_shapes
from crazyflow_ros.view.frame import Frame
from crazyflow_ros.view.moving_bodies import ShownBodies


class Scene:
    """Keeps what is added to it and not removed."""

    def __init__(self) -> None:
        self.nodes: dict[str, Any] = {}

    def _add(self, name: str, **values: Any) -> Any:
        self.nodes[name] = SimpleNamespace(remove=lambda: self.nodes.pop(name), **values)
        return self.nodes[name]

    def add_batched_glb(
        self, name: str, _: bytes, turns: np.ndarray, places: np.ndarray, **__: Any
    ) -> Any:
        return self._add(name, batched_wxyzs=turns, batched_positions=places)

    def add_line_segments(self, name: str, points: np.ndarray, *_: Any, **__: Any) -> Any:
        return self._add(name, points=points)


def world(scene: str) -> tuple[ShownBodies, Scene, mujoco.MjModel, MovingFrames]:
    model = build_spec("cf2x_L250", ["cf0"], scene=read_text(scene), mocap=False).compile()
    frames, nodes = MovingFrames(model), Scene()
    shapes = [shape for shape in world_shapes(model, frames.of_bodies) if shape.frame]
    return ShownBodies(nodes, shapes), nodes, model, frames


def frame_of(frames: MovingFrames, bodies: Bodies) -> Frame:
    none = np.zeros((1, 4))
    cables = frames.cables(bodies)
    return Frame(0, ("cf0",), none[:, :3], none, none[:, :3], none, frames.poses(bodies), cables)


def test_alike_bodies_are_one_node_and_all_are_where_the_state_says() -> None:
    drawn, scene, model, frames = world(WORLDS["stack"])
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, 50)
    mujoco.mj_kinematics(model, data)
    drawn.show(frame_of(frames, Bodies.of(model, data)))
    (boxes,) = (node for name, node in scene.nodes.items() if name.startswith("/bodies"))
    bodies = [*frames.of_bodies]
    np.testing.assert_allclose(boxes.batched_positions, data.xpos[bodies], atol=1e-6)
    np.testing.assert_allclose(boxes.batched_wxyzs, data.xquat[bodies], atol=1e-6)


def test_cables_are_drawn_and_everything_goes_with_the_world() -> None:
    drawn, scene, model, frames = world(SHOWN)
    data = mujoco.MjData(model)
    drawn.show(frame_of(frames, Bodies.of(model, data)))
    assert sum(len(n.batched_positions) for k, n in scene.nodes.items() if "bodies" in k) == len(
        FRAMES
    )
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(scene.nodes["/cables"].points[0, 0], data.site("hook").xpos)
    drawn.remove()
    assert not scene.nodes


def test_poses_of_another_world_move_nothing() -> None:
    drawn, scene, *_ = world(WORLDS["stack"])
    _, _, model, frames = world(SHOWN)
    drawn.show(frame_of(frames, Bodies.of(model, mujoco.MjData(model))))
    assert not any("bodies" in name for name in scene.nodes)
