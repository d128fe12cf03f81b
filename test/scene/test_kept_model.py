"""Models of many drones are those that MuJoCo compiles, also from a file."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

from crazyflow_ros.scene import build_spec, kept_model, read_scene
from crazyflow_ros.scene.frames import grid_2d
from crazyflow_ros.xla import compiled_files

N = 64
NAMES = tuple(f"cf{i}" for i in range(N))


def content(model: mujoco.MjModel) -> bytes:
    buffer = np.empty(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, buffer)
    return buffer.tobytes()


def poses(height: float) -> np.ndarray:
    rest = np.tile((height, 0.0, 0.0, 0.0, 1.0), (N, 1))
    return np.hstack((grid_2d(N), rest))


def test_a_model_from_a_file_is_the_one_that_mujoco_compiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[str] = []

    def build(model: str, *args: object, **kwargs: object) -> mujoco.MjSpec:
        built.append(model)
        return build_spec(model, *args, **kwargs)

    told: list[str] = []
    files = compiled_files.CompiledFiles(tmp_path / "files", told.append)
    monkeypatch.setattr(compiled_files, "_files", files)
    monkeypatch.setattr(kept_model, "build_spec", build)
    floor, room = read_scene("floor"), read_scene("room")
    cases = [
        ("cf2x_L250", NAMES, floor, poses(0.1)),
        ("cf2x_L250", NAMES, floor, poses(0.2)),
        ("cf2x_L250", NAMES[::-1], floor, poses(0.1)),
        ("cf2x_L250", NAMES, room, poses(0.1)),
        ("cf21B_500", NAMES, floor, poses(0.1)),
    ]
    for n_built in (len(cases), 0):
        for drone, names, scene, places in cases:
            model = kept_model.kept_model(drone, names, scene, places)
            fresh = build_spec(drone, names, scene=scene, poses=places).compile()
            assert content(model) == content(fresh)
        assert len(built) == n_built
        built.clear()
    assert not told
    (victim, *_) = sorted((tmp_path / "files").iterdir())
    victim.write_bytes(victim.read_bytes()[:-1])  # damaged, which is told and mended
    for drone, names, scene, places in cases:
        kept_model.kept_model(drone, names, scene, places)
    assert len(built) == 1 and "damaged" in told[0]
