"""Whether pictures can be drawn here, for tests."""

from __future__ import annotations

import mujoco


def renderer_is_missing() -> str:
    """Why nothing can be drawn; empty if it can."""
    try:
        mujoco.Renderer(mujoco.MjModel.from_xml_string("<mujoco/>"), 8, 8).close()
    except Exception as error:
        return f"no offscreen OpenGL (set MUJOCO_GL=egl or osmesa): {error}"
    return ""
