"""What a description names is read once, and MuJoCo gets these bytes and no others."""

import os
from pathlib import Path

import mujoco
import pytest
from description_corpus import BALL, BOX, JOINT, MESH, link, png, robot, stl, world, written
from paths import ROOT

from crazyflow_ros.checks import limits
from crazyflow_ros.resources import resource
from crazyflow_ros.scene.description import (
    NotADescription,
    UnknownFormat,
    UnknownScheme,
    path_of,
    read,
    read_text,
)

T = '<asset><mesh file="{}"/></asset>'


def test_files_may_change_or_go_after_they_were_read(tmp_path: Path, monkeypatch) -> None:
    files = {
        "main.xml": f'<mujoco><include file="b.xml"/>{T.format("t.stl")}</mujoco>',
        "b.xml": BALL.replace("<geom", f"{MESH.format('t')}<geom"),
        "t.stl": stl(),
    }
    description = read(written(files, tmp_path))
    first = description.compiled()
    (tmp_path / "t.stl").write_bytes(stl(5))
    (tmp_path / "b.xml").unlink()
    monkeypatch.chdir(tmp_path.parent)
    assert (description.compiled().mesh_vert == first.mesh_vert).all()


@pytest.mark.parametrize(
    "text", ["", "<mujoco", "a", "<a/><b/>", "\0", "\ud800", "&a;", "<mujoco>&b;</mujoco>"]
)
def test_what_is_no_xml_is_refused(text: str) -> None:
    with pytest.raises(NotADescription):
        read_text(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("<sdf version='1.9'/>", "neither a world nor a model"),
        ("<!DOCTYPE a [<!ENTITY b 'c'>]><mujoco/>", "must not have a document type"),
        (world("<body>" * 90 + "</body>" * 90), "nested at most 60 deep"),
        ("<mujoco>\n<include/></mujoco>", "include in line 2 needs the attribute file"),
        ('<mujoco><include file="a.xml"><geom/></include></mujoco>', "must not have elements"),
        (
            world(MESH.format("t"), T.format("nowhere.stl")),
            "mesh in line 1: there is no file .*nowhere",
        ),
        (
            world("", T.format("http://a.b/c.stl")),
            "expected a path or one of file:, package:, model:",
        ),
        (world("", T.format("package://nobody_has_it/c.stl")), "no package 'nobody_has_it'"),
        (robot("<xacro:macro name='a'/>"), "expand it with xacro first"),
    ],
)
def test_refusals_name_the_reason(text: str, why: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ValueError, FileNotFoundError), match=why):
        read_text(text)


def test_formats_and_schemes_that_nobody_knows_have_errors_of_their_own() -> None:
    with pytest.raises(UnknownFormat):
        read_text("<model/>")
    with pytest.raises(UnknownScheme):
        path_of("ftp://a/b")


