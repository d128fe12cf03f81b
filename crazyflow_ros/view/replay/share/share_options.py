"""The options of `view` that write a recorded flight into files: a page, a film."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from crazyflow_ros.checks.limits import shown

_SUFFIXES = (".html", ".htm")


def add_share_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options to a program's parser."""
    group = parser.add_argument_group(
        "to share a flight",
        "Write the recording into files, and end. Files that exist are kept, unless --overwrite.",
    )
    group.add_argument(
        "--export", type=Path, metavar="FILE.html", help="a page that needs no server or network"
    )
    group.add_argument("--video", type=Path, metavar="FILE", help="a film, .mp4, .gif or .webp")
    group.add_argument("--begin", type=float, metavar="S", help="from this time on [s]")
    group.add_argument("--end", type=float, metavar="S", help="until this time [s]")
    group.add_argument("--overwrite", action="store_true", help="replace files that exist")
    group.add_argument(
        "--camera",
        choices=("orbit", "follow", "fixed"),
        default="orbit",
        help="of the film: goes around all drones (default), stays beside one, or stands still",
    )
    group.add_argument(
        "--drone", default="", help="whom the film's camera follows, by default the first"
    )
    group.add_argument(
        "--size",
        type=_size,
        metavar="WxH",
        help="of the film, default 1920x1080, GIF and WebP 640x360",
    )
    group.add_argument("--fps", type=float, help="pictures per second, default 30, GIF and WebP 15")
    group.add_argument("--speed", type=float, default=1.0, help="of the film, default 1")


def _size(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{1,5})x(\d{1,5})", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"expected a size such as 1920x1080, got {shown(text)}")
    return int(found[1]), int(found[2])


def check_share_arguments(parser: argparse.ArgumentParser, options: argparse.Namespace) -> bool:
    """Return whether files are to be written; end the program if the options contradict."""
    is_wanted = options.export is not None or options.video is not None
    if is_wanted and options.recording is None:
        parser.error("--export and --video need a recording: view flight.mcap --export flight.html")
    if is_wanted and options.other is not None:
        parser.error("--export and --video take one recording, not two")
    if not is_wanted and (options.begin is not None or options.end is not None):
        parser.error("--begin and --end are for --export and --video")
    if options.export is not None and options.export.suffix.lower() not in _SUFFIXES:
        parser.error(f"--export writes a file .html, got {shown(options.export.name)}")
    return is_wanted
