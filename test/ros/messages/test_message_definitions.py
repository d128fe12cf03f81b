"""Types by name, which peers and files choose."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from geometry_msgs.msg import Twist

from crazyflow_ros.ros.messages.message_definitions import type_of


def test_a_name_imports_installed_messages_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package of Python on the path is none of ROS, whatever it is called."""
    for folder in ("lurking_msgs", "lurking_msgs/msg"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").write_text("Trap = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name in (
        "lurking_msgs/msg/Trap",
        "lurking_msgs/Trap",
        "../lurking_msgs/msg/Trap",
        "lurking_msgs.msg/msg/Trap",
        "os/path/Trap",
        "geometry_msgs/msg/../../lurking_msgs/msg/Trap",
    ):
        with pytest.raises(ValueError, match="expected an installed type"):
            type_of(name)
    assert "lurking_msgs" not in sys.modules
    assert type_of("geometry_msgs/msg/Twist") is Twist
