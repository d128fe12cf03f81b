"""Packages of others, as pip leaves them: a folder with metadata, and modules beside it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

from paths import ROOT

EXAMPLES = ROOT / "examples"


def metadata(folder: Path, name: str, groups: Mapping[str, Mapping[str, str]]) -> Path:
    """Write what tells that a package is installed, with its entry points; return the folder."""
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines: list[str] = []
    for group, entries in groups.items():
        lines += [f"[{group}]", *(f"{key} = {value}" for key, value in entries.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return folder


def installed(example: str, folder: Path) -> list[str]:
    """Return the paths for `sys.path` with which one of our examples counts as installed."""
    source = EXAMPLES / example
    project = tomllib.loads((source / "pyproject.toml").read_text())["project"]
    return [str(metadata(folder, project["name"], project["entry-points"])), str(source)]
