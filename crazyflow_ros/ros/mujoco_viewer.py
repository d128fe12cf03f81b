"""MuJoCo's viewer (`headless:=false`), which shows the drones and handles keys and the mouse.

Space pauses and resumes, the right arrow advances by one step, backspace resets, = and - double and
halve the speed. Double-click a drone to select it, then drag it with Ctrl and the right mouse
button.
"""

from __future__ import annotations

import math
import subprocess
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from multiprocessing import Pipe
from typing import TYPE_CHECKING

import mujoco
from rclpy.parameter import Parameter

from crazyflow_ros.checks.confinement import program
from crazyflow_ros.runtime import PhysicsThread, Snapshot, TimedWrench
from crazyflow_ros.scene import MirrorState
from crazyflow_ros.scene.viewer_process import Input, ViewerFrame

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from crazyflow_ros.checks.throttled_logger import Logger
    from crazyflow_ros.ros.host import Host

SPACE, EQUAL, MINUS, BACKSPACE, RIGHT = 32, 61, 45, 259, 262
"""GLFW codes of keys."""

_PERIOD = 1 / 60  # s of wall time
_START_TIMEOUT = 60.0  # s, the new process imports everything again
_ANSWER_TIMEOUT = 5.0  # s
_END_TIMEOUT = 0.3  # s
_SLOWEST, _FASTEST = 1 / 64, 64.0  # real-time factors set by keys; above the fastest: no limit


class ViewerControls:
    """Actions of keys and the mouse.

    Args:
        physics: The simulation to control.
        step_ticks: Returns the number of ticks of a step.
        set_factor: Sets the real-time factor.
    """

    def __init__(
        self,
        physics: PhysicsThread,
        step_ticks: Callable[[], int],
        set_factor: Callable[[float], object],
    ) -> None:
        self._physics, self._step_ticks, self._set_factor = physics, step_ticks, set_factor
        self._dragged: set[str] = set()

    def take(self, taken: Input, names: Sequence[str]) -> None:
        """Carry out the user's input; `names` are those of the drones."""
        for key in taken.keys:
            self._press(key)
        for name, wrench in zip(names, taken.wrench):
            if wrench.any():
                self._dragged.add(name)
                with suppress(ValueError):  # the drone has been deleted
                    lasting = TimedWrench(wrench[:3], wrench[3:], math.inf)
                    self._physics.apply_wrench(name, lasting, key=("viewer", name))
            elif name in self._dragged:
                self._release(name)

    def release(self) -> None:
        """Release all dragged drones."""
        for name in tuple(self._dragged):
            self._release(name)

    def _press(self, key: int) -> None:
        physics = self._physics
        factor = physics.statistics().requested_factor
        if key == SPACE:
            physics.resume() if physics.paused else physics.pause()
        elif key == RIGHT:
            physics.step(self._step_ticks())  # refused unless paused
        elif key == BACKSPACE:
            physics.state.reset()
        elif key == EQUAL:
            self._set_factor(0.0 if factor == 0 or factor > _FASTEST / 2 else factor * 2)
        elif key == MINUS:
            self._set_factor(_FASTEST if factor == 0 else max(factor / 2, _SLOWEST))

    def _release(self, name: str) -> None:
        self._dragged.discard(name)
        self._physics.end_wrench(("viewer", name))


class ViewerThread:
    """Thread that feeds the viewer's process."""

    def __init__(self, physics: PhysicsThread, logger: Logger, controls: ViewerControls) -> None:
        self._physics, self._logger, self._controls = physics, logger, controls
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._main, name="viewer", daemon=True)

    def start(self) -> None:
        """Open the window."""
        self._thread.start()

    def close(self) -> None:
        """Close the window."""
        self._ended.set()
        self._thread.join(2 * _END_TIMEOUT)

    def _main(self) -> None:
        try:
            while not self._ended.is_set() and self._show():
                pass  # the scene has changed, open a new window
        except (EOFError, OSError) as error:
            self._logger.warning(f"the viewer ended; the simulation continues ({error!r})")
        finally:
            self._controls.release()

    def _show(self) -> bool:
        """Show one model in one window; return True if the model has changed."""
        ours, theirs = Pipe()
        mirror = self._physics.mirror
        model, names = mirror.model, mirror.names
        with theirs:  # closed, so that the end of the process is noticed
            process = subprocess.Popen(
                **program("crazyflow_ros.scene.viewer_process", str(theirs.fileno())),
                pass_fds=[theirs.fileno()],
            )
        try:
            ours.send((model, names))
            reason = self._answer(ours, _START_TIMEOUT)
            if reason is not None:
                self._logger.warning(f"headless is false, but there is no window: {reason}")
                return False
            self._logger.info("the viewer is open")
            while not self._ended.wait(_PERIOD):
                snapshot = self._physics.snapshot
                if self._physics.mirror.model is not model or snapshot.names != names:
                    return True
                ours.send(self._frame(snapshot, model))
                taken = self._answer(ours, _ANSWER_TIMEOUT)
                if taken is None:
                    self._logger.info("the viewer was closed; the simulation continues")
                    return False
                assert isinstance(taken, Input)
                self._controls.take(taken, names)
            return False
        finally:
            ours.close()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_END_TIMEOUT)
            process.kill()
            process.wait()

    def _answer(self, connection: Connection, timeout: float) -> Input | str | None:
        """Receive the next message of the viewer's process.

        Raises:
            EOFError: The process has ended.
            TimeoutError: No message arrived in time.
        """
        if not connection.poll(timeout):
            raise TimeoutError(f"no answer within {timeout:g} s")
        answer: Input | str | None = connection.recv()
        return answer

    def _frame(self, snapshot: Snapshot, model: mujoco.MjModel) -> ViewerFrame:
        now = self._physics.statistics()
        factor = "paused" if now.paused else f"{now.achieved_factor:.2f}"
        state = MirrorState(**{x.name: getattr(snapshot, x.name) for x in fields(MirrorState)})
        if state.bodies is not None and not state.bodies.is_of(model):  # of the previous model
            state = replace(state, bodies=None)
        return ViewerFrame(
            state,
            "Time\nFactor\nasked for",
            f"{snapshot.time_ns * 1e-9:.2f} s\n{factor}\n{now.requested_factor:g}",
        )


def declare(simulator: Host) -> None:
    """Open the window unless the node is headless."""
    if simulator.parameters.headless:
        return
    physics = simulator.physics
    controls = ViewerControls(
        physics,
        lambda: simulator.get_parameter("step_ticks").value or physics.control_period,
        lambda factor: simulator.node.set_parameters([Parameter("real_time_factor", value=factor)]),
    )
    viewer = ViewerThread(physics, simulator.log, controls)
    simulator.on_close(viewer.close)
    viewer.start()
