"""Settings of the middleware for a node that sends many small messages."""

from __future__ import annotations

import os
from pathlib import Path

from crazyflow_ros.resources import resource

_VARIABLE = "FASTDDS_DEFAULT_PROFILES_FILE"
_LOCAL_FILE = "DEFAULT_FASTDDS_PROFILES.xml"  # which Fast DDS reads in the current folder


def configure_middleware() -> None:
    """Have Fast DDS 3 take `config/fastdds.xml`, unless the user has given it settings.

    To be called before `rclpy.init`. Other middleware, and older Fast DDS, take no notice.
    """
    if not Path(_LOCAL_FILE).exists():
        os.environ.setdefault(_VARIABLE, str(resource("config", "fastdds.xml")))
