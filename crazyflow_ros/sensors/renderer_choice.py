"""Which renderer takes the pictures of a camera."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

from crazyflow_ros.scene.renderers import RenderingUnavailable

Renderer: TypeAlias = Literal["opengl", "rays"]
_ROUNDS = 3  # pictures of each renderer, of which the fastest counts
_SOFTWARE = ("llvmpipe", "softpipe", "swrast", "swiftshader", "software rasterizer")
"""Parts of the names of OpenGL's devices that are no GPU."""


class RendererChoice(NamedTuple):
    """A renderer, and why it was chosen."""

    renderer: Renderer
    reason: str


def choose(
    draw: Callable[[], object], trace: Callable[[], object], device: Callable[[], str]
) -> RendererChoice:
    """Choose OpenGL with a GPU, else what needs less processor time.

    Args:
        draw: Takes the pictures with OpenGL.
        trace: Takes them by rays.
        device: Returns the name of OpenGL's device, after `draw`.

    Raises:
        RenderingUnavailable: There is no OpenGL, and rays cannot draw the scene.
    """
    missing = _unavailable(draw)
    name = "" if missing else device()
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
    drawn, traced = _fastest(draw, trace)
    ours, others = (f"{1e3 * seconds:.1f}" for seconds in (traced, drawn))
    reason = f"it takes {ours} ms of processor time by rays, {others} with {name}"
    return RendererChoice("rays" if traced < drawn else "opengl", reason)


def _unavailable(draw: Callable[[], object]) -> RenderingUnavailable | None:
    try:
        draw()
    except RenderingUnavailable as error:
        return error
    return None


def _fastest(*ways: Callable[[], object]) -> list[float]:
    """Return the shortest times [s] of functions called in turns, on all cores together.

    Software of OpenGL draws on several cores, on which others may work as well.
    """
    times: list[list[float]] = [[] for _ in ways]
    for _ in range(_ROUNDS):
        for way, kept in zip(ways, times):
            start = time.process_time()
            way()
            kept.append(time.process_time() - start)
    return [min(kept) for kept in times]
