"""The program `simulator`: starts the node, and ends it on SIGINT, SIGTERM or a failure.

The main thread only waits, so that a signal is heard at once, whatever the others do. One thread
builds the node and then runs its callbacks; the physics thread advances the simulation.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import TYPE_CHECKING

import rclpy
from rclpy.executors import Executor, SingleThreadedExecutor
from rclpy.logging import get_logger
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future

if TYPE_CHECKING:
    from crazyflow_ros.ros.simulator import Simulator

STOPPED, FAILED, WRONG_USAGE = 0, 1, 2
"""Exit codes."""

_STOP_TIMEOUT = 0.6  # s for each of the two other threads
_SPIN_PERIOD = 3600.0  # s
_SWITCH_INTERVAL = 5e-4  # s


def main(args: list[str] | None = None) -> int:
    """Run the simulator until a signal or a failure ends it.

    Args:
        args: Command line, by default that of the process.

    Returns:
        Exit code.
    """
    # When the physics thread wakes up while a callback runs, it has to get the interpreter's lock
    # within a fraction of a tick. Python's default of 5 ms is more than a tick.
    sys.setswitchinterval(_SWITCH_INTERVAL)
    process = _Process()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: process.end(STOPPED))
    try:
        rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
    except Exception as error:  # rclpy has no public type for all that is wrong with arguments
        print(f"simulator: {error}", file=sys.stderr)
        return WRONG_USAGE
    exit_code = process.run()
    rclpy.try_shutdown()
    return exit_code


class _Process:
    """The threads of the process, and how it ends."""

    def __init__(self) -> None:
        self._simulator: Simulator | None = None
        self._exit_code = STOPPED
        self._ended = threading.Event()
        self._stop_spinning: Future[None] = Future()
        self._worker = threading.Thread(target=self._work, name="node", daemon=True)

    def end(self, exit_code: int) -> None:
        """End the process, from any thread; the first to call says with which code."""
        if not self._ended.is_set():
            self._exit_code = exit_code
            self._ended.set()

    def run(self) -> int:
        """Run until `end` is called, by whomever."""
        self._worker.start()
        self._ended.wait()
        if self._simulator is not None:
            self._simulator.physics.stop(_STOP_TIMEOUT)  # no callback waits for it any longer
        self._stop_spinning.set_result(None)
        self._worker.join(_STOP_TIMEOUT)
        if self._worker.is_alive():
            # It compiles. Nothing can interrupt that, and there is nothing to be lost.
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(self._exit_code)
        return self._exit_code

    def _work(self) -> None:
        """Build the node, and run its callbacks."""
        try:
            # Only here, for they take seconds to import.
            from crazyflow_ros.ros.simulator import Simulator, configure_jax

            configure_jax()
            try:
                self._simulator = simulator = Simulator()
            except ValueError as error:
                get_logger("crazyflow").fatal(str(error))
                self.end(WRONG_USAGE)
                return
            simulator.physics.on_failure(self._fail)
            simulator.start()
            executor = _executor()
            executor.add_node(simulator)
            while not self._ended.is_set():
                executor.spin_until_future_complete(self._stop_spinning, _SPIN_PERIOD)
            executor.shutdown()
            simulator.destroy_node()
        except BaseException as error:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        import traceback

        get_logger("crazyflow").fatal("".join(traceback.format_exception(error)))
        self.end(FAILED)


def _executor() -> Executor:
    """The executor whose effort does not grow with the number of subscriptions, where there is one.

    100 drones have 400 subscriptions. Since Kilted, rclpy can be woken by the one that has a
    message; otherwise it walks over all of them for each message.
    """
    try:
        from rclpy.experimental import EventsExecutor
    except ImportError:
        return SingleThreadedExecutor()
    return EventsExecutor()
