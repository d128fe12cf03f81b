"""Meshes with materials are drawn in their colours, in URDF and SDF."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import trimesh
from description_corpus import Files, link, robot, written
from trimesh.visual.material import PBRMaterial, SimpleMaterial
from trimesh.visual.texture import TextureVisuals

from crazyflow_ros.scene.description import read

RED, BLUE = (0.8, 0.2, 0.0, 1.0), (0.0, 0.2, 0.6, 1.0)
DAE = """<?xml version="1.0"?><COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema"
 version="1.4.1"><asset><unit meter="1"/></asset><library_effects>{}</library_effects>
 <library_materials>{}</library_materials><library_geometries>{}</library_geometries>
 <library_visual_scenes><visual_scene id="s">{}</visual_scene></library_visual_scenes>
 <scene><instance_visual_scene url="#s"/></scene></COLLADA>"""
EFFECT = """<effect id="e{0}"><profile_COMMON><technique sid="t"><lambert><diffuse>
 <color>{1}</color></diffuse></lambert></technique></profile_COMMON></effect>"""
MATERIAL = '<material id="m{0}"><instance_effect url="#e{0}"/></material>'
SHAPE = """<geometry id="g{0}"><mesh><source id="p{0}"><float_array id="a{0}" count="12">
 {0} 0 0 {0} 1 0 {0} 0 1 9 9 9</float_array><technique_common>
 <accessor source="#a{0}" count="4" stride="3">
 <param name="X" type="float"/><param name="Y" type="float"/><param name="Z" type="float"/>
 </accessor></technique_common></source>
 <vertices id="v{0}"><input semantic="POSITION" source="#p{0}"/></vertices>
 <triangles count="4" material="c"><input semantic="VERTEX" source="#v{0}" offset="0"/>
 <p>0 2 1 0 1 3 0 3 2 1 2 3</p></triangles></mesh></geometry>"""
NODE = """<node><instance_geometry url="#g{0}"><bind_material><technique_common>
 <instance_material symbol="c" target="#m{0}"/></technique_common></bind_material>
 </instance_geometry></node>"""


def dae() -> bytes:
    colours = [" ".join(map(str, rgba)) for rgba in (RED, BLUE)]
    effects = "".join(EFFECT.format(i, colour) for i, colour in enumerate(colours))
    parts = ("".join(part.format(i) for i in range(2)) for part in (MATERIAL, SHAPE, NODE))
    return DAE.format(effects, *parts).encode()


def boxes(kind: str, folder: Path) -> None:
    """A red box at the origin and a blue one at x = 2, as the library writes them."""
    scene = trimesh.Scene()
    for i, rgba in enumerate((RED, BLUE)):
        box = trimesh.creation.box((1, 1, 1))
        box.apply_translation((2 * i, 0, 0))
        colour = (np.array(rgba) * 255).round().astype(np.uint8)
        material = (
            PBRMaterial(baseColorFactor=colour, name=f"m{i}")
            if kind != "obj"
            else SimpleMaterial(diffuse=colour, name=f"m{i}")
        )
        box.visual = TextureVisuals(uv=np.zeros((8, 2)), material=material)
        scene.add_geometry(box)
    scene.export(folder / f"t.{kind}")


@pytest.mark.parametrize("kind", ["glb", "obj", "dae"])
def test_each_material_of_a_mesh_has_its_colour(kind: str, tmp_path: Path) -> None:
    sdf = f"""<sdf version="1.9"><model name="m"><static>1</static><link name="l"><visual name="v">
      <geometry><mesh><uri>t.{kind}</uri></mesh></geometry></visual></link></model></sdf>"""
    mesh = f'<mesh filename="t.{kind}"/>'
    files: Files = {"main.urdf": robot(link(mesh, mesh)), "world.sdf": sdf, "t.dae": dae()}
    path = written(files, tmp_path)
    if kind != "dae":
        boxes(kind, tmp_path)
    for model in (read(path).compiled(), read(path.with_name("world.sdf")).compiled()):
        drawn = np.flatnonzero(model.geom_contype == 0)
        assert sorted(model.geom_rgba[drawn].round(2).tolist()) == [
            pytest.approx(rgba, abs=0.01) for rgba in (BLUE, RED)
        ]
        red = max(drawn, key=lambda geom: model.geom_rgba[geom, 0])
        blue = min(drawn, key=lambda geom: model.geom_rgba[geom, 0])
        assert model.geom_pos[blue, 0] > model.geom_pos[red, 0] + 0.5
    if kind != "obj":  # which MuJoCo reads itself
        others = read(path, limited=True).compiled()
        assert others.ngeom == 2, "materials of strangers are not read"


def test_a_material_of_the_description_comes_before_those_of_the_mesh(tmp_path: Path) -> None:
    boxes("glb", tmp_path)
    text = robot(link('<mesh filename="t.glb"/>')).replace(
        "</geometry>", '</geometry><material name="own"><color rgba="0 1 0 1"/></material>'
    )
    model = read(written({"main.urdf": text}, tmp_path)).compiled()
    np.testing.assert_allclose(model.geom_rgba, [[0, 1, 0, 1]])


def test_files_beside_a_gltf_are_read_for_the_user_only(tmp_path: Path) -> None:
    trimesh.Scene(trimesh.creation.box()).export(tmp_path / "box.gltf")
    mesh = '<mesh filename="box.gltf"/>'
    path = written({"main.urdf": robot(link(mesh, mesh))}, tmp_path)
    assert read(path).compiled().ngeom == 2
    with pytest.raises(ValueError, match=r"box\.gltf: .* without the files beside it"):
        read(path, limited=True).compiled()


def test_a_mesh_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    files: Files = {"main.urdf": robot(link('<mesh filename="t.glb"/>')), "t.glb": b"glTF"}
    with pytest.raises(ValueError, match=r"t\.glb: it cannot be read: "):  # and needs no others
        read(written(files, tmp_path)).compiled()
