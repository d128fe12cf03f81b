"""Sending of many serialised messages at once, without holding Python's lock.

outbox.c does the work. It is compiled when the package is installed on a machine with a C compiler;
without it Python sends message by message.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from rclpy.exceptions import InvalidHandle
from rclpy.publisher import Publisher

from crazyflow_ros.ros.messages.cdr import SerialisedMessages

LIBRARY = Path(__file__).with_name("_outbox.abi3.so")
"""The compiled library; `ros/memory.c` is also in it."""


@cache
def is_available() -> bool:
    """Return whether the compiled library exists."""
    return LIBRARY.exists()


@cache
def _functions() -> tuple[Any, ctypes.c_void_p]:
    """Return the function that sends many messages, and the ROS function that sends one."""
    send = ctypes.CDLL(str(LIBRARY)).crazyflow_ros_send
    number, address = ctypes.c_size_t, ctypes.c_void_p
    send.argtypes = [
        address, number, address, address, address, number, number, address, address,
    ]  # fmt: skip
    send.restype = number
    publish = ctypes.CDLL("librcl.so").rcl_publish_serialized_message
    return send, ctypes.cast(publish, ctypes.c_void_p)


def _last_error() -> str:
    """Return what ROS says of the last failure in this thread, and let it forget that."""
    library = ctypes.CDLL("librcutils.so")
    library.rcutils_get_error_string.restype = _ErrorString
    why: bytes = library.rcutils_get_error_string().text
    library.rcutils_reset_error()
    return why.decode(errors="replace")


class _ErrorString(ctypes.Structure):
    """ROS's `rcutils_error_string_t`."""

    _fields_ = (("text", ctypes.c_char * 1024),)


class Outbox:
    """Publishers, each with the byte range of its message in the messages of one moment.

    A publisher destroyed later stays in memory until the outbox is deleted. If a publisher is not
    rclpy's own, for example because its messages are recorded, all messages are sent in Python.

    Args:
        addresses: Publishers and byte ranges of their messages. Destroyed publishers are skipped.
    """

    def __init__(self, addresses: Sequence[tuple[Publisher[Any], slice]]) -> None:
        self._handles: list[Any] = []
        in_use = ExitStack()
        for publisher, _ in addresses:
            handle: Any = publisher.handle
            try:
                in_use.enter_context(handle)
            except InvalidHandle:
                handle = None
            self._handles.append(handle)
        weakref.finalize(self, in_use.close)
        self._places = [place for _, place in addresses]
        self._tables: tuple[np.ndarray, ...] = ()
        if is_available() and all(isinstance(publisher, Publisher) for publisher, _ in addresses):
            self._tables = (
                np.array([handle.pointer if handle else 0 for handle in self._handles], np.uintp),
                np.array([place.start for place in self._places], np.uintp),
                np.array([place.stop - place.start for place in self._places], np.uintp),
            )
        self._addresses = [table.ctypes.data for table in self._tables]

    def send(self, moments: np.ndarray, wanted: np.ndarray | None = None) -> None:
        """Send the messages of several moments in order.

        Args:
            moments: Concatenated messages of each moment, uint32 of shape (T, W), contiguous.
            wanted: Whether to send each of the A messages of a moment, bool of shape (T, A),
                contiguous; by default all are sent.

        Raises:
            RuntimeError: Some messages could not be sent; all others were.
        """
        n_failed, why = (self._send if self._tables else self._send_each)(moments, wanted)
        if n_failed:
            raise RuntimeError(f"{n_failed} messages could not be sent: {why}")

    def _send(self, moments: np.ndarray, wanted: np.ndarray | None) -> tuple[int, str]:
        send, publish = _functions()
        chosen = None if wanted is None else wanted.ctypes.data
        n_failed: int = send(
            publish, len(self._handles), *self._addresses,
            len(moments), moments.strides[0], moments.ctypes.data, chosen,
        )  # fmt: skip
        return n_failed, _last_error() if n_failed else ""

    def _send_each(self, moments: np.ndarray, wanted: np.ndarray | None) -> tuple[int, str]:
        n_failed, why = 0, ""
        for i, moment in enumerate(moments):
            payload = moment.tobytes()
            for j, (handle, place) in enumerate(zip(self._handles, self._places)):
                if handle is not None and (wanted is None or wanted[i, j]):
                    try:
                        handle.publish_raw(payload[place])
                    except RuntimeError as error:
                        n_failed, why = n_failed + 1, str(error)
        return n_failed, why


class Row:
    """Messages that are updated together, and sent to the publishers of some of them.

    Args:
        messages: The messages.
        addresses: Numbers of messages, with the publisher of each.
    """

    def __init__(
        self, messages: SerialisedMessages, addresses: Sequence[tuple[int, Publisher[Any]]]
    ) -> None:
        self._messages, self._numbers = messages, [number for number, _ in addresses]
        self._outbox = Outbox([(p, messages.places[number]) for number, p in addresses])

    def send(self, time_ns: int, blocks: Sequence[np.ndarray]) -> None:
        """Update the messages and send them, see `SerialisedMessages.update`."""
        self._messages.update(time_ns, blocks)
        self._outbox.send(self._messages.words[None])

    def send_series(
        self, times_ns: np.ndarray, blocks: Sequence[np.ndarray], wanted: np.ndarray
    ) -> None:
        """Send the messages of several times, see `SerialisedMessages.series`.

        Args:
            times_ns: Times [ns].
            blocks: Numbers.
            wanted: Which messages to send, by time and message, bool.
        """
        series = self._messages.series(times_ns, blocks)
        self._outbox.send(series, np.ascontiguousarray(wanted[:, self._numbers]))
