"""A class name says one thing in the whole package."""

from __future__ import annotations

import ast
from collections import defaultdict

from paths import ROOT

SHARED = {
    "Params": "each dynamics model has its own, in the module of its name",
    "Hover": "a task of envs, and a setpoint of flight that checkpoints keep by its name",
    "Velocity": "likewise",
}


def test_class_names_are_unique_unless_private() -> None:
    homes = defaultdict(list)
    theirs = ROOT / "crazyflow_ros" / "compat" / "crazyflow"  # has Crazyflow's names
    for path in sorted((ROOT / "crazyflow_ros").rglob("*.py")):
        if path.is_relative_to(theirs):
            continue
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(path.relative_to(ROOT)))
    assert [files for name, files in homes.items() if len(files) > 1 and name not in SHARED] == []