@pytest.mark.parametrize(
    "content",
    [
        '<include file="{}"/>',
        '<include xmlns="somewhere" file="{}"/>',
        '<asset><mesh name="m" file="{}"/></asset>',
        '<asset><texture name="t" type="cube" fileup="{}"/></asset>',
        '<asset><hfield name="h" file="{}" size="1 1 1 1"/></asset>',
        '<asset><model name="m" file="{}"/></asset>',
        '<deformable><skin name="s" file="{}"/></deformable>',
        '<worldbody><flexcomp name="f" type="mesh" file="{}"/></worldbody>',
    ],
)
@pytest.mark.parametrize("depth", ["main", "included", "included twice"])
def test_a_pipe_never_blocks_wherever_it_is_named(content: str, depth: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    files = {"main.xml": "<mujoco><include file='s/a.xml'/></mujoco>"}
    files["s/a.xml"] = '<mujoco><include file="b.xml"/></mujoco>'
    names = {"main": "main.xml", "included": "s/a.xml", "included twice": "b.xml"}
    files[names[depth]] = f"<mujoco>{content.format('pipe')}</mujoco>"
    with pytest.raises(ValueError, match="pipe is not a regular file"):
        read(written(files, tmp_path))


def test_namespaces_hide_nothing(tmp_path: Path) -> None:
    files = {
        "main.xml": '<mujoco xmlns:a="b"><include xmlns="c" file="ball.xml"/></mujoco>',
        "ball.xml": BALL,
    }
    assert "ball" in read(written(files, tmp_path)).text
    with pytest.raises(ValueError, match="unrecognized element"):
        read_text("<mujoco><a:worldbody/></mujoco>").compiled()


def test_errors_of_mujoco_name_the_line_of_the_file(tmp_path: Path) -> None:
    files = {
        "main.xml": '<mujoco>\n\n<include file="parts.xml"/>\n</mujoco>',
        "parts.xml": "<mujoco>\n<worldbody>\n\n<geom sise='1'/></worldbody></mujoco>",
    }
    with pytest.raises(ValueError, match=r"sise.*line 4 of parts.xml"):
        read(written(files, tmp_path)).spec()
    files["parts.xml"] = files["parts.xml"].replace("sise='1'", "type='box' size='1'")
    with pytest.raises(ValueError, match=r"size.*line 4 of parts.xml"):
        read(written(files, tmp_path)).compiled()


def test_a_world_without_includes_keeps_its_lines(tmp_path: Path) -> None:
    text = "<mujoco>\n\n<worldbody><geom size='1'/>\n<geom size='1'/>\n<body\n"
    path = written({"main.xml": f"{text} name='a'><joint/></body></worldbody></mujoco>"}, tmp_path)
    description = read(path)
    with pytest.raises(ValueError, match=r"line 5$|line 5\s"):
        description.spec().compile()  # as in a larger model, whose errors nobody translates


def test_a_file_is_included_only_once_and_a_model_never_contains_itself(tmp_path: Path) -> None:
    (tmp_path / "loop.xml").write_text('<mujoco><include file="loop.xml"/></mujoco>')
    with pytest.raises(ValueError, match=r"'loop.xml' is already included"):
        read(tmp_path / "loop.xml")
    (tmp_path / "own.xml").write_text('<mujoco><asset><model file="own.xml"/></asset></mujoco>')
    with pytest.raises(ValueError, match=r"own.xml contains itself"):
        read(tmp_path / "own.xml")


def test_only_descriptions_of_others_are_limited_in_bytes(tmp_path: Path) -> None:
    long = world("<!--" + "a" * limits.DESCRIPTION_BYTES + "-->")
    assert read_text(long).compiled().ngeom == 1
    with pytest.raises(ValueError, match=f"at most {limits.DESCRIPTION_BYTES} bytes, got more"):
        read_text(long, limited=True)
    path = written({"main.xml": world("", T.format("t.stl")), "t.stl": b""}, tmp_path)
    os.truncate(tmp_path / "t.stl", limits.ASSET_BYTES + 1)
    assert len(read(path).assets) == 1
    with pytest.raises(ValueError, match="bytes of meshes, textures and height fields"):
        read(path, limited=True)


def test_textures_of_a_world_of_the_users_own_may_be_large(tmp_path: Path) -> None:
    texture = '<texture name="t" type="2d" file="p.png"/><texture type="skybox" builtin="flat"'
    files = {
        "main.xml": world("", f'<asset>{texture} width="700" height="4200"/></asset>'),
        "p.png": png(1500, 1500),
    }
    assert read(written(files, tmp_path)).compiled().ntexdata > 3 * (1 << 22)


PACKAGE = "<package format='3'><name>{}</name></package>"


@pytest.mark.parametrize("uri", ["package://arm/meshes/t.stl", "model://arm/meshes/t.stl"])
def test_meshes_of_packages_and_models_are_found(uri: str, tmp_path: Path, monkeypatch) -> None:
    text = robot(link(f'<mesh filename="{uri}"/>'))
    around = written({"arm/urdf/main.urdf": text, "arm/meshes/t.stl": stl()}, tmp_path / "a")
    assert read(around).compiled().nmesh == 1
    named = {"other/package.xml": PACKAGE.format("arm"), "other/main.urdf": text}
    if uri.startswith("package"):
        path = written({**named, "other/meshes/t.stl": stl()}, tmp_path / "b")
        assert read(path).compiled().nmesh == 1
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path / "c"))
    monkeypatch.setenv("GZ_SIM_RESOURCE_PATH", f"nowhere:{tmp_path / 'c' / 'share'}")
    written({"share/arm/main": "", "share/arm/meshes/t.stl": stl()}, tmp_path / "c")
    assert read_text(text).compiled().nmesh == 1


def test_paths_of_uris(tmp_path: Path) -> None:
    assert path_of("file:///a/b%20c.xml") == Path("/a/b c.xml")
    assert path_of("a\\b.stl") == Path("a/b.stl")
    assert path_of("~/a") == Path.home() / "a"
    with pytest.raises(ValueError, match="control characters"):
        path_of("a\0b")
    with pytest.raises(FileNotFoundError, match=r"no model '\.\.' in GZ_SIM_RESOURCE_PATH"):
        path_of("model://../etc/passwd", tmp_path)


def test_a_link_keeps_its_visuals_and_hides_the_collision_shapes_beside_them() -> None:
    text = robot(
        link('<box size="1 1 1"/>', '<sphere radius=".5"/>')
        + link("", '<sphere radius=".2"/>', "bare")
        + '<joint name="j" type="fixed"><parent link="base"/><child link="bare"/></joint>'
    )
    model = read_text(text).compiled()
    drawn = {int(t): int(g) for t, g in zip(model.geom_type, model.geom_group) if t != 2}
    assert drawn == {int(mujoco.mjtGeom.mjGEOM_BOX): 1}
    spheres = [g for t, g in zip(model.geom_type, model.geom_group) if t == 2]
    assert spheres == [3, 0]  # hidden behind the box, and visible as nothing else is


def test_what_comes_with_the_package_can_be_spawned_by_others() -> None:
    folders = resource("urdf_mjcf"), ROOT / "examples" / "12_drone"
    for path in (path for folder in folders for path in folder.rglob("*.xml")):
        assert read(path, limited=True).format == "mjcf"


def test_inertias_that_are_not_positive_become_their_mean_and_are_named() -> None:
    moments = 'ixx=".1" iyy="-.01" izz=".06" ixy="0" ixz="0" iyz="0"'
    text = robot(
        link("", BOX)
        + f'<link name="arm"><inertial><mass value="1"/><inertia {moments}/></inertial></link>'
        + JOINT.format(0, "revolute", "arm").replace('<axis xyz="0 0 1"/>', "<axis/>")
    )
    description = read_text(text)
    model = description.compiled()
    assert model.body("arm").inertia == pytest.approx([0.05] * 3)
    assert model.joint("j0").axis == pytest.approx([1, 0, 0])  # as URDF says
    (note,) = description.notes()
    assert note.startswith("has an inertia for arm, [-0.01, 0.06, 0.1] kg m^2, of no body")
