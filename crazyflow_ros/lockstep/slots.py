"""Commands that controllers write into the shared memory, copied while they do."""

from __future__ import annotations

import numpy as np

from crazyflow_ros.lockstep.futex import fence
from crazyflow_ros.lockstep.layout import COMMAND, COMMAND_SLOT, offset
from crazyflow_ros.lockstep.shared_memory import SharedMemory

_BUFFERS = offset(COMMAND_SLOT, "buffers") // 8
_TRIES = 100  # attempts to copy the commands while none of them changes


class CommandSlots:
    """The slots of all rows, as words of 64 bits, so that one copy includes them all.

    Args:
        memory: The memory.
    """

    def __init__(self, memory: SharedMemory) -> None:
        n, start = len(memory.view["slots"]), offset(memory.view.dtype, "slots")
        words = np.frombuffer(memory.bytes, np.uint64, n * COMMAND_SLOT.itemsize // 8, start)
        self._words = words.reshape(n, -1)
        self._rows = np.arange(n)

    def copy(self) -> np.ndarray:
        """Copy all slots such that each latest command is complete.

        Only a controller that writes continuously, instead of once per state, can prevent complete
        copies; its commands are checked like all others.
        """
        for _ in range(_TRIES):
            words = self._words.copy()
            fence()
            if self._words[:, 1].tobytes() == words[:, 1].tobytes():
                break
        return words

    def latest(self, words: np.ndarray) -> np.ndarray:
        """Return the latest command of each row of a copy, as words."""
        buffers = words[:, _BUFFERS:].reshape(len(words), 2, COMMAND.itemsize // 8)
        return buffers[self._rows, (words[:, 1] & 1).view(int)]
