"""Which OpenGL MuJoCo draws with where there is no display."""

from __future__ import annotations

import os
from ctypes.util import find_library

PACKAGES = "libegl1 and libgl1-mesa-dri"
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
