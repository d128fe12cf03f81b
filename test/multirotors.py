"""Drones with other numbers of rotors, for tests."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from crazyflow_ros.drones import Drone, rotors_of
from crazyflow_ros.drones.folders import FIGURES, folder_of

HEXA, OCTO = "hexa_x680", "octo_x8"
QUADROTORS = [drone for drone in Drone if not rotors_of(drone).has_tables]
RADIUS = 0.3  # m


def with_rotors(folder: Path, rotors: Sequence[str], drone: str = HEXA) -> str:
    """Write a copy of a drone with other tables of rotors; return its path."""
    shutil.copytree(folder_of(drone), folder)
    file = folder / FIGURES
    text, count = re.subn(r"\[\[rotor\]\].*(?=\n\[mellinger\])", "", file.read_text(), flags=re.S)
    assert count == 1
    file.write_text(text.replace("\n[mellinger]", "\n" + "\n".join(rotors) + "\n[mellinger]", 1))
    return str(folder)


def rotor(
    position: Sequence[float], spin: int, axis: Sequence[float] | None = None, more: str = ""
) -> str:
    """Return the table of a rotor."""
    tilt = "" if axis is None else f"axis = {[float(x) for x in axis]}\n"
    place = [float(x) for x in position]
    return f"[[rotor]]\nposition = {place}\nspin = {spin}\n{tilt}{more}\n"


def tilted(folder: Path, tilt: float = 0.35) -> str:
    """Write a hexarotor whose rotors are tilted about their arms by turns, so that it can push
    sideways (S. Rajappa et al., "Modeling, control and design optimization for a fully-actuated
    hexarotor", ICRA 2015); return its path."""
    tables = []
    for i in range(6):
        angle, sign = np.deg2rad(-30 - 60 * i), (-1) ** i
        arm = np.array([np.cos(angle), np.sin(angle), 0.0])
        axis = np.cos(tilt) * np.array([0.0, 0, 1]) + sign * np.sin(tilt) * np.cross(arm, [0, 0, 1])
        own = f"prop_inertia = {2e-5 * (1 + i / 10)}\n" if i else ""
        tables.append(rotor(RADIUS * arm + [0, 0, 0.05], sign, 2 * axis, own))
    return with_rotors(folder, tables)
