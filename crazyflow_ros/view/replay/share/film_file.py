"""Files of films: MP4 by PyAV, GIF by Pillow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from crazyflow_ros.extras import extra, require

SUFFIXES = (".mp4", ".gif")
_QUALITY = "20"  # of H.264, where 18 seems lossless and 28 is coarse
_COLORS = 128  # of a GIF


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
        raise ValueError(f"a film ends in {' or '.join(SUFFIXES)}, got {got}: {path.name}")
    require("images" if path.suffix.lower() == ".gif" else "film")


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
    if path.suffix.lower() == ".gif":
        gif = _Gif()
        yield gif
        gif.save(path, fps)
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


class _Gif:
    def __init__(self) -> None:
        self._pictures: list[Any] = []

    def add(self, picture: np.ndarray) -> None:
        from PIL import Image

        self._pictures.append(Image.fromarray(picture).quantize(_COLORS, dither=Image.Dither.NONE))

    def save(self, path: Path, fps: float) -> None:
        first, *rest = self._pictures
        first.save(path, save_all=True, append_images=rest, duration=1000 / fps, loop=0)
