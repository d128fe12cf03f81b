"""Controls of recording: the state, and a button that starts and ends it."""

from __future__ import annotations

from datetime import datetime
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from crazyflow_ros.view.controls import PageControls
from crazyflow_ros.view.follower import Follower
from crazyflow_ros.view.frame import Frame

if TYPE_CHECKING:
    from crazyflow_ros.ros.recording.topic_recording import TopicRecording

_RECORD, _STOP = "Record", "Stop recording"


class RecordingPanel:
    """The part of the panel that records all topics to a file.

    Args:
        panel: Where the section is.
        follower: The connection to the simulator.
        folder: Folder of the files.
    """

    def __init__(self, panel: PageControls, follower: Follower, folder: Path) -> None:
        self._follower, self._folder = follower, folder.absolute()
        self._recording: TopicRecording | None = None
        self._is_clicked = False
        self._result = ""
        section = panel.section("Recording", order=70, is_open=False, visible=False)
        with section as self._section:
            self._text = panel.add("text", content="")
            self._button = panel.add("button", _RECORD, hint=f"All topics, into {self._folder}")
        self._button.on_change(self._click)

    def _click(self, *_: object) -> None:
        self._is_clicked = True

    def update(self, frame: Frame | None) -> None:
        """Start or end a recording after a click, and show the state; None without a simulator."""
        is_clicked, self._is_clicked = self._is_clicked, False
        self._section.visible = frame is not None or bool(self._result)
        if self._recording is not None:
            if is_clicked or frame is None or self._recording.status().error:
                self.close()
        elif is_clicked and frame is not None:
            self._begin(frame.time_ns)
        self._button.label = _RECORD if self._recording is None else _STOP
        own = self._follower.parameters.get("record")
        lines = [f"The simulator records everything in <b>{escape(own)}</b>."] if own else []
        if self._recording is not None:
            lines.append(_describe(self._recording))
        elif self._result:
            lines.append(self._result)
        self._text.content = "<br>".join(lines)

    @property
    def runs(self) -> bool:
        """Whether a recording is under way."""
        return self._recording is not None

    def close(self) -> None:
        """End the recording."""
        if self._recording is not None:
            self._follower.in_thread(self._recording.end)
            self._recording.close()
            self._result = _describe(self._recording)
            self._recording = None

    def _begin(self, time_ns: int) -> None:
        follower = self._follower
        path = self._folder / f"{follower.name}_{datetime.now():%Y-%m-%d_%H-%M-%S}.mcap"
        try:
            from crazyflow_ros.ros.recording.topic_recording import TopicRecording

            self._recording = TopicRecording(
                follower.node, follower.name, path, follower.parameters, time_ns
            )
            follower.in_thread(self._recording.begin)
        except (OSError, ModuleNotFoundError) as error:
            self._result = escape(f"Nothing is recorded: {error}")


def _describe(recording: TopicRecording) -> str:
    status = recording.status()
    lines = [f"{status.written} messages in <b>{escape(str(recording.path))}</b>"]
    if status.dropped:
        lines.append(f"{status.dropped} messages were lost: they came too fast")
    if status.error:
        lines.append(f"writing failed: {escape(status.error)}")
    return "<br>".join(lines)
