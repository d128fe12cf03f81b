"""~/step_simulation and the action ~/simulate_steps."""

from __future__ import annotations

from concurrent.futures import CancelledError
from typing import Any

from rclpy.action import CancelResponse, GoalResponse
from simulation_interfaces.action import SimulateSteps
from simulation_interfaces.msg import Result
from simulation_interfaces.srv import StepSimulation

from crazyflow_ros.checks import limits
from crazyflow_ros.ros.callback_guard import SERVICE_QOS
from crazyflow_ros.ros.service_answers import SLOWEST_TICK, TIMEOUT
from crazyflow_ros.ros.services.paced_actions import PacedActionServer
from crazyflow_ros.ros.simulation_interfaces.server import Server, service_name
from crazyflow_ros.runtime import Steps

_MOST_GOALS = 100
# A client reads the states of all goals that are kept, whenever one changes, which takes it long.
_RESULT_TIMEOUT = 10  # s of wall time for which a result is kept


class StepServices:
    """Service and action that advance the physics; a step is one tick."""

    def __init__(self, server: Server) -> None:
        self._server, self._physics = server, server.physics
        self._running: dict[bytes, Steps] = {}
        self._n_goals = 0  # accepted, and not done yet
        self._waited_for: list[Steps] = []
        server.serve(
            StepSimulation, self._step, "STEP_SIMULATION_SINGLE", "STEP_SIMULATION_MULTIPLE"
        )
        server.supports("STEP_SIMULATION_ACTION")
        self._actions = PacedActionServer(
            server.simulator,
            SimulateSteps,
            service_name(SimulateSteps),
            self._simulate,
            cancel_callback=self._cancel,
            goal_callback=self._accept,
            callback_group=server.simulator.waiting.group,
            goal_service_qos_profile=SERVICE_QOS,
            result_service_qos_profile=SERVICE_QOS,
            cancel_service_qos_profile=SERVICE_QOS,
            result_timeout=_RESULT_TIMEOUT,
        )

    async def _step(
        self, request: StepSimulation.Request, _response: StepSimulation.Response
    ) -> None:
        self._server.need_world()
        self._check(request.steps)
        await self._done(self._physics.step(request.steps))

    def _accept(self, _: Any) -> GoalResponse:
        """Reject goals above a maximum number, which bounds the memory."""
        if self._n_goals >= _MOST_GOALS:
            return GoalResponse.REJECT
        self._n_goals += 1
        return GoalResponse.ACCEPT

    async def _simulate(self, goal: Any) -> SimulateSteps.Result:
        result = SimulateSteps.Result(result=Result(result=Result.RESULT_OK))
        key = bytes(goal.goal_id.uuid)
        try:
            self._server.need_world()
            self._check(goal.request.steps)
            feedback = _Feedback(self._server, goal)
            steps = self._physics.step(goal.request.steps, feedback.note)
            self._running[key] = steps
            if goal.is_cancel_requested:  # before execution began
                steps.cancel()
            await self._done(steps)
            feedback.send()
            goal.succeed()
        except CancelledError:
            text = f"cancelled after {steps.ticks_done} of {steps.ticks} steps"
            result.result = Result(result=Result.RESULT_OPERATION_FAILED, error_message=text)
            goal.canceled()
        except Exception as error:
            result.result = self._server.result_of(error)
            goal.abort()
        finally:
            self._running.pop(key, None)
            self._n_goals -= 1
        return result

    def _cancel(self, goal: Any) -> CancelResponse:
        steps = self._running.get(bytes(goal.goal_id.uuid))
        if steps is not None:
            steps.cancel()
        return CancelResponse.ACCEPT

    @staticmethod
    def _check(steps: int) -> None:
        if steps > limits.STEPS:
            raise ValueError(f"expected at most {limits.STEPS} steps, got {steps}")

    async def _done(self, steps: Steps) -> None:
        """Wait for steps and for earlier requests that come first."""
        self._waited_for.append(steps)
        try:
            ticks = sum(each.left for each in self._waited_for)
            await self._server.wait(steps, TIMEOUT + ticks * SLOWEST_TICK)
        finally:
            self._waited_for.remove(steps)


class _Feedback:
    """Publisher of action feedback, as often as the executor can, without delaying the physics."""

    def __init__(self, server: Server, goal: Any) -> None:
        self._simulator, self._goal = server.simulator, goal
        self._done = self._sent = 0
        self._due = False

    def note(self, ticks_done: int) -> None:
        """Store progress and schedule feedback; called in the physics thread."""
        self._done = ticks_done
        if not self._due:
            self._due = True
            executor = self._simulator.node.executor
            if executor is not None:
                executor.create_task(self.send)

    def send(self) -> None:
        """Publish the latest progress unless already published."""
        self._due = False
        done = self._done
        if done != self._sent and self._goal.is_active:
            self._sent = done
            remaining = self._goal.request.steps - done
            self._goal.publish_feedback(
                SimulateSteps.Feedback(completed_steps=done, remaining_steps=remaining)
            )
