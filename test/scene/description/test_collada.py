"""Robots for ROS are drawn in Collada."""

import sys
from pathlib import Path

import numpy as np
import pytest
from description_corpus import link, robot, written

from crazyflow_ros.scene.description import Sandbox, collada, read

POINTS = "0 0 0 100 0 0 0 200 0 0 0 300"
TETRAHEDRON = """<?xml version="1.0" encoding="utf-8"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
  <asset><unit name="centimeter" meter="0.01"/><up_axis>Y_UP</up_axis></asset>
  <library_geometries><geometry id="g"><mesh>
    <source id="p"><float_array id="a" count="12">{points}</float_array><technique_common>
      <accessor source="#a" count="4" stride="3"><param name="X" type="float"/>
        <param name="Y" type="float"/><param name="Z" type="float"/></accessor>
    </technique_common></source>
    <vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
    {faces}
  </mesh></geometry></library_geometries>
  <library_visual_scenes><visual_scene id="s"><node id="n">
    <translate>0 0 50</translate><instance_geometry url="#g"/>{more}
  </node></visual_scene></library_visual_scenes>
  <scene><instance_visual_scene url="#s"/></scene>
</COLLADA>"""
INPUT = '<input semantic="VERTEX" source="#v" offset="0"/>'
TRIANGLES = f'<triangles count="4">{INPUT}<p>0 2 1 0 1 3 0 3 2 1 2 3</p></triangles>'
POLYGONS = f'<polylist count="2">{INPUT}<vcount>4 3</vcount><p>0 1 2 3 1 2 3</p></polylist>'


def drawing(faces: str = TRIANGLES, more: str = "") -> bytes:
    return TETRAHEDRON.format(points=POINTS, faces=faces, more=more).encode()


def corners(obj: bytes) -> np.ndarray:
    lines = [line.split() for line in obj.decode().splitlines()]
    points = np.array([line[1:] for line in lines if line[0] == "v"], float)
    return points[np.array([line[1:] for line in lines if line[0] == "f"], int) - 1]


def test_triangles_are_in_metres_and_where_the_scene_puts_them() -> None:
    found = corners(collada.as_obj(drawing()))
    points = np.array(POINTS.split(), float).reshape(-1, 3) / 100 + [0, 0, 0.5]
    expected = points[[[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]]
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert corners(collada.as_obj(drawing(POLYGONS))).shape == (3, 3, 3)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "not a readable Collada file"),
        (b"<COLLADA/>", "not a readable Collada file|no triangles"),
        (drawing()[:900], "not a readable Collada file"),
        (drawing(f'<lines count="1">{INPUT}<p>0 1</p></lines>'), "no triangles"),
        (drawing(TRIANGLES.replace("2 3</p>", "2 9</p>")), "not a readable Collada file"),
    ],
)
def test_what_is_no_drawing_is_refused(content: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        collada.as_obj(content)


def test_robots_drawn_in_collada_are_built_also_for_others(tmp_path: Path) -> None:
    sandbox = Sandbox()
    plate = TETRAHEDRON.replace("{points}", "0 0 0 9 0 0 9 9 0 0 9 0").format(
        faces=f'<triangles count="2">{INPUT}<p>0 1 2 0 2 3</p></triangles>', more=""
    )
    for name, content in (("whole", drawing()), ("flat", plate)):
        files = {"main.urdf": robot(link('<mesh filename="a.DAE"/>')), "a.DAE": content}
        description = read(written(files, tmp_path / name), limited=True)
        assert sandbox.check(description).elements == 3
        model = description.compiled()
        assert (model.nmesh, model.ngeom, model.geom_group[0]) == (1, 1, 1)
    sandbox.close()


def test_without_the_package_the_reason_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"main.urdf": robot(link('<mesh filename="a.dae"/>')), "a.dae": drawing()}
    monkeypatch.setitem(sys.modules, "collada", None)
    monkeypatch.setattr("crazyflow_ros.extras.find_spec", lambda _: None)
    with pytest.raises(ValueError, match=r"a\.dae: .*pycollada"):
        read(written(files, tmp_path)).spec()
