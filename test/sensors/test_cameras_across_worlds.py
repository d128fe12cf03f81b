"""Cameras over worlds that come and go, and over starts that share compiled code."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import mujoco
import numpy as np
import pytest
from images import need_images

from crazyflow_ros.scene import build_spec
from crazyflow_ros.scene.description import read_text
from crazyflow_ros.sensors import (
    CameraSensorCfg,
    CameraSensorData,
    MujocoBackend,
    SensorContext,
    SensorSet,
)
from crazyflow_ros.sensors.rendering import Room
from crazyflow_ros.xla import compiled_files
from crazyflow_ros.xla.compiled_files import CompiledFiles

HEIGHT = 2.5  # m, of the camera, which looks down on a table


class World(NamedTuple):
    """A floor and a table."""

    table: float
    """Height of the table [m]."""
    color: str = "1 0 0 1"
    mirror: float = 0.0
    """Reflectance of the floor."""
    haze: str = ""
    textured: bool = False

    def model(self, sensors: SensorSet) -> mujoco.MjModel:
        look = f'<map haze="0.4"/><rgba haze="{self.haze}"/>' if self.haze else ""
        texture = '<texture name="t" type="2d" builtin="checker" width="20" height="20"/>'
        sky = '<texture type="skybox" builtin="gradient" width="8" height="8"/>' * bool(self.haze)
        material = f'<material name="floor" reflectance="{self.mirror}"/>' * bool(self.mirror)
        wood = '<material name="wood" texture="t"/>' * self.textured
        text = f"""
        <mujoco>
          <visual>{look}</visual>
          <asset>{texture * self.textured}{sky}{material}{wood}</asset>
          <worldbody>
            <light pos="0 0 4" dir="0 0 -1"/>
            <geom name="floor" type="plane" size="0 0 1" {'material="floor"' * bool(self.mirror)}/>
            <geom name="table" type="box" size="1 1 .1" pos="1 1 {self.table - 0.1}"
              rgba="{self.color}" {'material="wood"' * self.textured}/>
          </worldbody>
        </mujoco>"""
        spec = build_spec("cf2x_L250", ["0"], scene=read_text(text))
        sensors.edit_spec(spec)
        return spec.compile()


WORLDS = [
    World(0.4),
    World(0.7, mirror=0.2),
    World(0.5, haze="0.3 0.5 0.9 1"),
    World(0.4),
    World(0.9, mirror=0.6, textured=True),
    World(0.6, haze="0.9 0.5 0.1 1", mirror=0.6),
]


def check(data: CameraSensorData, kind: str, world: World, model: mujoco.MjModel) -> None:
    """Compare the pixel in the middle with what the world has there."""
    middle = getattr(data, kind)[0, 12, 16]
    match kind:
        case "depth":
            assert middle == pytest.approx(HEIGHT - world.table, abs=1e-3)
        case "segmentation":
            table = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_GEOM, "table")
            assert middle.tolist() == [table, mujoco.mjtObj.mjOBJ_GEOM]
        case "normals":
            np.testing.assert_allclose(middle, [0, 0, 1], atol=1e-5)
        case "flow":
            np.testing.assert_allclose(middle, 0, atol=1e-5)
        case "rgb":
            assert middle[0] > 2 * max(int(middle[1]), int(middle[2]))  # red


@pytest.mark.parametrize(
    ("kind", "renderer", "worlds"),
    [
        ("depth", "rays", WORLDS),
        ("segmentation", "rays", WORLDS),
        pytest.param("normals", "rays", WORLDS, marks=pytest.mark.soak),
        pytest.param("flow", "rays", WORLDS, marks=pytest.mark.soak),
        pytest.param("rgb", "rays", [WORLDS[0], WORLDS[2]], marks=pytest.mark.soak),
        *((kind, "opengl", WORLDS) for kind in ("rgb", "depth", "segmentation")),
    ],
)
def test_a_camera_sees_each_world_that_comes_also_at_the_next_start(
    kind: str, renderer: str, worlds: list[World], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if renderer == "opengl":
        need_images()
    cfg = CameraSensorCfg(
        name="above", width=32, height=24, pos=(1.0, 1.0, HEIGHT), fovy=40.0, renderer=renderer,
        data_types=(kind,),
    )  # fmt: skip
    for order in (worlds, worlds[::-1]):  # two starts
        code, room = CompiledFiles(tmp_path, pytest.fail), Room()
        monkeypatch.setattr(compiled_files, "_files", code)
        for world in order:
            sensors = SensorSet([cfg])
            model = world.model(sensors)
            data = mujoco.MjData(model)
            mujoco.mj_forward(model, data)
            backend = MujocoBackend(model, data)
            sensors.initialize(backend)
            sensors["above"].set_context(SensorContext(backend, (), room))
            sensors.sense()
            check(sensors["above"].data, kind, world, model)
            sensors.close()
    assert code.n_compiled == 0
