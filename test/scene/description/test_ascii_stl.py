"""STL files as text, and inertias that no body can have."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

from crazyflow_ros.scene.description import read
from crazyflow_ros.scene.description.ascii_stl import as_binary

CORNERS = np.array([[0, 0, 0], [0.4, 0, 0], [0, 0.3, 0], [0, 0, 0.5]])
FACES = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]])


def text() -> bytes:
    lines = ["solid tetrahedron"]
    for face in FACES:
        lines += ["facet normal 0 0 0", " outer loop"]
        lines += ["  vertex " + " ".join(f"{x:e}" for x in CORNERS[i]) for i in face]
        lines += [" endloop", "endfacet"]
    return "\n".join([*lines, "endsolid"]).encode()


def test_a_text_has_the_same_triangles_as_its_binary_form() -> None:
    binary = as_binary(text())
    assert as_binary(binary) == binary
    assets = {"a.stl": binary}
    model = mujoco.MjSpec.from_string(
        '<mujoco><asset><mesh file="a.stl"/></asset><worldbody><geom type="mesh" mesh="a"/>'
        "</worldbody></mujoco>",
        assets=assets,
    ).compile()
    assert (model.mesh_vertnum[0], model.mesh_facenum[0]) == (4, 4)


def test_a_binary_file_whose_header_begins_with_solid_stays_as_it_is() -> None:
    binary = b"solid" + as_binary(text())[5:]
    assert as_binary(binary) == binary


@pytest.mark.parametrize(
    "damage", [b"solid", text().replace(b"vertex", b"v", 1), text() + b" vertex nan 0 0"]
)
def test_a_text_without_whole_triangles_is_refused(damage: bytes) -> None:
    with pytest.raises(ValueError, match="an STL file as text must have triangles"):
        as_binary(damage)


def test_a_robot_with_a_mesh_as_text_compiles(tmp_path: Path) -> None:
    (tmp_path / "part.STL").write_bytes(text())
    mesh = '<geometry><mesh filename="part.STL"/></geometry>'
    robot = tmp_path / "robot.urdf"
    robot.write_text(f'<robot name="r"><link name="a"><collision>{mesh}</collision></link></robot>')
    assert read(robot).compiled().nmesh == 1


def test_an_impossible_inertia_is_balanced_as_mujoco_does(tmp_path: Path) -> None:
    robot = tmp_path / "robot.urdf"
    inertia = '<inertia ixx="3e-6" ixy="0" ixz="0" iyy="1e-6" iyz="0" izz="1e-6"/>'
    robot.write_text(
        '<robot name="r"><link name="a"/><link name="b"><inertial><mass value="0.02"/>'
        f'{inertia}</inertial></link><joint name="j" type="continuous"><parent link="a"/>'
        '<child link="b"/></joint></robot>'
    )
    found = read(robot)
    np.testing.assert_allclose(found.compiled().body_inertia[-1], 5e-6 / 3)
    (said,) = found.conditions[1]
    assert said.startswith("the world has an inertia for b, [1e-06, 1e-06, 3e-06] kg m^2")
