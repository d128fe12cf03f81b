"""Others than the user name files in some folders only, whatever way they describe."""

from __future__ import annotations

from pathlib import Path

import pytest
from description_corpus import MESH, stl, world

from crazyflow_ros.resources import resource
from crazyflow_ros.scene.description import Folders, read_text

OUTSIDE = "is in no folder from which files are read"
MESHED = world(MESH.format("t"), '<asset><mesh name="t" file="{}"/></asset>')


@pytest.fixture
def named(tmp_path: Path) -> Path:
    """A folder that the user names, beside one with a secret, to which it has links."""
    named, other = tmp_path / "named", tmp_path / "named_not"
    for folder in (named / "inner", other / "inner"):
        folder.mkdir(parents=True)
        (folder / "t.stl").write_bytes(stl())
    (named / "out").symlink_to(other)
    (named / "out.stl").symlink_to(other / "inner" / "t.stl")
    (named / "in.stl").symlink_to(named / "inner" / "t.stl")
    return named


@pytest.fixture
def folders(named: Path, monkeypatch: pytest.MonkeyPatch) -> Folders:
    monkeypatch.chdir(named.parent)
    monkeypatch.setenv("HOME", str(named.parent))
    return Folders([str(named)], [named.parent / "named_not" / "arena.xml"])


@pytest.mark.parametrize(
    "uri",
    ["inner/t.stl", "{0}/inner/t.stl", "file://{0}/inner/t.stl", "{0}/inner/../inner/t.stl",
     "in.stl", "{0}/../named/inner/t.stl", "{0}/out/../inner/t.stl"],
)  # fmt: skip
def test_files_of_the_folders_are_found(folders: Folders, named: Path, uri: str) -> None:
    found = named / "inner" / "t.stl"
    assert folders.path_of(uri.format(named)) == found
    assert read_text(MESHED.format(uri.format(named)), folders=folders).assets


@pytest.mark.parametrize(
    "uri",
    ["{0}_not/inner/{1}", "{0}/../named_not/inner/{1}", "../named_not/inner/{1}",
     "{0}/out/inner/{1}", "out/inner/{1}", "file:{0}_not/inner/{1}", "~/named_not/inner/{1}",
     "file:///{0}/%2e%2e/named_not/inner/{1}", "file:~/named_not/inner/{1}", "/proc/self/{1}",
     "package://../../../../../../{0}_not/inner/{1}", "model://named_not/inner/{1}", "~root/{1}"],
)  # fmt: skip
def test_files_elsewhere_are_as_if_there_were_none(folders: Folders, named: Path, uri: str) -> None:
    told = []
    for name in ("t.stl", "no.stl"):
        given = uri.format(named, name)
        assert not folders.has(given)
        with pytest.raises(FileNotFoundError) as caught:
            folders.path_of(given).stat()
        with pytest.raises(FileNotFoundError) as in_text:
            read_text(MESHED.format(given), limited=True, folders=folders)
        told.append([str(e.value).replace(name, "*") for e in (caught, in_text)])
    assert told[0] == told[1]


def test_a_link_to_a_file_elsewhere_is_refused(folders: Folders, named: Path) -> None:
    for uri in ("out.stl", f"{named}/out.stl"):
        with pytest.raises(FileNotFoundError, match="there is no file"):
            read_text(MESHED.format(uri), folders=folders)


def test_packages_models_and_single_files_are_found(
    folders: Folders, named: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those whose installation consists of links."""
    share, models = tmp_path / "prefix" / "share", tmp_path / "models"
    for folder in (share, models):
        (folder / "arm").mkdir(parents=True)
    source = named.parent / "named_not" / "inner" / "t.stl"
    for target in (share / "arm" / "t.stl", models / "arm" / "t.stl"):
        target.symlink_to(source)
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path / "prefix"))
    monkeypatch.setenv("GZ_SIM_RESOURCE_PATH", str(models))
    arena = named.parent / "named_not" / "arena.xml"
    folders = Folders([], [arena])
    for uri in ("package://arm/t.stl", "model://arm/t.stl", f"{share}/arm/t.stl"):
        assert folders.path_of(uri).read_bytes() == stl()
        assert read_text(MESHED.format(uri), folders=folders).assets
    assert folders.path_of(arena.as_uri()) == arena
    assert folders.path_of("floor.xml") == resource("urdf_mjcf", "floor.xml")
    with pytest.raises(FileNotFoundError, match=OUTSIDE):
        folders.path_of(str(source))
    with pytest.raises(FileNotFoundError, match=OUTSIDE):
        folders.path_of(f"package://arm/../../../named_not/inner/{source.name}")
