"""Tries out descriptions of others in a process that can be killed.

The text of a description does not tell what it costs: MuJoCo can turn a few hundred bytes into
gigabytes, or take minutes. So a child process, which cannot open files and has limited memory and
time, builds the description first, and measures what MuJoCo has built. Only then does this process
build it, from the same bytes.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import threading
import time
from collections import OrderedDict
from multiprocessing import Pipe
from multiprocessing.connection import Connection

from crazyflow_ros.checks import limits
from crazyflow_ros.checks.confinement import last_words, program
from crazyflow_ros.scene.description.description import Description, Size

_CHILD = "crazyflow_ros.scene.description.sandbox_child"
_START_SECONDS = 60.0  # for the start of the process on a busy machine
_MOST_WAITING = 60.0  # s for an answer, on a busy machine
_INTERVAL = 0.05  # s between two looks at the processor time
_REMEMBERED = 256  # results


class Sandbox:
    """Checks descriptions, one after the other. The process starts with the first one.

    It ends when `close` is called, or with this process.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards all members
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection[bytes, bytes] | None = None
        self._known: OrderedDict[bytes, Size | str] = OrderedDict()
        self._closed = False

    def check(self, description: Description) -> Size:
        """Build a description, and return the size of what MuJoCo makes of it.

        Raises:
            ValueError: MuJoCo refuses it, or it is too large or takes too long.
        """
        with self._lock:
            answer = self._known.get(description.digest)
            if answer is None:
                answer = self._answer(description)
                self._known[description.digest] = answer
                if len(self._known) > _REMEMBERED:
                    self._known.popitem(last=False)
        if isinstance(answer, str):
            raise ValueError(answer)
        answer.check()
        return answer

    def close(self) -> None:
        """End the process for good; a check that is under way fails."""
        self._closed = True
        process = self._process
        if process is not None:
            process.kill()
        with self._lock:
            self._end()

    def _answer(self, description: Description) -> Size | str:
        """Return the size that the process finds, or why MuJoCo refuses the description.

        Raises:
            ValueError: It takes too long, or too much memory.
        """
        connection = self._started()
        try:
            connection.send_bytes(pickle.dumps(description))
            if self._answers(connection):
                answer = json.loads(connection.recv_bytes())
                return answer if isinstance(answer, str) else Size(*answer)
            why = f"MuJoCo must not need more than {limits.SANDBOX_SECONDS:g} s to build it"
        except (OSError, EOFError):
            most = f"more than {limits.SANDBOX_BYTES} bytes"
            why = f"MuJoCo must not crash, or need {most}, when building it"
        self._end()
        raise ValueError(why)

    def _answers(self, connection: Connection[bytes, bytes]) -> bool:
        """Wait for an answer; return False if the process has worked for too long.

        Its processor time counts, because it runs at low priority: by wall time, a busy machine
        would refuse what an idle one builds. Waiting has a limit, too.
        """
        process = self._process
        assert process is not None
        began, deadline = _processor_time(process.pid), time.monotonic() + _MOST_WAITING
        while not connection.poll(_INTERVAL):
            worked = _processor_time(process.pid) - began
            if worked > limits.SANDBOX_SECONDS or time.monotonic() > deadline:
                return False
        return True

    def _started(self) -> Connection[bytes, bytes]:
        """Return the connection to the process, which waits for a description.

        Raises:
            ValueError: It does not start.
        """
        if self._closed:
            raise ValueError("the simulator is closing")
        if self._connection is not None:
            return self._connection
        ours, theirs = Pipe()
        with theirs:
            process = subprocess.Popen(
                **program(_CHILD, str(theirs.fileno())),
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,  # until it is ready
                start_new_session=True,  # Ctrl-C is for this process, which ends the other one
            )
        self._connection, self._process = ours, process
        assert process.stderr is not None
        with process.stderr:
            try:
                if ours.poll(_START_SECONDS):
                    ours.recv_bytes()
                    return ours
                why = f"not within {_START_SECONDS:g} s"
            except (OSError, EOFError):
                why = "it ends at once"
            self._end()
            said = last_words(process.stderr)
        raise ValueError(
            f"the process that checks descriptions does not start: {why}{said and f', {said}'}"
        )

    def _end(self) -> None:
        process, connection = self._process, self._connection
        self._process = self._connection = None
        if connection is not None:
            connection.close()
        if process is not None:
            process.kill()
            process.wait()


def _processor_time(pid: int) -> float:
    """Return the processor time [s] of a process of ours that has not been waited for."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        after_name = file.read().rpartition(b")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")
