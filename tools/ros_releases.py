"""Write what the ROS distributions release into the table that test/docs/test_ros_machine.py reads.

    python tools/ros_releases.py path/of/a/checkout/of/ros/rosdistro

The table keeps its names; add one, alone on a line, and run this again.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

TABLE = Path(__file__).resolve().parents[1] / "test" / "docs" / "ros_releases.csv"
DISTRIBUTIONS = {"jazzy": "noble", "kilted": "noble", "lyrical": "resolute"}  # with their Ubuntu
_NONE = "-"


def versions(distribution: dict[str, Any]) -> dict[str, str]:
    """Return the version of each released package."""
    found: dict[str, str] = {}
    for repository, entry in distribution["repositories"].items():
        release = entry.get("release", {})
        if "version" in release:
            found |= dict.fromkeys(release.get("packages", [repository]), release["version"])
    return found


def apt_packages(key: Any, ubuntu: str) -> str:
    """Return the packages of Ubuntu to which a key of rosdep resolves."""
    rule = key.get("ubuntu", _NONE) if key else _NONE
    if isinstance(rule, dict):
        rule = rule.get(ubuntu, rule.get("*", _NONE))
    return " ".join(rule) if isinstance(rule, list) else _NONE


def main() -> None:
    """Read the checkout, and rewrite the table."""
    checkout = Path(sys.argv[1])
    command = ["git", "-C", str(checkout), "log", "-1", "--format=%cs"]
    date = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    load = lambda path: yaml.load((checkout / path).read_text(), yaml.CSafeLoader)  # noqa: E731
    released = {name: versions(load(f"{name}/distribution.yaml")) for name in DISTRIBUTIONS}
    keys = load("rosdep/base.yaml") | load("rosdep/python.yaml")
    lines = [line for line in TABLE.read_text().splitlines() if not line.startswith("#")]
    names = sorted({line.partition(",")[0] for line in lines[1:]})
    rows = [
        ",".join(
            (
                name,
                *(
                    released[d].get(name) or apt_packages(keys.get(name), ubuntu)
                    for d, ubuntu in DISTRIBUTIONS.items()
                ),
            )
        )
        for name in names
    ]
    head = (
        f"# ros/rosdistro on {date}, by tools/ros_releases.py: released version, or packages of "
        f"Ubuntu, or {_NONE}"
    )
    TABLE.write_text("\n".join((head, ",".join(("name", *DISTRIBUTIONS)), *rows)) + "\n")


if __name__ == "__main__":
    main()
