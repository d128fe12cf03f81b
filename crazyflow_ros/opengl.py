"""Which OpenGL MuJoCo draws with where there is no display.

`python -m crazyflow_ros.opengl` tells whether it can, and what to install if not.
"""

from __future__ import annotations

import os
import sys
from ctypes.util import find_library

PACKAGES = "libegl1 libgl1-mesa-dri"
"""In Debian and Ubuntu: what draws without a display."""

_LIBRARIES = {"egl": ("EGL", "GL"), "osmesa": ("OSMesa",)}


def choose_opengl() -> None:
    """Set MUJOCO_GL for what is installed, unless it is set or there is a display.

    To be called before MuJoCo is imported, which reads it then.
    """
    if "MUJOCO_GL" in os.environ or os.environ.get("DISPLAY"):
        return
    for name, libraries in _LIBRARIES.items():
        if all(find_library(library) for library in libraries):
            os.environ["MUJOCO_GL"] = name
            return


def problem() -> str:
    """Why nothing can be drawn here; empty if it can."""
    try:
        import mujoco

        mujoco.Renderer(mujoco.MjModel.from_xml_string("<mujoco/>"), 8, 8).close()
    except Exception as error:  # of whichever library should have made the context
        chosen = os.environ.get("MUJOCO_GL", "not set")
        return (
            f"no pictures: {str(error) or type(error).__name__} (MUJOCO_GL is {chosen}). Without "
            f"a display, install what draws, in Debian and Ubuntu 'apt install {PACKAGES}'"
        )
    return ""


if __name__ == "__main__":
    choose_opengl()
    sys.exit(problem() or 0)
