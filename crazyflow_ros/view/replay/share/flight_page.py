"""A recorded flight as one HTML file, which needs no server and no network."""

from __future__ import annotations

import gzip
import html
import json
from base64 import b64encode
from pathlib import Path

from crazyflow_ros.view.recording import Recording
from crazyflow_ros.view.replay.run import Run
from crazyflow_ros.view.replay.share.flight_content import Tell, flight_content
from crazyflow_ros.view.replay.share.span import Span, new_file
from crazyflow_ros.view.shell.shell import element, icon

_PARTS = ("base", "timebar", "plots")
_SCRIPTS = (
    *("theme.css", "inputs.css", "share/share.css"),
    *(f"replay/{name}.css" for name in (*_PARTS, "events")),
    *("share/flight.js", "dom.js", "shortcuts.js", "theme.js", "title.js", "files.js"),
    *(f"replay/{name}.js" for name in (*_PARTS, "eventlist", "eventcard")),
    *("share/matrices.js", "share/meshes.js", "share/camera.js", "share/scene.js"),
    *("share/tracks.js", "share/player.js"),
)
_RULES = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:"
)
_NOTICE = """
A recorded flight. Open this file in a browser; it asks nothing of any network.

Written by crazyflow_ros. Its scripts and styles are part of crazyflow_ros, copyright the
crazyflow_ros maintainers, licensed under the Apache License, Version 2.0
(https://www.apache.org/licenses/LICENSE-2.0). There are no scripts of other projects in it. The
parameters by which drones are drawn come from Crazyflow, copyright 2025 Martin Schuck, MIT License.
The flight and its world belong to whoever recorded them.
"""


def write_page(
    recording: Recording,
    span: Span,
    path: Path,
    tell: Tell = lambda _: None,
    *,
    overwrite: bool = False,
) -> None:
    """Write a part of a recorded flight as an HTML file.

    Args:
        recording: The recording.
        span: The part.
        path: The file.
        tell: Told how far it is.
        overwrite: Whether an existing file is replaced.

    Raises:
        OSError: The recording cannot be read, or the file not written.
        ValueError: The recording is damaged, or its part is empty or too large.
    """
    with new_file(path, overwrite=overwrite) as part:
        run = Run(recording)
        run.scan(lambda share: tell(0.5 * share) is not False)
        part.write_bytes(flight_page(run, span, lambda share: tell(0.5 + 0.5 * share)))


def flight_page(run: Run, span: Span, tell: Tell = lambda _: None) -> bytes:
    """Return a part of a recorded flight as an HTML page.

    Args:
        run: The flight, after its `scan`.
        span: The part.
        tell: Told how far it is.

    Raises:
        OSError: The recording cannot be read.
        ValueError: It is damaged, or its part is empty or too large.
    """
    content = flight_content(run, span, tell)
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    data = b64encode(gzip.compress(text.encode(), mtime=0)).decode()
    head = (
        f"<!doctype html>\n<!--{_NOTICE}-->\n"
        '<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_RULES}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover">'
        f"<title>{html.escape(run.name)}</title>"
    )
    body = (
        '</head><body><div id="root"></div>'
        f'<script type="text/plain" id="flight">{data}</script></body></html>\n'
    )
    parts = (head.encode(), icon(), *map(element, _SCRIPTS), body.encode())
    return b"".join(parts)
