"""Middleware settings for a node that publishes many small messages."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from crazyflow_ros.resources import resource

_FILE = "FASTDDS_DEFAULT_PROFILES_FILE"
_HEEDED = "RMW_FASTRTPS_USE_QOS_FROM_XML"
_SHARED_MEMORY = "/dev/shm"
_ROOM = 1 << 20  # bytes that ROS needs there, rounded up
_LOCAL_FILE = "DEFAULT_FASTDDS_PROFILES.xml"  # read by Fast DDS from the current folder


def configure_middleware() -> None:
    """Configure Fast DDS 3 with `config/fastdds.xml`, unless the user has configured it.

    Call it before `rclpy.init`. Older versions of Fast DDS cannot read the file, and other
    middleware ignores it.
    """
    given = Path(_LOCAL_FILE).exists() or _FILE in os.environ or _HEEDED in os.environ
    if _is_fast_dds_3() and not given:
        os.environ[_FILE] = str(resource("config", "fastdds.xml"))
        os.environ[_HEEDED] = "1"


def check_shared_memory() -> None:
    """Exit with an explanation where ROS would be killed for lack of shared memory.

    Call it before rclpy is imported, which already writes there.
    """
    try:
        found = os.statvfs(_SHARED_MEMORY)
    except OSError:  # ROS gets along without it
        return
    room = found.f_bavail * found.f_frsize
    if found.f_blocks and room < _ROOM:  # without blocks, there is no limit
        print(
            f"{_SHARED_MEMORY} has {room >> 10} KiB left, expected at least {_ROOM >> 10} KiB: ROS "
            "keeps messages there; remove files from it, or make it larger (docker run --shm-size)",
            file=sys.stderr,
        )
        sys.exit(2)


def _is_fast_dds_3() -> bool:
    """Return whether Fast DDS 3 is installed: before version 3 the package was called fastrtps."""
    prefixes = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    return any((Path(prefix) / "share" / "fastdds").is_dir() for prefix in (*prefixes, sys.prefix))
