"""What `view` does with the options that write a recorded flight into files."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from crazyflow_ros.view.recording import Recording
from crazyflow_ros.view.replay.share.film_file import ANIMATED, check_suffix
from crazyflow_ros.view.replay.share.flight_content import Tell
from crazyflow_ros.view.replay.share.flight_page import write_page
from crazyflow_ros.view.replay.share.span import span_of

_SMALL = (640, 360), 15.0  # size and pictures per second by default of animated pictures
_MP4 = (1920, 1080), 30.0


def share(options: argparse.Namespace) -> None:
    """Write the files that the options ask for.

    Raises:
        OSError: The recording cannot be read, or a file not written.
        ValueError: The recording is damaged, or has nothing to share or too much.
        ModuleNotFoundError: The package that writes films is not installed.
    """
    if options.video is not None:  # before the work begins
        check_suffix(options.video)
    recording = Recording(options.recording)
    span = span_of(recording, options.begin, options.end)
    for note in recording.notes:
        print(note, file=sys.stderr)
    if options.export is not None:
        tell = _progress(options.export)
        write_page(recording, span, options.export, tell, overwrite=options.overwrite)
        _say(options.export)
    if options.video is not None:
        from crazyflow_ros.view.replay.share.film import FilmCfg, write_film
        from crazyflow_ros.view.replay.share.film_camera import FilmView

        size, fps = _SMALL if options.video.suffix.lower() in ANIMATED else _MP4
        width, height = options.size or size
        cfg = FilmCfg(
            width,
            height,
            fps=fps if options.fps is None else options.fps,
            speed=options.speed,
            view=FilmView(options.camera),
            drone=options.drone,
        )
        tell = _progress(options.video)
        write_film(recording, span, options.video, cfg, tell, overwrite=options.overwrite)
        _say(options.video)


def _say(path: Path) -> None:
    print(f"{path}: {path.stat().st_size / 1e6:.2f} MB", flush=True)


def _progress(path: Path) -> Tell:
    """Return what tells in the terminal how far a file is: each percent, or each tenth in a log."""
    is_terminal = sys.stderr.isatty()
    step = 0.01 if is_terminal else 0.1
    last = 0.0

    def tell(done: float) -> None:
        nonlocal last
        if done <= last or done < min(last + step, 1.0):
            return
        last = done
        end = "\r" if is_terminal and done < 1 else "\n"
        print(f"{path.name}: {done:4.0%}", end=end, file=sys.stderr, flush=True)

    return tell
