"""The program `simulator`: starts the node, and ends it on SIGINT, SIGTERM or a failure.

The main thread only waits, so that a signal is heard at once, whatever the others do. One thread
builds the node and then runs its callbacks; the physics thread advances the simulation.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import os
import resource
import signal
import sys
import tempfile
import threading
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

import rclpy
from rclpy.exceptions import InvalidHandle
from rclpy.executors import Executor, SingleThreadedExecutor
from rclpy.logging import get_logger
from rclpy.signals import SignalHandlerOptions

from crazyflow_ros.ros.middleware import configure_middleware

if TYPE_CHECKING:
    from crazyflow_ros.ros.code_cache import CodeCache
    from crazyflow_ros.ros.node import SimulatorNode

STOPPED, FAILED, WRONG_USAGE = 0, 1, 2
"""Exit codes."""

_STOP_TIMEOUT = 0.6  # s for each of the other threads
_LAST_RESORT = 10.0  # s for all of them
_SPIN_PERIOD = 0.1  # s after which the node's thread looks whether it shall end
_SWITCH_INTERVAL = 5e-4  # s
_M_MMAP_THRESHOLD = -3  # of glibc's mallopt
_ADDRESS_SPACE = 5 * 2**29  # bytes that one drone needs, most of them never touched
_BIG_BLOCK = 128 * 1024  # bytes, where glibc begins


def main(args: list[str] | None = None) -> NoReturn:
    """Run the simulator until a signal or a failure ends it, and the process with it.

    Args:
        args: Command line, by default that of the process.
    """
    # When the physics thread wakes up while a callback runs, it has to get the interpreter's lock
    # within a fraction of a tick. Python's default of 5 ms is more than a tick.
    sys.setswitchinterval(_SWITCH_INTERVAL)
    _give_memory_back()
    gc.disable()  # until the node is built: what is imported and traced stays
    process = _Process()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: process.end(STOPPED))
    _check_address_space()
    configure_middleware()
    _ensure_log_folder()
    try:
        rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
    except Exception as error:  # rclpy has no public type for all that is wrong with arguments
        print(f"simulator: {error}", file=sys.stderr)
        sys.exit(WRONG_USAGE)
    exit_code = process.run()
    sys.stdout.flush()
    sys.stderr.flush()
    # All is put away, unless a thread still compiles, which nothing can interrupt. Taking down the
    # interpreter would wait for that, and else takes longer than all the rest.
    os._exit(exit_code)


def _give_memory_back() -> None:
    """Have big blocks mapped on their own for good, so that they are returned when they are freed.

    glibc raises the size from which it does so with each one that is freed. The scene is compiled
    anew whenever a drone comes or goes, and left holes of 35 MB in the heap after 300 times.
    """
    with suppress(AttributeError):  # another C library
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _BIG_BLOCK)


def _check_address_space() -> None:
    """End it with a reason where XLA would abort the process, as it does without memory."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY and limit < _ADDRESS_SPACE:
        allowed, needed = limit >> 20, _ADDRESS_SPACE >> 20
        reason = f"may use {allowed} MiB of addresses (ulimit -v), it needs {needed} MiB at least"
        print(f"simulator: the process {reason}", file=sys.stderr)
        sys.exit(WRONG_USAGE)


def _ensure_log_folder() -> None:
    """Give ROS a folder for its logs, without which it does not start, where there is no home."""
    home = os.environ.get("ROS_HOME") or os.path.join(os.environ.get("HOME", ""), ".ros")
    folder = os.environ.get("ROS_LOG_DIR") or os.path.join(home, "log")
    with suppress(OSError):
        if os.path.isabs(folder):
            os.makedirs(folder, exist_ok=True)
            if os.access(folder, os.W_OK):
                return
    os.environ["ROS_LOG_DIR"] = other = tempfile.mkdtemp(prefix="crazyflow_ros_log_")
    print(f"simulator: no logs can be written to {folder!r}, they are in {other}", file=sys.stderr)


class _Process:
    """The threads of the process, and how it ends."""

    def __init__(self) -> None:
        self._simulator: SimulatorNode | None = None
        self._cache: CodeCache | None = None
        self._exit_code = STOPPED
        self._ended = threading.Event()
        # A signal writes into the pipe, whichever thread the kernel gives it to.
        self._wakes, self._waker = os.pipe()
        os.set_blocking(self._waker, False)
        signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        self._worker = threading.Thread(target=self._work, name="node", daemon=True)

    def end(self, exit_code: int) -> None:
        """End the process, from any thread; the first to call says with which code."""
        if not self._ended.is_set():
            self._exit_code = exit_code
            self._ended.set()
            os.write(self._waker, b"\0")

    def run(self) -> int:
        """Run until `end` is called, by whomever."""
        self._worker.start()
        while not self._ended.is_set():
            os.read(self._wakes, 1)
        # If something hangs all the same, say where; this needs no lock of the interpreter.
        faulthandler.dump_traceback_later(_LAST_RESORT, exit=True)
        may_compile = False
        if self._simulator is not None:
            try:
                self._simulator.physics.stop(_STOP_TIMEOUT)  # no callback waits for it any longer
            except TimeoutError:
                may_compile = True
        self._worker.join(_STOP_TIMEOUT)
        if self._simulator is not None:
            self._simulator.close(_STOP_TIMEOUT)
        if not (may_compile or self._worker.is_alive()):
            if self._cache is not None:
                self._cache.close()
            rclpy.try_shutdown()  # while the other thread is within rclpy, this may never return
        return self._exit_code

    def _work(self) -> None:
        """Build the node, and run its callbacks."""
        try:
            get_logger("crazyflow").info("importing JAX and MuJoCo")
            # Only here, for they take seconds to import.
            from crazyflow_ros.ros.node import SimulatorNode, configure_jax

            self._cache = configure_jax(get_logger("crazyflow").warning)
            try:
                self._simulator = simulator = SimulatorNode()
            except ValueError as error:
                get_logger("crazyflow").fatal(str(error))
                self.end(WRONG_USAGE)
                return
            simulator.physics.on_failure(self._fail)
            simulator.on_quit = lambda: self.end(STOPPED)
            gc.freeze()
            gc.enable()
            self._cache.postpone()
            simulator.start()
            executor = _executor()
            executor.add_node(simulator)
            while not self._ended.is_set():
                # Not spin(): without a deadline, the executor of the wheels burns all of a core.
                # A drone may go while an event of one of its topics waits, and is found destroyed.
                with suppress(InvalidHandle):
                    executor.spin_until_future_complete(simulator.waiting.changed(), _SPIN_PERIOD)
            with suppress(TimeoutError):
                simulator.physics.stop(_STOP_TIMEOUT)  # it publishes until then
            executor.shutdown()
            simulator.destroy_node()
        except BaseException as error:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if not self._ended.is_set():  # what fails in the end is of no consequence
            get_logger("crazyflow").fatal("".join(traceback.format_exception(error)))
            self.end(FAILED)


def _executor() -> Executor:
    """The executor whose effort does not grow with the number of subscriptions, where there is one.

    100 drones have 400 subscriptions. Since Kilted, rclpy can be woken by the one that has a
    message, and a message costs 0.13 ms; otherwise it walks over all of them, which takes 2.3 ms.
    """
    try:
        from rclpy.experimental import EventsExecutor
    except ImportError:
        return SingleThreadedExecutor()
    return EventsExecutor()
