"""The services of mujoco_ros2_control, under its own names, so that its clients work.

Answers are those of mujoco_ros2_control 0.1, and hold: no tick follows that of a pause, steps are
done when they are answered, and what was not done in time is not done later.
"""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from mujoco_ros2_control_msgs.srv import (
    ApplyExternalWrench,
    ResetWorld,
    SetFreeJointState,
    SetPause,
    StepSimulation,
)

from crazyflow_ros.ros.mujoco_states import Edit, StateEditor
from crazyflow_ros.runtime import InvalidState, Wrench

if TYPE_CHECKING:
    from crazyflow_ros.ros.simulator import Simulator

_NODE = "mujoco_ros2_control_node"
_PLUGIN = "external_wrench"  # as in its documentation; whoever loads it chooses the name
_TIMEOUT = 30.0  # s of wall time, at least
_ABORTED = "step aborted: "  # how `StepAborted` begins
_STEP_TIMEOUT = 0.01  # s of wall time a tick


class MujocoServices:
    """Requests to the physics thread, each answered when it has been carried out."""

    def __init__(self, simulator: Simulator) -> None:
        self._physics, self._waiting = simulator.physics, simulator.waiting
        for kind, name, callback in (
            (SetPause, f"{_NODE}/set_pause", self._set_pause),
            (StepSimulation, f"{_NODE}/step_simulation", self._step),
            (ResetWorld, f"{_NODE}/reset_world", self._reset_world),
            (SetFreeJointState, f"{_NODE}/set_free_joint_state", self._set_free_joints),
            (ApplyExternalWrench, f"{_PLUGIN}/apply_wrench", self._apply_wrench),
        ):
            simulator.create_service(kind, name, callback, callback_group=self._waiting.group)

    async def _set_pause(
        self, request: SetPause.Request, response: SetPause.Response
    ) -> SetPause.Response:
        if self._physics.paused == request.paused:
            state = "paused" if request.paused else "running"
            return _answer(response, f"Simulation is already {state}.")
        future = self._physics.pause() if request.paused else self._physics.resume()
        done = "paused" if request.paused else "resumed"
        return await self._when(future, response, f"Simulation {done}.")

    async def _step(
        self, request: StepSimulation.Request, response: StepSimulation.Response
    ) -> StepSimulation.Response:
        n = request.steps
        if not self._physics.paused:
            text = "Cannot step simulation: simulation is not paused."
            return _answer(response, text, success=False)
        if n == 0:
            return _answer(response, "Number of steps must be positive, got: 0", success=False)
        steps, resumed = self._physics.step(n), "simulation was resumed while steps were pending"
        try:
            await self._waiting.result(steps, max(_TIMEOUT, n * _STEP_TIMEOUT))
        except TimeoutError:
            steps.cancel()
            return _answer(response, f"Timeout waiting for {n} simulation step(s).", success=False)
        except InvalidState as error:
            reason = resumed if "resumed" in str(error) else str(error).removeprefix(_ABORTED)
            return _answer(response, f"Steps aborted: {reason}.", success=False)
        return _answer(response, f"Completed {n} simulation step(s).")

    async def _reset_world(
        self, request: ResetWorld.Request, response: ResetWorld.Response
    ) -> ResetWorld.Response:
        name, overrides = request.keyframe, request.state_overrides
        joints, free_joints = overrides.joint_states, overrides.free_joints
        mirror = self._physics.mirror

        def plan() -> Edit:
            editor = StateEditor(mirror)
            try:
                set_joints, set_free = editor.joints(joints), editor.free_joints(free_joints)
                keyframe = mirror.keyframe(name) if name else None
                if name and keyframe is None:
                    raise ValueError(f"Failed to apply keyframe: '{name}'.")
            except ValueError as error:
                raise ValueError(f"{error} Not resetting world.") from None
            return lambda state: set_free(set_joints(state if keyframe is None else keyframe))

        state = f"'{name}'" if name else "initial"
        text = f"Successfully reset the MuJoCo world to the {state} state."
        if joints.name or free_joints:
            text += f" Applied {len(joints.name)} joint and {len(free_joints)}"
            text += " free-joint override(s)."
        return await self._when(self._physics.edit_state(plan, reset=True), response, text)

    async def _set_free_joints(
        self, request: SetFreeJointState.Request, response: SetFreeJointState.Response
    ) -> SetFreeJointState.Response:
        n = len(request.free_joints)
        bodies = f"{n} {'body' if n == 1 else 'bodies'}"
        text = f"Successfully set free joint state for {bodies}."
        if not n:
            return _answer(response, text)

        def plan() -> Edit:
            return StateEditor(self._physics.mirror).free_joints(request.free_joints)

        return await self._when(self._physics.edit_state(plan), response, text)

    async def _apply_wrench(
        self, request: ApplyExternalWrench.Request, response: ApplyExternalWrench.Response
    ) -> ApplyExternalWrench.Response:
        messages = request.wrenches.external_wrenches
        if not messages:
            return _answer(response, "No wrenches provided; nothing applied.")
        editor = StateEditor(self._physics.mirror)
        try:
            wrenches = [(editor.drone(m.wrench.header.frame_id), _wrench(m)) for m in messages]
            futures = [self._physics.apply_wrench(name, wrench) for name, wrench in wrenches]
        except ValueError as error:
            return _answer(response, str(error), success=False)
        longest = max(wrench.duration for _, wrench in wrenches)
        try:
            for future in futures:
                await self._waiting.result(future, max(_TIMEOUT, 10 * longest))
        except TimeoutError:
            return _answer(response, f"Applied {len(futures)} wrench(es), which still act.")
        except InvalidState as error:
            return _answer(response, f"Wrenches aborted: {error}.", success=False)
        return _answer(response, f"Applied {len(futures)} wrench(es) successfully.")

    async def _when(self, future: Future[Any], response: Any, text: str) -> Any:
        """Answer with a text once something is done."""
        try:
            await self._waiting.result(future, _TIMEOUT)
        except (InvalidState, ValueError) as error:
            return _answer(response, str(error), success=False)
        except TimeoutError:
            return _answer(response, f"Not done within {_TIMEOUT:g} s.", success=False)
        return _answer(response, text)


def _answer(response: Any, text: str, *, success: bool = True) -> Any:
    response.success, response.message = success, text
    return response


def _wrench(message: Any) -> Wrench:
    """In axes of the body, as mujoco_ros2_control applies it whatever its message says."""
    force, torque, point = (
        (v.x, v.y, v.z)
        for v in (
            message.wrench.wrench.force,
            message.wrench.wrench.torque,
            message.application_point,
        )
    )
    duration, ramp_down = (
        t.sec + t.nanosec * 1e-9 for t in (message.duration, message.ramp_down_duration)
    )
    return Wrench(force, torque, duration, in_body=True, point=point, ramp_down=ramp_down)


def declare(simulator: Simulator) -> None:
    """Add the services."""
    MujocoServices(simulator)
