"""The program `simulator`: starts the node and ends it on a signal or a failure.

The main thread only waits, so it handles signals at once whatever the other threads do. One
thread builds the node and then runs its callbacks; the physics thread advances the simulation.
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
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import rclpy
from rclpy.logging import get_logger
from rclpy.signals import SignalHandlerOptions
from rclpy.utilities import remove_ros_args

from crazyflow_ros.checks.entry_points import load
from crazyflow_ros.checks.program_end import on_end
from crazyflow_ros.ros.memory_limit import advice
from crazyflow_ros.ros.middleware import configure_middleware, unconnected_endpoints
from crazyflow_ros.ros.parameters.parameter_files import check_parameter_files
from crazyflow_ros.ros.serving import ServingExecutor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from crazyflow_ros.ros.host import Host
    from crazyflow_ros.ros.node import SimulatorNode
    from crazyflow_ros.xla.compiled_files import CompiledFiles

STOPPED, FAILED, WRONG_USAGE = 0, 1, 2
"""Exit codes."""

LOCK_STEP = "--lock-step"
"""Option that runs the program after `--` in simulated time."""

_PROGRAMS = "crazyflow_ros.programs"  # group of the entry points
_STOP_TIMEOUT = 0.6  # s for each of the other threads
_LAST_RESORT = 10.0  # s for all of them
_SPIN_PERIOD = 0.5  # s after which the node's thread checks whether it should stop
_SWITCH_INTERVAL = 5e-4  # s
_M_MMAP_THRESHOLD = -3  # of glibc's mallopt
_ADDRESS_SPACE = 5 * 2**29  # bytes needed by one drone, most of them never touched
_MIXED = "Sequence should be of same type"  # rcl, about lists such as [0, 0.5]
_MIXED_HINT = "; write all numbers of a list with a point, as in [0.0, 0.5]"
_BIG_BLOCK = 128 * 1024  # bytes, glibc's initial threshold


def main(
    args: list[str] | None = None, node: str = "crazyflow_ros.ros.node", name: str = "crazyflow"
) -> NoReturn:
    """Run the simulator until a signal or a failure, then end the process.

    Args:
        args: Command line, by default that of the process.
        node: Module with the function `build`, which builds the node; importing it takes seconds.
        name: Name of the node.
    """
    try:
        given, command = _split(sys.argv[1:] if args is None else args)
    except ValueError as error:
        print(f"simulator: {error}", file=sys.stderr)
        sys.exit(WRONG_USAGE)
    # When the physics thread wakes up while a callback runs, it needs the interpreter's lock within
    # a fraction of a tick. Python's default of 5 ms is more than a tick.
    sys.setswitchinterval(_SWITCH_INTERVAL)
    _give_memory_back()
    gc.disable()  # until the node is built: imported modules and traced code are permanent
    process = _Process(node, command)
    on_end(lambda: process.end(STOPPED))
    _check_address_space()
    configure_middleware()
    _ensure_log_folder()
    try:
        for warning in check_parameter_files(given, name):
            print(f"simulator: {warning}", file=sys.stderr)
        rclpy.init(args=given, signal_handler_options=SignalHandlerOptions.NO)
        if unread := remove_ros_args(given):
            words = " ".join(unread)
            raise ValueError(f"arguments of ROS follow --ros-args: write --ros-args {words}")
    except Exception as error:  # rclpy has no public base class for argument errors
        unknown = type(error).__name__ == "UnknownROSArgsError"  # its text is a list of these
        expected = "expected arguments of ROS, such as -p name:=value, got "
        hint = _MIXED_HINT if _MIXED in str(error) else ""  # in -p
        print(f"simulator: {expected if unknown else ''}{error}{hint}", file=sys.stderr)
        sys.exit(WRONG_USAGE)
    exit_code = process.run()
    with suppress(OSError):  # the terminal may be closed
        sys.stdout.flush()
        sys.stderr.flush()
    # Everything is closed by now, unless a thread is still compiling, which cannot be interrupted.
    # A regular exit would wait for that thread, and otherwise takes longer than everything above.
    os._exit(exit_code)


def _split(args: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the arguments of ROS, and the program that runs in simulated time, if any.

    Raises:
        ValueError: The program is missing.
    """
    if LOCK_STEP not in args:
        return list(args), []
    end = args.index("--") if "--" in args else len(args)
    command = list(args[end + 1 :])
    if not command:
        raise ValueError(f"{LOCK_STEP} needs a program, at the end: -- python script.py")
    ours = [word for word in args[:end] if word != LOCK_STEP]
    return [*ours, "--ros-args", "-p", "start_paused:=true"], command


def _give_memory_back() -> None:
    """Fix glibc's mmap threshold, so that large blocks return to the system when they are freed.

    By default glibc raises the threshold with each freed block. The scene is recompiled whenever a
    drone is added or removed, which left 35 MB of holes in the heap after 300 times.
    """
    with suppress(AttributeError):  # another C library
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _BIG_BLOCK)


