"""Settings of the middleware for a node that sends many small messages."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from crazyflow_ros.resources import resource

_FILE = "FASTDDS_DEFAULT_PROFILES_FILE"
_HEEDED = "RMW_FASTRTPS_USE_QOS_FROM_XML"
_LOCAL_FILE = "DEFAULT_FASTDDS_PROFILES.xml"  # which Fast DDS reads in the current folder


def configure_middleware() -> None:
    """Have Fast DDS 3 take `config/fastdds.xml`, unless the user has given it settings.

    To be called before `rclpy.init`. Older Fast DDS cannot read the file, other middleware does
    not look at it.
    """
    given = Path(_LOCAL_FILE).exists() or _FILE in os.environ or _HEEDED in os.environ
    if _is_fast_dds_3() and not given:
        os.environ[_FILE] = str(resource("config", "fastdds.xml"))
        os.environ[_HEEDED] = "1"


def _is_fast_dds_3() -> bool:
    """Whether it is installed: before version 3 the package was called fastrtps."""
    prefixes = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    return any((Path(prefix) / "share" / "fastdds").is_dir() for prefix in (*prefixes, sys.prefix))
