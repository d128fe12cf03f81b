"""~/pause, ~/step and ~/reset."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING

from std_srvs.srv import SetBool, Trigger

from crazyflow_ros.runtime import InvalidState, Snapshot

if TYPE_CHECKING:
    from crazyflow_ros.ros.simulator import Simulator

_TIMEOUT = 10.0  # s of wall time; requests are carried out within one period of the topics
_SLOWEST_TICK = 0.01  # s of wall time


class Services:
    """Requests to the physics thread, each answered when it has been carried out.

    The executor waits meanwhile. It can: the physics thread never waits for the executor.
    """

    def __init__(self, simulator: Simulator) -> None:
        self._simulator = simulator
        self._physics = simulator.physics
        simulator.create_service(SetBool, "~/pause", self._pause)
        simulator.create_service(Trigger, "~/step", self._step)
        simulator.create_service(Trigger, "~/reset", self._reset)

    def _pause(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        already = self._physics.paused == request.data
        future = self._physics.pause() if request.data else self._physics.resume()
        state = "paused" if request.data else "running"
        return _answer(response, future, f"already {state}" if already else state)

    def _step(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        ticks = self._simulator.get_parameter("step_ticks").value
        ticks = ticks or self._physics.control_period
        timeout = _TIMEOUT + ticks * _SLOWEST_TICK
        return _answer(response, self._physics.step(ticks), f"{ticks} ticks done", timeout)

    def _reset(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        return _answer(response, self._physics.reset(), "all drones reset")


def _answer(
    response: SetBool.Response | Trigger.Response,
    future: Future[Snapshot],
    done: str,
    timeout: float = _TIMEOUT,
) -> SetBool.Response | Trigger.Response:
    try:
        snapshot = future.result(timeout)
        response.success = True
        response.message = f"{done}, at tick {snapshot.tick} ({snapshot.time_ns * 1e-9:.3f} s)"
    except InvalidState as error:
        response.message = str(error)
    except TimeoutError:
        response.message = f"not done within {timeout:.0f} s"
    return response


def declare(simulator: Simulator) -> None:
    """Add the services."""
    Services(simulator)
