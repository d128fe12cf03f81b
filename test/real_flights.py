"""Where real flights are: they are not part of the repository."""

from __future__ import annotations

import os
from pathlib import Path

from paths import ROOT

VARIABLE = "CRAZYFLOW_ROS_FLIGHTS"
MISSING = f"there are no real flights: {VARIABLE} and ../shared/data are no folders"


def flights_folder() -> Path | None:
    """Return the folder with sets of flights, such as `nanobench`; None if there is none.

    It is that of the variable `CRAZYFLOW_ROS_FLIGHTS`, or `../shared/data` beside the checkout.
    """
    folder = Path(os.environ.get(VARIABLE) or ROOT.parent / "shared" / "data")
    return folder if folder.is_dir() else None
