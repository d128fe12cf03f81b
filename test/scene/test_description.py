"""Descriptions from outside: what they name and ask for is limited before MuJoCo sees them."""

import os
import struct
import time
from pathlib import Path

import mujoco
import pytest

from crazyflow_ros import limits
from crazyflow_ros.resources import resource
from crazyflow_ros.scene.description import NotADescription, check_description

WORLD = "<mujoco><worldbody>{}</worldbody></mujoco>"
GEOM = "<geom size='1'/>"


def asset(element: str) -> str:
    return f"<mujoco><asset>{element}</asset></mujoco>"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (WORLD.format(f"<replicate count='1000000'>{GEOM}</replicate>"), "2000 elements"),
        (
            WORLD.format(f"<replicate count='80'><replicate count='80'>{GEOM}</replicate>")[:-21]
            + "</replicate></worldbody></mujoco>",
            "2000 elements",
        ),
        (WORLD.format(GEOM * 300_000), "1048576 bytes"),
        (WORLD.format(GEOM * 6000), "2000 elements"),
        (WORLD.format("<body>" * 3000 + "</body>" * 3000), "nested at most 60 deep"),
        ("<!DOCTYPE a [<!ENTITY b 'c'>]><mujoco/>", "must not have a document type"),
        (WORLD.format("<composite type='cable' count='1000 1 1'/>"), "200 parts"),
        (WORLD.format("<flexcomp name='f' type='grid' count='20 20 20'/>"), "200 parts"),
        (WORLD.format("<flexcomp name='f' type='mesh' file='f.obj'/>"), "read from a file"),
        (asset("<mesh name='m' file='/dev/zero'/>"), "/dev/zero is not a regular file"),
        (asset("<texture name='t' fileup='/dev/zero'/>"), "/dev/zero is not a regular file"),
        (asset("<hfield name='h' file='/dev/zero'/>"), "/dev/zero is not a regular file"),
        (asset("<hfield name='h' nrow='10000' ncol='10000'/>"), "4194304 pixels"),
        (asset("<texture builtin='flat' width='1e5' height='1e5'/>"), "4194304 pixels"),
        (asset("<mesh name='m' builtin='sphere' params='12'/>"), "params of a sphere"),
        (asset("<model name='m' file='/dev/zero'/>"), "/dev/zero is not a regular file"),
        ("<mujoco><include file='/dev/zero'/></mujoco>", "/dev/zero is not a regular file"),
        ("<mujoco><size memory='100G'/></mujoco>", "at most 256 MiB, got 100G"),
        ("<mujoco><size memory='1E'/></mujoco>", "at most 256 MiB, got 1E"),
        ("<mujoco><size nuserdata='1000000000'/></mujoco>", "nuserdata of size"),
        ("<mujoco><custom><numeric size='1000000000'/></custom></mujoco>", "size of numeric"),
        ("<robot name='r'><mesh filename='/dev/zero'/></robot>", "not a regular file"),
    ],
)
def test_what_asks_for_too_much_is_refused_at_once(text: str, why: str) -> None:
    began = time.thread_time()
    with pytest.raises(ValueError, match=why):
        check_description(text)
    assert time.thread_time() - began < 2.0  # s; MuJoCo works on some of them for minutes


@pytest.mark.parametrize(
    "text", ["", "<mujoco", "a", "<a/><b/>", "\0", "\ud800", "&a;", "<a>&b;</a>"]
)
def test_what_is_no_xml_is_refused(text: str) -> None:
    with pytest.raises(NotADescription):
        check_description(text)


@pytest.mark.parametrize("element", ["include", "mesh"])
def test_files_are_found_where_mujoco_finds_them(tmp_path: Path, element: str) -> None:
    (tmp_path / "meshes").mkdir()
    os.mkfifo(tmp_path / "meshes" / "pipe")
    compiler = "<compiler meshdir='meshes'/>"
    text = {
        "include": "<mujoco><include file='meshes/pipe'/></mujoco>",
        "mesh": f"<mujoco>{compiler}<asset><mesh file='pipe'/></asset></mujoco>",
    }[element]
    with pytest.raises(ValueError, match="pipe is not a regular file"):
        check_description(text, tmp_path)


def test_what_includes_bring_counts(tmp_path: Path) -> None:
    (tmp_path / "many.xml").write_text(WORLD.format(GEOM * 1000))
    (tmp_path / "first.xml").write_text("<mujoco><include file='many.xml'/></mujoco>")
    assert check_description("<mujoco><include file='first.xml'/></mujoco>", tmp_path)[1] > 1000
    repeated = WORLD.format("<replicate count='3'><include file='many.xml'/></replicate>")
    with pytest.raises(ValueError, match="2000 elements"):
        check_description(repeated, tmp_path)
    (tmp_path / "loop.xml").write_text("<mujoco><include file='loop.xml'/></mujoco>")
    assert check_description("<mujoco><include file='loop.xml'/></mujoco>", tmp_path)[1] < 10
    attached = WORLD.format("<attach model='m' prefix='a'/>" * 3)
    with_model = attached.replace(
        "<worldbody>", "<asset><model name='m' file='many.xml'/></asset><worldbody>"
    )
    with pytest.raises(ValueError, match="2000 elements"):
        check_description(with_model, tmp_path)


def test_a_picture_counts_as_what_it_is_unpacked_to(tmp_path: Path) -> None:
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 50_000, 50_000)
    (tmp_path / "bomb.png").write_bytes(head)
    with pytest.raises(ValueError, match="4194304 pixels"):
        check_description(asset("<texture type='2d' file='bomb.png'/>"), tmp_path)
    (tmp_path / "large.stl").write_bytes(b"\0" * 100)
    os.truncate(tmp_path / "large.stl", limits.ASSET_BYTES + 1)
    with pytest.raises(ValueError, match="too large"):
        check_description(asset("<mesh file='large.stl'/>"), tmp_path)


def test_what_comes_with_the_package_is_within_the_limits() -> None:
    for path in (*resource("urdf_mjcf").glob("*.xml"), *resource("urdf_mjcf").glob("*/*.xml")):
        root, elements = check_description(path.read_text(), path.parent)
        assert root == "mujoco" and elements < 200


def test_the_number_of_elements_is_what_mujoco_makes_of_them() -> None:
    text = WORLD.format(f"<body><replicate count='7'>{GEOM}{GEOM}</replicate></body>")
    geoms = mujoco.MjModel.from_xml_string(text).ngeom
    assert check_description(text) == ("mujoco", 4 + geoms)  # mujoco, worldbody, body, replicate