def _check_address_space() -> None:
    """Exit with an explanation where XLA would abort the process for lack of memory."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY and limit < _ADDRESS_SPACE:
        allowed, needed = limit >> 20, _ADDRESS_SPACE >> 20
        print(
            f"simulator: the address space limit is {allowed} MiB (ulimit -v), "
            f"expected at least {needed} MiB",
            file=sys.stderr,
        )
        sys.exit(WRONG_USAGE)


def _ensure_log_folder() -> None:
    """Choose a temporary log folder if the usual one is not writable: ROS needs one to start."""
    home = os.environ.get("ROS_HOME") or os.path.join(os.environ.get("HOME", ""), ".ros")
    folder = os.environ.get("ROS_LOG_DIR") or os.path.join(home, "log")
    with suppress(OSError):
        if os.path.isabs(folder):
            os.makedirs(folder, exist_ok=True)
            if os.access(folder, os.W_OK):
                return
    os.environ["ROS_LOG_DIR"] = other = tempfile.mkdtemp(prefix="crazyflow_ros_log_")
    print(f"simulator: cannot write logs to {folder!r}, using {other}", file=sys.stderr)


class TimedProgram(Protocol):
    """A program that runs in simulated time; the process ends with it.

    An entry point of the group `crazyflow_ros.programs`, `ros`, builds it from its command.
    """

    def note(self, publisher: Any, message: bytes) -> None:
        """Note a message before the node publishes it. From any thread."""

    def start(self, simulator: Host) -> None:
        """Start it, in the thread of the node, all of whose services exist.

        Raises:
            OSError: It cannot be started.
        """

    def run(self) -> int:
        """Wait for its end, in a thread of its own, and return its exit code."""

    def stop(self) -> None:
        """End it, if it has been started. From any thread."""


class _Process:
    """Threads of the process and its shutdown."""

    def __init__(self, node: str, command: Sequence[str]) -> None:
        self._node, self._command = node, command
        self._program: TimedProgram | None = None
        self._simulator: SimulatorNode | None = None
        self._cache: CompiledFiles | None = None
        self._exit_code = STOPPED
        self._ended = threading.Event()
        # A signal writes to the pipe, whichever thread the kernel delivers it to.
        self._wakes, self._waker = os.pipe()
        os.set_blocking(self._waker, False)
        signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        self._worker = threading.Thread(target=self._work, name="node", daemon=True)

    def end(self, exit_code: int) -> None:
        """End the process, from any thread; the first call sets the exit code."""
        if not self._ended.is_set():
            # If the end hangs, print where, and exit with 1. This does not need the interpreter's
            # lock, which the thread that hangs may keep, and the main thread then never gets.
            faulthandler.dump_traceback_later(_LAST_RESORT, exit=True)
            self._exit_code = exit_code
            self._ended.set()
            os.write(self._waker, b"\0")

    def run(self) -> int:
        self._worker.start()
        while not self._ended.is_set():
            os.read(self._wakes, 1)
        may_compile = False
        if self._program is not None:
            self._program.stop()
        if self._simulator is not None:
            self._simulator.waiting.wake()
            try:
                self._simulator.physics.stop(_STOP_TIMEOUT)  # ends the waits of all callbacks
            except TimeoutError:
                may_compile = True
        self._worker.join(2 * _STOP_TIMEOUT)  # sensors may take half of it
        if self._simulator is not None:
            self._simulator.close(_STOP_TIMEOUT)
        if not (may_compile or self._worker.is_alive()):
            if self._cache is not None:
                self._cache.close()
            rclpy.try_shutdown()  # may hang while the other thread is in rclpy
        return self._exit_code

    def _work(self) -> None:
        try:
            get_logger("crazyflow").info("importing JAX and MuJoCo")
            # Imported here because it takes seconds.
            from crazyflow_ros.xla.compiled_files import open_cache

            self._cache = open_cache(get_logger("crazyflow").warning)
            try:
                self._simulator = simulator = self._build()
            except ValueError as error:
                get_logger("crazyflow").fatal(str(error))
                self.end(WRONG_USAGE)
                return
            simulator.physics.news.on_failure(self._fail)
            simulator.on_quit = lambda: self.end(STOPPED)
            gc.freeze()
            gc.enable()
            self._cache.postpone()
            simulator.start()
            if self._program is not None:
                self._run_beside(self._program, simulator)
            executor = ServingExecutor(self._fail)
            executor.add_node(simulator)
            simulator.waiting.wake = executor.wake

            def serve() -> None:
                try:
                    executor.serve(_SPIN_PERIOD, self._ended.is_set)
                except MemoryError as error:
                    why = simulator.guard.explain(error, "a request")
                    simulator.log.warning(f"a request is ignored: {why}")

            serve_guarded = simulator.guard.on_timer(serve)
            while not self._ended.is_set():
                serve_guarded()
            with suppress(TimeoutError):
                simulator.physics.stop(_STOP_TIMEOUT)  # it publishes until it stops
            simulator.waiting.wake = lambda: None
            executor.shutdown()
            simulator.destroy_node()
        except BaseException as error:
            self._fail(error)

    def _build(self) -> SimulatorNode:
        build: Callable[..., SimulatorNode] = import_module(self._node).build
        if self._command:
            self._program = load(_PROGRAMS, "ros", "program in simulated time")(self._command)
        with unconnected_endpoints():
            return build() if self._program is None else build(self._program.note)

    def _run_beside(self, program: TimedProgram, simulator: SimulatorNode) -> None:
        """Start the program that runs in simulated time; the process ends with it."""
        program.start(simulator)

        def run() -> None:
            try:
                self.end(program.run())
            except BaseException as error:
                self._fail(error)

        threading.Thread(target=run, name="script", daemon=True).start()

    def _fail(self, error: BaseException) -> None:
        if not self._ended.is_set():  # failures during shutdown do not matter
            trace = "".join(traceback.format_exception(error)).rstrip()
            get_logger("crazyflow").fatal(f"{trace}{advice(error)}")
            self.end(FAILED)
