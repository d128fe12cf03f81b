"""Choice of MuJoCo's OpenGL library on machines without a display, and advice if there is none.

`python -m crazyflow_ros.opengl` checks whether rendering works.
"""

from __future__ import annotations

import os
import sys
from ctypes.util import find_library

_LIBRARIES = {"egl": ("EGL", "GL"), "osmesa": ("OSMesa",)}
_PACKAGES = {"egl": "libegl1 libgl1-mesa-dri", "osmesa": "libosmesa6"}  # in Debian and Ubuntu
_is_late = False  # MuJoCo was imported before MUJOCO_GL was set


def choose_opengl() -> None:
    """Set MUJOCO_GL to an installed library, unless it is set or there is a display.

    Call this before importing MuJoCo, which reads the variable; `advice` reports a late call.
    """
    global _is_late
    if "MUJOCO_GL" in os.environ or has_display():
        return
    _is_late = "mujoco" in sys.modules
    for name, libraries in _LIBRARIES.items():
        if all(find_library(library) for library in libraries):
            os.environ["MUJOCO_GL"] = name
            return


def has_display() -> bool:
    """Return whether a window can be opened."""
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def advice() -> str:
    """Return what the user can do if rendering fails."""
    chosen = os.environ.get("MUJOCO_GL")
    if _is_late and chosen in _PACKAGES:
        return f"import crazyflow_ros before mujoco, or set MUJOCO_GL={chosen} before Python starts"
    if chosen is not None and chosen not in _PACKAGES:
        return f"MUJOCO_GL is {chosen}: unset it"
    packages = _PACKAGES[chosen or "egl"]
    return f"MUJOCO_GL is {chosen or 'not set'}: install {packages}, then start again"


def problem() -> str:
    """Return why rendering fails; empty if it works."""
    try:
        import mujoco

        mujoco.Renderer(mujoco.MjModel.from_xml_string("<mujoco/>"), 8, 8).close()
    except Exception as error:  # from any of the OpenGL libraries
        return f"no pictures: {str(error) or type(error).__name__}. {advice()}"
    return ""
