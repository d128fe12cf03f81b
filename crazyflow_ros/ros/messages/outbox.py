"""Messages that are serialised once, get new numbers in place, and are sent many at once.

Building a ROS message in Python and serialising it takes about ten times as long as sending it, and
a simulator sends the same few messages over and over with new numbers. outbox.c sends them without
holding Python's lock. It is compiled when the package is installed on a machine with a C compiler;
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

from crazyflow_ros.ros.messages.cdr import Layout

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
    """Return and clear ROS's message about the last failure in this thread."""
    library = ctypes.CDLL("librcutils.so")
    library.rcutils_get_error_string.restype = _ErrorString
    why: bytes = library.rcutils_get_error_string().text
    library.rcutils_reset_error()
    return why.decode(errors="replace")


class _ErrorString(ctypes.Structure):
    _fields_ = (("text", ctypes.c_char * 1024),)


class SerialisedMessages:
    """Serialised messages whose times and numbers are overwritten together in a few operations.

    Attributes:
        words: All messages, uint32 of shape (W,).
        places: Byte range of each message.
    """

    def __init__(self, layout: Layout) -> None:
        size = layout.words.size
        # Two spare words at the end receive the doubles that are float32 in the messages.
        self.words = np.concatenate((layout.words, np.zeros(2, np.uint32)))
        self.places = layout.messages
        self._times = layout.times
        places = np.where(layout.doubles, layout.numbers, size)
        self._numbers = np.stack((places, places + 1), axis=-1).ravel()
        self._singles = np.flatnonzero(~layout.doubles)
        self._floats = layout.numbers[self._singles]

    def update(self, time_ns: int, blocks: Sequence[np.ndarray]) -> None:
        """Set all times [ns] and numbers.

        Args:
            time_ns: Time of all messages.
            blocks: One float64 array for each block of paths, shape (N, paths).
        """
        self.words[self._times] = divmod(time_ns, 1_000_000_000)
        if blocks:
            values = np.concatenate([block.ravel() for block in blocks])
            self.words[self._numbers] = values.view(np.uint32)
            if self._singles.size:
                floats = values[self._singles].astype(np.float32)
                self.words[self._floats] = floats.view(np.uint32)

    def series(self, times_ns: np.ndarray, blocks: Sequence[np.ndarray]) -> np.ndarray:
        """Return the messages at several times, without changing `words`.

        Args:
            times_ns: Times [ns], int: shape (T, 1), or one for each time in the messages, message
                by message, shape (T, K).
            blocks: As for `update`, but T times as large; the values of one time are contiguous.

        Returns:
            The value of `words` at each time, shape (T, W).
        """
        words = np.repeat(self.words[None], len(times_ns), axis=0)
        words[:, self._times] = np.stack(np.divmod(times_ns, 1_000_000_000), axis=-1)
        if blocks:
            rows = [block.reshape(len(times_ns), -1) for block in blocks]
            values = np.ascontiguousarray(np.concatenate(rows, axis=1))
            words[:, self._numbers] = values.view(np.uint32)
            if self._singles.size:
                floats = values.take(self._singles, axis=1).astype(np.float32)
                words[:, self._floats] = floats.view(np.uint32)
        return words


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
        why = ""
        if self._tables:
            send, publish = _functions()
            chosen = None if wanted is None else wanted.ctypes.data
            n_failed: int = send(
                publish, len(self._handles), *self._addresses,
                len(moments), moments.strides[0], moments.ctypes.data, chosen,
            )  # fmt: skip
            if n_failed:
                why = _last_error()
        else:
            n_failed, why = self._send_each(moments, wanted)
        if n_failed:
            raise RuntimeError(f"{n_failed} messages could not be sent: {why}")

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
        self._messages = messages
        self._outbox = Outbox([(p, messages.places[number]) for number, p in addresses])

    def send(self, time_ns: int, blocks: Sequence[np.ndarray]) -> None:
        """Update the messages and send them, see `SerialisedMessages.update`."""
        self._messages.update(time_ns, blocks)
        self._outbox.send(self._messages.words[None])
