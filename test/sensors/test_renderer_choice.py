"""Which renderer "auto" takes, and what it says."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from other_packages import metadata

from crazyflow_ros.scene import RenderingUnavailable
from crazyflow_ros.sensors import CameraSensor, CameraSensorCfg, MujocoBackend, SensorSet
from crazyflow_ros.sensors.rendering import choose

LLVMPIPE = "llvmpipe (LLVM 15.0.6, 256 bits)"


class Rays:
    """Pictures by rays, which are taken or refused."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error, self.taken = error, 0

    def __call__(self) -> None:
        if self.error:
            raise self.error
        self.taken += 1


def missing() -> str:
    raise RenderingUnavailable("nothing can be drawn: no libEGL")


def test_with_a_gpu_it_is_opengl_and_rays_are_not_tried() -> None:
    rays = Rays()
    choice = choose(lambda: "NVIDIA H100 PCIe/PCIe/SSE2", rays)
    assert choice.renderer == "opengl" and "a GPU, NVIDIA H100" in choice.reason
    assert not rays.taken


def test_without_a_gpu_it_is_rays() -> None:
    choice = choose(lambda: LLVMPIPE, Rays())
    assert choice == ("rays", f"OpenGL has no GPU here, but {LLVMPIPE}")


def test_without_opengl_it_is_rays() -> None:
    choice = choose(missing, Rays())
    assert choice.renderer == "rays" and "no libEGL" in choice.reason


def test_what_rays_refuse_is_drawn_or_refused_with_both_reasons() -> None:
    refused = Rays(error=ValueError("a flex"))
    choice = choose(lambda: LLVMPIPE, refused)
    assert choice == ("opengl", "rays cannot draw this scene: a flex")
    with pytest.raises(RenderingUnavailable, match=r"no libEGL\. Rays cannot .* a flex"):
        choose(missing, refused)


SCENE = """
<mujoco>
  <worldbody>
    <camera name="down" pos="0 0 2" fovy="60"/>
    <geom type="plane" size="9 9 .1"/>
  </worldbody>
</mujoco>"""


def camera(**options: Any) -> CameraSensorCfg:
    return CameraSensorCfg(
        name="eye", camera_name="down", width=16, height=8, renderer="auto", **options
    )


def looking(*cameras: CameraSensorCfg) -> SensorSet:
    sensors = SensorSet(cameras)
    model = mujoco.MjModel.from_xml_string(SCENE)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    sensors.initialize(MujocoBackend(model, data))
    return sensors


def test_a_camera_without_opengl_sees(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise ImportError("no libEGL.so.1")

    monkeypatch.setattr(mujoco, "Renderer", broken)
    sensors = looking(camera(data_types=("depth",)))
    eye = sensors["eye"]
    assert isinstance(eye, CameraSensor) and eye.choice is None
    sensors.sense()
    assert eye.choice is not None and eye.choice.renderer == "rays"
    assert "there is no OpenGL: nothing can be drawn: no libEGL.so.1" in eye.choice.reason
    np.testing.assert_allclose(eye.data.depth, 2.0, rtol=1e-6)


def test_a_camera_that_chose_rays_keeps_nothing_of_opengl() -> None:
    """A renderer that it had tried would stay: 100 MB with software rendering."""
    sensors = looking(camera())
    sensors.sense()
    eye = sensors["eye"]
    assert isinstance(eye, CameraSensor) and eye.choice is not None
    draws = eye.context.renderers.belongs_to(threading.get_ident())
    assert draws == (eye.choice.renderer == "opengl")


FOG = """
import numpy as np

class Fog:
    def __init__(self, model, room):
        self.fovy = model.cam_fovy[0]

    def take(self, sensor):
        return {"depth": np.full((sensor.backend.n_worlds, 8, 16, 1), self.fovy)}
"""


def test_the_renderer_of_another_package_takes_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fog.py").write_text(FOG)
    metadata(tmp_path, "fog", {"crazyflow_ros.renderers": {"fog": "fog:Fog"}})
    monkeypatch.syspath_prepend(str(tmp_path))
    sensors = looking(replace(camera(data_types=("depth",)), renderer="fog"))
    sensors.sense()
    eye = sensors["eye"]
    assert isinstance(eye, CameraSensor)
    np.testing.assert_array_equal(eye.data.depth, np.full((1, 8, 16, 1), 60.0))
    with pytest.raises(ValueError, match=r"no renderer 'frog', only opengl, fog, rays, auto"):
        replace(camera(), renderer="frog")
