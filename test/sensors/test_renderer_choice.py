"""Which renderer "auto" takes, and what it says."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest

from crazyflow_ros.scene import RenderingUnavailable
from crazyflow_ros.sensors import CameraSensor, CameraSensorCfg, MujocoBackend, SensorSet
from crazyflow_ros.sensors.renderer_choice import choose

LLVMPIPE = "llvmpipe (LLVM 15.0.6, 256 bits)"


class Way:
    """A renderer that takes pictures, or fails."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error, self.taken = error, 0

    def __call__(self) -> None:
        if self.error:
            raise self.error
        self.taken += 1


def test_with_a_gpu_it_is_opengl_and_rays_are_not_tried() -> None:
    rays = Way()
    choice = choose(Way(), rays, lambda: "NVIDIA H100 PCIe/PCIe/SSE2")
    assert choice.renderer == "opengl" and "a GPU, NVIDIA H100" in choice.reason
    assert not rays.taken


def test_without_a_gpu_it_is_rays() -> None:
    choice = choose(Way(), Way(), lambda: LLVMPIPE)
    assert choice == ("rays", f"OpenGL has no GPU here, but {LLVMPIPE}")


def test_without_opengl_it_is_rays() -> None:
    missing = Way(error=RenderingUnavailable("nothing can be drawn: no libEGL"))
    choice = choose(missing, Way(), lambda: pytest.fail("no device"))
    assert choice.renderer == "rays" and "no libEGL" in choice.reason


def test_what_rays_refuse_is_drawn_or_refused_with_both_reasons() -> None:
    refused = Way(error=ValueError("a flex"))
    choice = choose(Way(), refused, lambda: LLVMPIPE)
    assert choice == ("opengl", "rays cannot draw this scene: a flex")
    missing = Way(error=RenderingUnavailable("no libEGL"))
    with pytest.raises(RenderingUnavailable, match=r"no libEGL\. Rays cannot .* a flex"):
        choose(missing, refused, lambda: LLVMPIPE)


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


def test_a_camera_without_opengl_sees(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise ImportError("no libEGL.so.1")

    monkeypatch.setattr(mujoco, "Renderer", broken)
    sensors = SensorSet([camera(data_types=("depth",))])
    model = mujoco.MjModel.from_xml_string(SCENE)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    sensors.initialize(MujocoBackend(model, data))
    eye = sensors["eye"]
    assert isinstance(eye, CameraSensor) and eye.choice is None
    sensors.sense()
    assert eye.choice is not None and eye.choice.renderer == "rays"
    assert "there is no OpenGL: nothing can be drawn: no libEGL.so.1" in eye.choice.reason
    np.testing.assert_allclose(eye.data.depth, 2.0, rtol=1e-6)
