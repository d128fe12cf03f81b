"""Descriptions of worlds, objects and drones, read once with all files that they name.

MJCF and URDF reach MuJoCo only through `read` and `read_text`. A description from anyone but the
user has to pass `Sandbox.check` first.
"""

from crazyflow_ros.scene.description.description import (
    FORMATS,
    Description,
    Size,
    balanced,
    elements_of,
)
from crazyflow_ros.scene.description.elements import NotADescription
from crazyflow_ros.scene.description.places import Folders, UnknownScheme, path_of
from crazyflow_ros.scene.description.reader import UnknownFormat, read, read_text
from crazyflow_ros.scene.description.sandbox import Sandbox

__all__ = [
    "FORMATS",
    "Description",
    "Folders",
    "NotADescription",
    "Sandbox",
    "Size",
    "UnknownFormat",
    "UnknownScheme",
    "balanced",
    "elements_of",
    "path_of",
    "read",
    "read_text",
]
