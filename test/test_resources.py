from pathlib import Path

import pytest

from crazyflow_ros import resources


def tree(root: Path, package: str, file: str) -> Path:
    """A package folder and a file, both below `root`; returns the package folder."""
    for path in (root / package / "resources.py", root / file):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    return root / package


@pytest.mark.parametrize(
    ("package", "file"),
    [
        ("crazyflow_ros", "config/simulator.yaml"),
        ("lib/python3.12/site-packages/crazyflow_ros", "share/crazyflow_ros/config/simulator.yaml"),
        (
            "local/lib/python3.12/dist-packages/crazyflow_ros",
            "share/crazyflow_ros/config/simulator.yaml",
        ),
    ],
    ids=["source", "installed", "debian"],
)
def test_file_is_found_in_each_layout(tmp_path: Path, package: str, file: str) -> None:
    folder = tree(tmp_path, package, file)
    assert resources.find(folder, ("config", "simulator.yaml")) == tmp_path / file
    assert resources.find(folder, ("config",)) == (tmp_path / file).parent


def test_a_neighbour_of_the_same_name_is_not_taken_for_ours(tmp_path: Path) -> None:
    site = "lib/python3.12/site-packages"
    folder = tree(tmp_path, f"{site}/crazyflow_ros", "share/crazyflow_ros/launch/sim.launch.py")
    (tmp_path / site / "launch").mkdir()
    found = resources.find(folder, ("launch", "sim.launch.py"))
    assert found == tmp_path / "share/crazyflow_ros/launch/sim.launch.py"


def test_error_names_the_file_and_the_places() -> None:
    root = Path(resources.__file__).resolve().parent.parent
    with pytest.raises(FileNotFoundError) as error:
        resources.resource("config", "absent.yaml")
    assert "config/absent.yaml" in str(error.value)
    assert str(root / "config" / "absent.yaml") in str(error.value)


def test_this_tree_has_its_resources() -> None:
    assert resources.resource("package.xml").is_file()
