"""Pictures by HyperLux of a scene, on the CPU; runs in a Python that has hyperlux and trimesh.

    python hyperlux_pictures.py SCENE KIND SIZE ROUNDS

SCENE is a file of NumPy: `cameras` (n, 12), rows as for HyperLux.set_cameras, and `shapes`, a list
of type, position, rotation, size and color in JSON. It prints pictures per second of processor time
and per second.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

FACETS = 28  # around a round shape, as MuJoCo draws it
Y_UP = np.array([[1, 0, 0, 0], [0, 0, 1, 0], [0, -1, 0, 0], [0, 0, 0, 1]])  # axes of GLB files
GROUND = 20.0  # m, width of an infinite plane


def mesh(kind: str, size: list[float]) -> Any:
    """Return a shape as triangles."""
    from trimesh import creation

    if kind == "plane":
        return creation.box((GROUND, GROUND, 1e-3)).apply_translation((0, 0, -5e-4))
    if kind == "box":
        return creation.box([2 * x for x in size])
    if kind == "cylinder":
        return creation.cylinder(size[0], 2 * size[1], sections=FACETS)
    axes = [size[0]] * 3 if kind == "sphere" else size
    return creation.uv_sphere(1.0, count=[FACETS, FACETS]).apply_scale(axes)


def write(shapes: list[Any], path: Path) -> None:
    """Write shapes as a GLB file."""
    import trimesh

    scene = trimesh.Scene()
    for i, (kind, pos, rotation, size, rgba) in enumerate(shapes):
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = np.reshape(rotation, (3, 3)), pos
        shape = mesh(kind, size).apply_transform(Y_UP @ pose)
        color = [round(255 * x) for x in rgba]
        material = trimesh.visual.material.PBRMaterial(baseColorFactor=color)
        shape.visual = trimesh.visual.TextureVisuals(material=material)
        scene.add_geometry(shape, node_name=str(i), geom_name=str(i))
    scene.export(path)


def main() -> None:
    """Measure."""
    import hyperlux  # type: ignore[import-not-found]
    from hyperlux.camera import RGB, CameraSpec, Depth  # type: ignore[import-not-found]

    file, kind, size, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    given = np.load(file)
    cameras = given["cameras"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scene.glb"
        write(json.loads(str(given["shapes"])), path)
        scene = hyperlux.load_scene(str(path), fidelity="low")
    output = Depth() if kind == "depth" else RGB("rgba8")
    renderer = hyperlux.HyperLux(
        width=size,
        height=size,
        batch_size=len(cameras),
        num_probes=0,
        cameras=(CameraSpec("front", (output,)),),
        fidelity="low",
    )
    renderer.init(scene)
    used, elapsed = [], []
    for _ in range(rounds):
        start, began = time.process_time(), time.perf_counter()
        renderer.set_cameras(cameras)
        renderer.render()
        renderer.synchronize()
        used.append(time.process_time() - start)
        elapsed.append(time.perf_counter() - began)
    print(len(cameras) / min(used), len(cameras) / min(elapsed))


if __name__ == "__main__":
    main()
