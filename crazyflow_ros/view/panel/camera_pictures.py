"""Pictures of the selected drone's cameras, over the scene."""

from __future__ import annotations

import io
import time
from typing import Any

import numpy as np
from PIL import Image as Picture
from sensor_msgs.msg import CompressedImage, Image

from crazyflow_ros.ros.messages import type_name
from crazyflow_ros.view.follower import Follower, Inbox
from crazyflow_ros.view.shell import Feed, Shell

_LOOK = 1.0  # s of wall time between two searches for topics
_RAW, _COMPRESSED = "/image_raw", "/image_raw/compressed"
_FARTHEST = 10.0  # m, white in a picture of depths
_QUALITY = 80
_KIND = "onboard picture"  # of the shell's messages
_LARGEST = 1 << 18  # bytes of a picture
_MOST_PIXELS = 1 << 20
_JPEG = b"\xff\xd8"
_NONE = (
    "{drone} has no camera. Start the simulator with the parameter sensors:=config/sensors.yaml,"
    " or the demonstration with make sim VIEW=1 CAMERAS=1."
)


class CameraPictures:
    """Shows one camera at a time; subscribes to it only while a tab shows the picture.

    Args:
        shell: Shows the pictures: `picture.js`.
        follower: The connection to the simulator.
    """

    def __init__(self, shell: Shell, follower: Follower) -> None:
        self._shell, self._follower = shell, follower
        self._feed = Feed(shell, "onboard cameras")
        self._chosen = ""
        self._cameras: dict[str, str] = {}  # topics by name
        self._inbox = Inbox(follower)
        self._drone = ""
        self._look_due = 0.0
        shell.on("choose onboard camera", self._choose)

    def _choose(self, _: int, name: Any) -> None:
        if isinstance(name, str) and name in self._cameras:
            self._chosen = name

    def update(self, drone: str) -> None:
        """Show what a drone's camera sees; an empty name shows nothing."""
        is_wanted = bool(drone) and self._feed.is_wanted
        if is_wanted and (drone != self._drone or time.monotonic() > self._look_due):
            self._drone, self._look_due = drone, time.monotonic() + _LOOK
            self._cameras = self._find(drone)
        chosen = self._chosen if self._chosen in self._cameras else next(iter(self._cameras), "")
        topic = self._cameras.get(chosen, "") if is_wanted else ""
        kind = CompressedImage if topic.endswith(_COMPRESSED) else Image
        self._inbox.subscribe({topic: kind} if topic else {})
        content = {"drone": drone, "cameras": list(self._cameras), "chosen": chosen}
        content["text"] = "" if self._cameras else _NONE.format(drone=drone or "The drone")
        self._feed.show(content)
        message = self._inbox.take(topic)
        if message is not None and (jpeg := as_jpeg(message)) is not None:
            self._shell.send(_KIND, jpeg, self._shell.wanting(_KIND))

    def _find(self, drone: str) -> dict[str, str]:
        """Return the topics of a drone's cameras by name, the compressed ones where they exist."""
        topics = self._follower.topics_of(drone)
        names = sorted(
            topic.removesuffix(_RAW)
            for topic, kind in topics.items()
            if topic.endswith(_RAW) and kind == type_name(Image)
        )
        return {
            name: self._follower.topic(
                f"{drone}/{name}{_COMPRESSED if f'{name}{_COMPRESSED}' in topics else _RAW}"
            )
            for name in names
        }


def as_jpeg(message: CompressedImage | Image) -> bytes | None:
    """Return a picture as JPEG; None if it is too large, or its encoding is not supported.

    Depths become grey, white from 10 m on; ids of a segmentation become colours.
    """
    if isinstance(message, CompressedImage):
        content = bytes(message.data)
        return content if content.startswith(_JPEG) and len(content) <= _LARGEST else None
    shape = message.height, message.width
    if not 0 < message.height * message.width <= _MOST_PIXELS:
        return None
    try:
        match message.encoding:
            case "rgb8":
                pixels = np.frombuffer(message.data, np.uint8).reshape(*shape, 3)
            case "32FC1":
                depth = np.frombuffer(message.data, "<f4").reshape(shape)
                grey = np.nan_to_num(depth, nan=0.0, posinf=_FARTHEST) / _FARTHEST
                pixels = (255 * np.clip(grey, 0, 1)).astype(np.uint8)
            case "32SC1":
                ids = np.frombuffer(message.data, "<i4").reshape(shape).astype(np.int64) + 1
                mixed = np.stack([ids * 97, ids * 57, ids * 23], axis=-1) % 256
                pixels = mixed.astype(np.uint8)  # neighbouring ids differ; none is black
            case _:
                return None
    except ValueError:  # fewer bytes than pixels
        return None
    file = io.BytesIO()
    Picture.fromarray(pixels).save(file, "JPEG", quality=_QUALITY)
    return file.getvalue() if file.tell() <= _LARGEST else None
