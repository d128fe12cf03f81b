"""Files of films: MP4 by PyAV, animated pictures by Pillow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from crazyflow_ros.extras import extra, require

ANIMATED = (".gif", ".webp")
"""Suffixes of animated pictures, which grow large."""

SUFFIXES = (".mp4", *ANIMATED)
_QUALITY = "20"  # of H.264, where 18 seems lossless and 28 is coarse
_COLORS = 128  # of a GIF
_WEBP = {"quality": 60, "method": 4}


class FilmFile(Protocol):
    """A film that is being written."""

    def add(self, picture: np.ndarray) -> None:
        """Add a picture, (height, width, 3) uint8."""


def check_suffix(path: Path) -> None:
    """Check that a film can be written into a file of this name.

    Raises:
        ValueError: Its suffix is unknown.
        ModuleNotFoundError: The package that writes it is not installed.
    """
    if path.suffix.lower() not in SUFFIXES:
        got = path.suffix or "no suffix"
        raise ValueError(f"a film ends in {', '.join(SUFFIXES)}, got {got}: {path.name}")
    require("images" if path.suffix.lower() in ANIMATED else "film")


@contextmanager
def film_file(path: Path, size: tuple[int, int], fps: float) -> Iterator[FilmFile]:
    """A context in which a film is written.

    Args:
        path: The file.
        size: Width and height [pixels].
        fps: Pictures per second.

    Raises:
        OSError: It cannot be written.
    """
    if path.suffix.lower() in ANIMATED:
        animated = _Animated(is_gif=path.suffix.lower() == ".gif")
        yield animated
        animated.save(path, fps)
        return
    with extra("film"):
        import av
    with av.open(str(path), "w", format="mp4", options={"movflags": "faststart"}) as container:
        stream: Any = container.add_stream("libx264", rate=Fraction(fps).limit_denominator(1000))
        stream.width, stream.height, stream.pix_fmt = *size, "yuv420p"
        stream.options = {"crf": _QUALITY, "preset": "medium"}
        yield _Mp4(container, stream)
        container.mux(stream.encode())


class _Mp4:
    def __init__(self, container: Any, stream: Any) -> None:
        self._container, self._stream = container, stream

    def add(self, picture: np.ndarray) -> None:
        import av

        self._container.mux(
            self._stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24"))
        )


class _Animated:
    def __init__(self, *, is_gif: bool) -> None:
        self._is_gif, self._pictures = is_gif, list[Any]()

    def add(self, picture: np.ndarray) -> None:
        from PIL import Image

        image = Image.fromarray(picture)
        if self._is_gif:
            image = image.quantize(_COLORS, dither=Image.Dither.NONE)
        self._pictures.append(image)

    def save(self, path: Path, fps: float) -> None:
        first, *rest = self._pictures
        options: dict[str, Any] = {} if self._is_gif else _WEBP
        first.save(path, save_all=True, append_images=rest, duration=1000 / fps, loop=0, **options)
