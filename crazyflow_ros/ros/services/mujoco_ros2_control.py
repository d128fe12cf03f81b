"""Services of mujoco_ros2_control under its names, for its clients.

Responses are those of mujoco_ros2_control 0.1. When a response arrives, the request is complete: no
tick follows a pause, and all steps are done. A request that timed out is not carried out later.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from mujoco_ros2_control_msgs.srv import (
    ApplyExternalWrench,
    ResetWorld,
    SetFreeJointState,
    SetPause,
    StepSimulation,
)

from crazyflow_ros.ros.messages.geometry import xyz
from crazyflow_ros.ros.service_answers import SLOWEST_TICK
from crazyflow_ros.ros.services.mujoco_ros2_control_states import Edit, StateEditor
from crazyflow_ros.runtime import InvalidState, TimedWrench

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host

_NODE = "mujoco_ros2_control_node"
_PLUGIN = "external_wrench"  # as in its documentation; the name is set where the plugin is loaded
_TIMEOUT = 30.0  # s of wall time, at least
_ABORTED = "step aborted: "  # start of the text of `StepAborted`

PutKeyframe = Callable[[str], Awaitable[list[str]]]
"""Moves bodies of the world to their poses in a keyframe; returns names of those that stay."""


class MujocoServices:
    """Services that respond once the physics thread has carried out the request.

    Without `put_keyframe`, only drones can be moved.
    """

    def __init__(self, simulator: Host, put_keyframe: PutKeyframe | None) -> None:
        self._put_keyframe = put_keyframe
        self._physics, self._waiting = simulator.physics, simulator.waiting
        for kind, name, callback in (
            (SetPause, f"{_NODE}/set_pause", self._set_pause),
            (StepSimulation, f"{_NODE}/step_simulation", self._step),
            (ResetWorld, f"{_NODE}/reset_world", self._reset_world),
            (SetFreeJointState, f"{_NODE}/set_free_joint_state", self._set_free_joints),
            (ApplyExternalWrench, f"{_PLUGIN}/apply_wrench", self._apply_wrench),
        ):
            simulator.create_service(kind, name, callback)

    async def _set_pause(self, request: SetPause.Request, _response: SetPause.Response) -> str:
        switch = self._physics.switch(paused=request.paused)
        changed, _ = await self._waiting.result(switch, _TIMEOUT)
        if not changed:
            return f"Simulation is already {'paused' if request.paused else 'running'}."
        return f"Simulation {'paused' if request.paused else 'resumed'}."

    async def _step(self, request: StepSimulation.Request, _: StepSimulation.Response) -> str:
        n = request.steps
        if not self._physics.paused:
            raise ValueError("Cannot step simulation: simulation is not paused.")
        if n == 0:
            raise ValueError("Number of steps must be positive, got: 0")
        steps, resumed = self._physics.step(n), "simulation was resumed while steps were pending"
        try:
            await self._waiting.result(steps, max(_TIMEOUT, n * SLOWEST_TICK))
        except TimeoutError:
            text = f"Timeout waiting for {n} simulation step(s)."
            raise TimeoutError(text) from None
        except InvalidState as error:
            reason = resumed if "resumed" in str(error) else str(error).removeprefix(_ABORTED)
            raise InvalidState(f"Steps aborted: {reason}.") from None
        return f"Completed {n} simulation step(s)."

    async def _reset_world(self, request: ResetWorld.Request, _: ResetWorld.Response) -> str:
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

        plan()  # refuses before anything changes
        stay = await self._put_bodies(name)
        edit = self._physics.state.edit_state(plan, reset=True, to_keyframe=bool(name))
        await self._waiting.result(edit, _TIMEOUT)
        state = f"'{name}'" if name else "initial"
        text = f"Successfully reset the MuJoCo world to the {state} state."
        if stay:
            text += f" Left where they are, because nothing can move them: {', '.join(stay)}."
        if joints.name or free_joints:
            text += f" Applied {len(joints.name)} joint and {len(free_joints)}"
            text += " free-joint override(s)."
        return text

    async def _put_bodies(self, keyframe: str) -> list[str]:
        """Move the bodies of the scene to their poses in a keyframe; return what cannot move."""
        if self._put_keyframe is not None:
            return await self._put_keyframe(keyframe)
        missing = "all bodies of the scene (simulation_interfaces is not installed)"
        return [missing] if keyframe else []

    async def _set_free_joints(
        self, request: SetFreeJointState.Request, _: SetFreeJointState.Response
    ) -> str:
        free_joints = request.free_joints
        if free_joints:
            edit = self._physics.state.edit_state(
                lambda: StateEditor(self._physics.mirror).free_joints(free_joints)
            )
            await self._waiting.result(edit, _TIMEOUT)
        n = len(free_joints)
        bodies = f"{n} {'body' if n == 1 else 'bodies'}"
        return f"Successfully set free joint state for {bodies}."

    async def _apply_wrench(
        self, request: ApplyExternalWrench.Request, _: ApplyExternalWrench.Response
    ) -> str:
        messages = request.wrenches.external_wrenches
        if not messages:
            return "No wrenches provided; nothing applied."
        editor = StateEditor(self._physics.mirror)
        wrenches = [(editor.pushed(m.wrench.header.frame_id), _wrench(m)) for m in messages]
        futures = [self._physics.apply_wrench(name, wrench) for name, wrench in wrenches]
        longest = max(wrench.duration for _, wrench in wrenches)
        try:
            for future in futures:
                await self._waiting.result(future, max(_TIMEOUT, 10 * longest))
        except TimeoutError:
            for future in futures:
                future.cancel()
            raise TimeoutError("Timeout waiting for the wrench(es), which have ended.") from None
        except InvalidState as error:
            raise InvalidState(f"Wrenches aborted: {error}.") from None
        return f"Applied {len(futures)} wrench(es) successfully."


def _wrench(message: Any) -> TimedWrench:
    """Convert a wrench in body axes, as mujoco_ros2_control does regardless of the frame."""
    force, torque, point = (
        xyz(vector)
        for vector in (
            message.wrench.wrench.force,
            message.wrench.wrench.torque,
            message.application_point,
        )
    )
    duration, ramp_down = (
        t.sec + t.nanosec * 1e-9 for t in (message.duration, message.ramp_down_duration)
    )
    return TimedWrench(force, torque, duration, in_body=True, point=point, ramp_down=ramp_down)
