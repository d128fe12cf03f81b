"""Recording to MCAP, and replay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crazyflow_ros.lazy import lazy

if TYPE_CHECKING:
    from crazyflow_ros.ros.recording.topic_recording import TopicRecording

__all__ = ["TopicRecording"]

__getattr__ = lazy(__name__, {"TopicRecording": "topic_recording"})

MODULES = ("recorded_effects", "topic_recording")
"""Modules that extensions may import, with all their public names."""
