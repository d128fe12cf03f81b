"""Which renderer takes the pictures of a camera."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

from crazyflow_ros.scene.renderers import RenderingUnavailable

Renderer: TypeAlias = Literal["opengl", "rays"]
_SOFTWARE = ("llvmpipe", "softpipe", "swrast", "swiftshader", "software rasterizer")
"""Parts of the names of OpenGL's devices that are no GPU."""


class RendererChoice(NamedTuple):
    """A renderer, and why it was chosen."""

    renderer: Renderer
    reason: str


def choose(device: Callable[[], str], trace: Callable[[], object]) -> RendererChoice:
    """Choose OpenGL with a GPU, else rays if they can draw the scene.

    This is a rule, so that two starts choose the same. Without a GPU, rays need a half to a
    twentieth of the processor time of OpenGL; see docs/benchmarks.md.

    Args:
        device: Returns the name of OpenGL's device.
        trace: Takes the pictures by rays.

    Raises:
        RenderingUnavailable: There is no OpenGL, and rays cannot draw the scene.
    """
    missing, name = None, ""
    try:
        name = device()
    except RenderingUnavailable as error:
        missing = error
    if name and not any(word in name.lower() for word in _SOFTWARE):
        return RendererChoice("opengl", f"it has a GPU, {name}")
    try:
        trace()
    except ValueError as error:
        if missing is None:
            return RendererChoice("opengl", f"rays cannot draw this scene: {error}")
        raise RenderingUnavailable(f"{missing}. Rays cannot draw this scene: {error}") from None
    if missing is not None:
        return RendererChoice("rays", f"there is no OpenGL: {missing}")
    return RendererChoice("rays", f"OpenGL has no GPU here, but {name}")
