"""`python -m crazyflow_ros.view`, `ros2 run crazyflow_ros view`: the page of a simulator."""

from __future__ import annotations

import argparse
import os
import sys
import threading
import webbrowser
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from crazyflow_ros.checks.program_end import in_words, on_end, quiet_if_unread
from crazyflow_ros.client.simulator_arguments import add_simulator_arguments
from crazyflow_ros.extras import extra
from crazyflow_ros.ros.middleware import stay_on_this_machine
from crazyflow_ros.view.replay.share.share_options import add_share_arguments, check_share_arguments

if TYPE_CHECKING:
    from crazyflow_ros.view.page import Page
    from crazyflow_ros.view.replay.recording_page import RecordingPage

_PATIENCE = 2.0  # s of wall time in which an open tab of an earlier page connects again


def main(
    arguments: Sequence[str] | None = None, program: str = "python -m crazyflow_ros.view"
) -> int:
    """Show and steer the simulator, or a recording, in a browser, or share a recording.

    The page is served until a signal arrives.

    Args:
        arguments: Command line, by default that of the process.
        program: Name of the program in its help.

    Returns:
        Exit code.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if "--ros-args" in given:  # launch adds them; this program does not need them
        from rclpy.utilities import remove_ros_args

        given = remove_ros_args(given)
    parser = _parser(program)
    options = parser.parse_args(given)
    shares = check_share_arguments(parser, options)
    try:
        with extra("view"):
            import viser  # noqa: F401
    except ModuleNotFoundError as error:
        print(error, file=sys.stderr)
        return 1
    from crazyflow_ros.client.errors import SimulationError
    from crazyflow_ros.ros.middleware import configure_middleware

    configure_middleware()
    try:
        if shares:
            from crazyflow_ros.view.replay.share.share_program import share

            share(options)
            return 0
        with _page(options) as page:
            on_end(page.close)
            print(f"The page is at {page.viewer.url}", flush=True)
            is_terminal = sys.stdout.isatty() and sys.stderr.isatty()
            if is_wanted(options.browser, is_terminal=is_terminal):
                open_later(page.viewer.url, lambda: page.viewer.shell.has_tabs)
            page.run()
    except (OSError, ValueError, ModuleNotFoundError, SimulationError) as error:
        what = "view" if options.recording is not None else "there is no page"
        print(f"{what}: {in_words(error)}", file=sys.stderr)
        return 1
    return 0


@contextmanager
def _page(options: argparse.Namespace) -> Iterator[Page | RecordingPage]:
    """Open the page of one or two recordings, or of a simulator.

    Raises:
        OSError: A file cannot be read, or the address does not belong to this machine.
        ValueError: A file is not a recording of a simulator, or is damaged.
    """
    place = options.address, options.port
    if options.recording is not None:
        from crazyflow_ros.view.recording import Recording
        from crazyflow_ros.view.replay.recording_page import RecordingPage

        first = Recording(options.recording)
        others = [] if options.other is None else [Recording(options.other)]
        yield RecordingPage(first, *place, *others)
        return
    from crazyflow_ros.view.follower import Follower
    from crazyflow_ros.view.page import Page

    with closing(Follower(options.node, options.namespace)) as follower:
        yield Page(follower, *place, options.recordings)


def _parser(program: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program,
        description="Show and steer a running simulator, or play a recording, in a browser; or "
        "write a recording into files for others.",
    )
    parser.add_argument(
        "recording", nargs="?", type=Path, help="MCAP file to play instead of a running simulator"
    )
    parser.add_argument(
        "other", nargs="?", type=Path, help="MCAP file of a second run, to compare with the first"
    )
    parser.add_argument(
        "--address", default="127.0.0.1", help="address to listen on, default 127.0.0.1"
    )
    parser.add_argument(
        "--port", type=int, default=8080, help="TCP port, default 8080, or the next free one"
    )
    parser.add_argument(
        "--browser",
        action=argparse.BooleanOptionalAction,
        help="open the page in a browser if there is a display; by default in a terminal",
    )
    add_simulator_arguments(parser)
    add_share_arguments(parser)
    parser.add_argument(
        "--recordings", type=_folder, default=Path(), help="folder of new recordings, default ."
    )
    return parser


def _folder(text: str) -> Path:
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {text!r}")
    return Path(text)


def has_display(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> bool:
    """Return whether a browser can open a window: others would take over the terminal."""
    if platform in ("darwin", "win32"):
        return "SSH_CONNECTION" not in environment
    if environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"):
        return True
    # Without WSLg, the browser is Windows', which users name in this variable.
    return bool(environment.get("WSL_DISTRO_NAME") and environment.get("BROWSER"))


def is_wanted(
    choice: bool | None, *, is_terminal: bool, environment: Mapping[str, str] = os.environ
) -> bool:
    """Return whether a browser is to be opened.

    Args:
        choice: What the user asked for; None if nothing.
        is_terminal: Whether a person reads what the program prints.
        environment: Environment variables.
    """
    by_hand = is_terminal and not environment.get("CI")
    return has_display(environment) and (by_hand if choice is None else choice)


def open_later(
    url: str, is_seen: Callable[[], bool], show: Callable[[str], object] = webbrowser.open
) -> threading.Thread:
    """Open an address in a browser, in a thread, unless a tab is open already.

    Args:
        url: The address.
        is_seen: Returns whether a tab shows the page.
        show: Opens an address.
    """

    def work() -> None:
        if not threading.Event().wait(_PATIENCE) and not is_seen():
            show(url)

    thread = threading.Thread(target=work, name="browser", daemon=True)
    thread.start()
    return thread


if __name__ == "__main__":
    stay_on_this_machine()
    sys.exit(quiet_if_unread(main))
