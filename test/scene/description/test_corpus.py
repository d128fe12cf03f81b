"""What users bring becomes the same model as in MuJoCo."""

from pathlib import Path

import mujoco
import pytest
from description_corpus import ROBOTS, WORLDS, difference, written

from crazyflow_ros.scene.description import read


@pytest.mark.parametrize("name", WORLDS)
def test_a_world_is_what_mujoco_makes_of_it(name: str, tmp_path: Path) -> None:
    path = written(WORLDS[name], tmp_path)
    theirs = mujoco.MjModel.from_xml_path(str(path))
    assert difference(read(path).compiled(), theirs) is None


@pytest.mark.parametrize("name", ROBOTS)
def test_a_robot_is_what_mujoco_makes_of_it_with_its_visuals(name: str, tmp_path: Path) -> None:
    path = written(ROBOTS[name], tmp_path)
    ours = read(path).compiled()
    text = path.read_text()
    if "<mujoco>" not in text:
        keep = '<mujoco><compiler discardvisual="false"/></mujoco>'
        path.write_text(text.replace("</robot>", f"{keep}</robot>"))
    assert difference(ours, mujoco.MjModel.from_xml_path(str(path))) is None
