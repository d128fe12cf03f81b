"""Settings of the middleware: who can find a node, and many small messages."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

from crazyflow_ros.resources import resource

DISCOVERY = "ROS_AUTOMATIC_DISCOVERY_RANGE"
"""ROS's variable for who can find a node."""

_LOCAL, _OF_MIDDLEWARE = "LOCALHOST", "SYSTEM_DEFAULT"  # values of it
_CHOICES = (DISCOVERY, "ROS_STATIC_PEERS", "ROS_DISCOVERY_SERVER")
_FILE = "FASTDDS_DEFAULT_PROFILES_FILE"
_HEEDED = "RMW_FASTRTPS_USE_QOS_FROM_XML"
_PROFILE, _LOCAL_PROFILE = "fastdds.xml", "fastdds_this_machine.xml"
_LAST = "</properties>"
_IGNORE = "<property><name>fastdds.ignore_local_endpoints</name><value>true</value></property>"
_SHARED_MEMORY = "/dev/shm"
_ROOM = 1 << 20  # bytes that ROS needs there, rounded up
_COLOURED = "RCUTILS_COLORIZED_OUTPUT"
_LOCAL_FILE = "DEFAULT_FASTDDS_PROFILES.xml"  # read by Fast DDS from the current folder


def stay_on_this_machine() -> None:
    """Let no other machine find this process and those that it starts, unless the user chose.

    For programs that ROS does not start. Call it before `rclpy.init`.
    """
    if not any(os.environ.get(name) for name in _CHOICES):
        os.environ[DISCOVERY] = _LOCAL


def who_finds_it(middleware: str) -> str:
    """Return a text about who can find nodes of this process with a middleware."""
    chosen, peers = os.environ.get(DISCOVERY) or "SUBNET", os.environ.get("ROS_STATIC_PEERS")
    if os.environ.get(_FILE, "").endswith(_LOCAL_PROFILE):
        chosen = _LOCAL
    other = "LOCALHOST: only by those on this machine"
    if chosen == _OF_MIDDLEWARE or os.environ.get(_CHOICES[-1]) or "zenoh" in middleware:
        who = f"those for which {middleware} is configured"
    elif chosen == "OFF":
        who = "none"
    elif chosen == "SUBNET":
        who = "those on this machine and in the local network"
    else:  # ROS takes what it does not know for LOCALHOST
        who, other = "those on this machine", "SUBNET: also by those in the local network"
    if peers and chosen != "OFF":
        who += f", and on {peers}"
    domain = os.environ.get("ROS_DOMAIN_ID") or "0"
    return f"found by programs in ROS domain {domain}: {who} ({DISCOVERY}={chosen}; {other})"


def configure_middleware() -> None:
    """Configure Fast DDS 3 with `config/fastdds.xml`, unless the user has configured it.

    Call it before `rclpy.init`, after `stay_on_this_machine`. Older versions of Fast DDS cannot
    read the file, and other middleware ignores it. For LOCALHOST, ROS would use shared memory: then
    it is told to leave the range to Fast DDS, which reads `config/fastdds_this_machine.xml`.

    ROS's log, the only thing of ours in colours, learns of NO_COLOR and FORCE_COLOR here.
    """
    for variable, choice in (("NO_COLOR", "0"), ("FORCE_COLOR", "1")):
        if os.environ.get(variable):
            os.environ.setdefault(_COLOURED, choice)
    given = Path(_LOCAL_FILE).exists() or _FILE in os.environ or _HEEDED in os.environ
    if _is_fast_dds_3() and not given:
        profile, is_local = _PROFILE, os.environ.get(DISCOVERY) == _LOCAL
        if is_local and not os.environ.get("ROS_STATIC_PEERS") and _is_fast_dds_used():
            profile, os.environ[DISCOVERY] = _LOCAL_PROFILE, _OF_MIDDLEWARE
        os.environ[_FILE] = str(resource("config", profile))
        os.environ[_HEEDED] = "1"


@contextmanager
def unconnected_endpoints() -> Iterator[None]:
    """Let publishers and subscriptions of the node that is created within ignore each other.

    Fast DDS compares each new one with all others of its process, also with those of services, so
    that their time grows with the square of their number: those of 120 drones took 9 s instead of
    1. The simulator subscribes to none of its own topics. Programs that it starts may, so the
    previous configuration is restored for them.

    It works for the first node of a process.
    """
    file = os.environ.get(_FILE, "")
    if Path(file) not in (resource("config", name) for name in (_PROFILE, _LOCAL_PROFILE)):
        yield  # the user's own
        return
    text = Path(file).read_text().replace(_LAST, f"{_IGNORE}{_LAST}")
    with ExitStack() as stack:
        with suppress(OSError):  # there is no room: slower, and the same otherwise
            changed = stack.enter_context(NamedTemporaryFile("w", suffix=Path(file).name))
            changed.write(text)
            changed.flush()
            os.environ[_FILE] = changed.name
        try:
            yield
        finally:
            os.environ[_FILE] = file


def check_shared_memory() -> None:
    """Exit with an explanation where ROS would be killed for lack of shared memory.

    Call it before rclpy is imported, which already writes there.
    """
    if problem := shared_memory_problem():
        print(problem, file=sys.stderr)
        sys.exit(2)


def shared_memory_problem() -> str:
    """Return why ROS would be killed for lack of shared memory; empty if it would not."""
    try:
        found = os.statvfs(_SHARED_MEMORY)
    except OSError:  # ROS gets along without it
        return ""
    room = found.f_bavail * found.f_frsize
    if not found.f_blocks or room >= _ROOM:  # without blocks, there is no limit
        return ""
    return (
        f"{_SHARED_MEMORY} has {room >> 10} KiB left, expected at least {_ROOM >> 10} KiB: ROS "
        "keeps messages there; remove files from it, or make it larger (docker run --shm-size)"
    )


def _is_fast_dds_3() -> bool:
    """Return whether Fast DDS 3 is installed: before version 3 the package was called fastrtps."""
    prefixes = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    return any((Path(prefix) / "share" / "fastdds").is_dir() for prefix in (*prefixes, sys.prefix))


def _is_fast_dds_used() -> bool:
    from rclpy.utilities import get_rmw_implementation_identifier  # takes a tenth of a second

    return str(get_rmw_implementation_identifier()).startswith("rmw_fastrtps")
