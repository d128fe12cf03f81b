"""The door of the node: every call is answered, what is too large or fails is refused by name."""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from action_msgs.msg import GoalStatus
from geometry_msgs.msg import PoseStamped, Transform, Twist
from mujoco_ros2_control_msgs.srv import ResetWorld
from rcl_interfaces.msg import Parameter, ParameterValue, SetParametersResult
from rcl_interfaces.srv import GetParameters, SetParameters, SetParametersAtomically
from rclpy.action import ActionClient
from rclpy.duration import Duration
from rclpy.logging import get_logger
from rclpy.serialization import serialize_message
from ros_client import Client, SimulatorProcess, own_domain, stamp_ns, time_ns
from rosgraph_msgs.msg import Clock
from simulation_interfaces.action import SimulateSteps
from simulation_interfaces.srv import LoadWorld
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import MultiDOFJointTrajectory, MultiDOFJointTrajectoryPoint

from crazyflow_ros.checks import limits
from crazyflow_ros.ros.callback_guard import CallbackGuard, Refusal, check_request
from crazyflow_ros.runtime import InvalidState
from crazyflow_ros.runtime.requests import Requests

DOMAIN = own_domain("test_door")


class Log:
    """Keeps what is logged."""

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self.errors: list[str] = []
        self.warning, self.error = self.warnings.append, self.errors.append


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def door(log: Log) -> CallbackGuard:
    return CallbackGuard(log)


def answer(callback: Any, request: Any, response: Any) -> Any:
    return asyncio.run(callback(request, response))


def test_a_message_is_passed_on(door: CallbackGuard) -> None:
    seen: list[PoseStamped] = []
    message = PoseStamped()
    message.pose.position.x = 1.5
    door.on_message(seen.append, PoseStamped, "cmd")(serialize_message(message))
    assert seen == [message] and door.refused == door.failed == 0


@pytest.mark.parametrize("kind", [Twist, PoseStamped, Float64MultiArray])
@pytest.mark.parametrize(
    "data", [b"", b"\0\1", b"\0\1\0\3", b"\0\1\0\1", b"\0\1\0\0\1", b"\7" * 90]
)
def test_bytes_that_are_no_message_are_an_ordinary_refusal(
    door: CallbackGuard, log: Log, data: bytes, kind: Any
) -> None:
    seen: list[Any] = []
    door.on_message(seen.append, kind, "cmd")(data)
    name = f"{kind.__module__.split('.')[0]}/msg/{kind.__name__}"
    assert log.warnings == [
        f"cmd is ignored: expected a {name}, got {len(data)} bytes that are none"
    ]
    assert not seen and not log.errors and (door.refused, door.failed) == (1, 0)


def test_a_message_is_refused_by_name_and_not_too_often(door: CallbackGuard, log: Log) -> None:
    def refuse(message: PoseStamped) -> None:
        raise ValueError("x must be finite")

    data = serialize_message(PoseStamped())
    for topic in ("one", "two"):
        receive = door.on_message(refuse, PoseStamped, topic)
        receive(data)
        receive(data)
    assert log.warnings == [f"{topic} is ignored: x must be finite" for topic in ("one", "two")]
    assert door.refused == 4 and not log.errors


def test_a_large_message_is_not_even_decoded(door: CallbackGuard, log: Log) -> None:
    point = MultiDOFJointTrajectoryPoint(velocities=[Twist()])
    data = serialize_message(MultiDOFJointTrajectory(points=[point] * 100_000))
    door.on_message(pytest.fail, MultiDOFJointTrajectory, "cmd")(data)
    assert log.warnings == [f"cmd is ignored: expected at most 200000 bytes, got {len(data)}"]


def test_a_callback_that_fails_is_told_with_its_trace(door: CallbackGuard, log: Log) -> None:
    def fail(*_: Any) -> None:
        raise ZeroDivisionError("a bug")

    door.on_message(fail, PoseStamped, "cmd")(serialize_message(PoseStamped()))
    door.on_timer(lambda: fail())()
    assert len(log.errors) == door.failed == 2
    assert all("in fail" in error and "a bug" in error for error in log.errors)


def test_refusals_and_failures_follow_one_another_in_the_log_of_ros() -> None:
    """It raises where one line of code logs with two severities, which would end the process."""
    door, errors = (
        CallbackGuard(get_logger("test_door")),
        iter([ValueError("no"), KeyError("a bug")] * 2),
    )

    def fail(*_: Any) -> None:
        raise next(errors)

    for topic in ("one", "two", "three", "four"):
        door.on_message(fail, PoseStamped, topic)(serialize_message(PoseStamped()))
    assert (door.refused, door.failed) == (2, 2)


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize(
    ("error", "text", "failures"),
    [
        (ValueError("not so"), "not so", 0),
        (InvalidState("not now"), "not now", 0),
        (TimeoutError("not done within 10 s"), "not done within 10 s", 0),
        (KeyError("a bug"), "'a bug'", 1),
        (ZeroDivisionError(), "ZeroDivisionError", 1),
    ],
)
def test_an_exception_is_the_answer(
    door: CallbackGuard, log: Log, waits: bool, error: Exception, text: str, failures: int
) -> None:
    def fail(request: Any, response: Any) -> None:
        raise error

    async def wait_and_fail(request: Any, response: Any) -> None:
        raise error

    callback = door.on_request(wait_and_fail if waits else fail, "name")
    response = answer(callback, SetBool.Request(), SetBool.Response(success=True))
    assert (response.success, response.message) == (False, text)
    response = answer(callback, LoadWorld.Request(), LoadWorld.Response())
    expected = (response.result.RESULT_OPERATION_FAILED, text)
    assert (response.result.result, response.result.error_message) == expected
    response = answer(
        callback, SetParametersAtomically.Request(), SetParametersAtomically.Response()
    )
    assert response.result == SetParametersResult(successful=False, reason=text)
    request = SetParameters.Request(parameters=[Parameter()] * 3)
    done = SetParameters.Response(results=[SetParametersResult(successful=True)])
    response = answer(callback, request, done)
    assert [result.successful for result in response.results] == [True, False, False]
    answer(callback, GetParameters.Request(), GetParameters.Response())  # has no place for a text
    said = log.errors if failures else log.warnings
    # One a second: a busy machine takes longer than that.
    assert said and text in said[0] and door.failed == 5 * failures


def test_a_refusal_has_a_code_and_a_text_means_success(door: CallbackGuard) -> None:
    def refuse(request: Any, response: Any) -> None:
        raise Refusal(LoadWorld.Response.MISSING_ASSETS, "no mesh")

    response = answer(door.on_request(refuse, "name"), LoadWorld.Request(), LoadWorld.Response())
    assert response.result.result == LoadWorld.Response.MISSING_ASSETS
    succeed = door.on_request(lambda *_: "done", "name")
    response = answer(succeed, Trigger.Request(), Trigger.Response())
    assert (response.success, response.message) == (True, "done")


def test_requests_are_limited_whatever_is_in_them() -> None:
    request = ResetWorld.Request(keyframe="home")
    check_request(request)
    request.state_overrides.joint_states.name = ["joint"] * 10_001
    with pytest.raises(ValueError, match=r"state_overrides.joint_states.name: .* 10001 here"):
        check_request(request)
    request = ResetWorld.Request(keyframe="x" * 20_000)
    with pytest.raises(ValueError, match="keyframe: expected at most 4096 characters"):
        check_request(request)
    names = GetParameters.Request(names=["fine", "x" * 5000])
    with pytest.raises(ValueError, match=r"names\[1\]: expected at most 4096 characters"):
        check_request(names)
    request = LoadWorld.Request()
    request.world_resource.resource_string = "x" * limits.DESCRIPTION_BYTES
    check_request(request)
    request.world_resource.resource_string += "x"
    with pytest.raises(ValueError, match="resource_string: expected at most 1048576 characters"):
        check_request(request)


def test_a_request_that_is_given_up_is_not_carried_out_later() -> None:
    done: list[str] = []
    requests = Requests(lambda *_: pytest.fail("a request failed"))
    given_up = requests.ask(lambda: done.append("late"))
    other: Future[None] = requests.ask(lambda: done.append("other"))
    assert given_up.cancel()
    requests.serve()
    assert done == ["other"] and other.done() and given_up.cancelled()


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The simulator's folder, which it makes."""
    return tmp_path_factory.mktemp("state") / "a" / "b"


@pytest.fixture(scope="module")
def arguments(checkpoints: Path) -> list[str]:
    return ["start_paused:=true", f"checkpoint_folder:={checkpoints}"]


@pytest.mark.usefixtures("simulator")
def test_two_hundred_calls_at_once_are_all_answered() -> None:
    clients = [Client(DOMAIN) for _ in range(10)]
    try:
        for client in clients:
            client.call(Trigger, "crazyflow/reset")
        calls = [
            (client, client.send(kind, name, **request))
            for _ in range(5)
            for client in clients
            for kind, name, request in (
                (SetBool, "crazyflow/pause", {"data": True}),
                (Trigger, "crazyflow/reset", {}),
                (Trigger, "cf0/reset", {}),
                (GetParameters, "crazyflow/get_parameters", {"names": ["freq"]}),
            )
        ]
        for client, future in calls:
            response = client.response(future, "call")
            assert getattr(response, "success", True)
        assert len(calls) == 200
    finally:
        for client in clients:
            client.close()


def test_a_hundred_goals_of_an_ordinary_client_are_all_answered(client: Client) -> None:
    """It keeps the last ten answers; what comes faster than it looks is lost to it."""
    actions = ActionClient(client.node, SimulateSteps, "crazyflow/simulate_steps")
    client.until(actions.server_is_ready, "action")
    client.pause(True)

    def answers(futures: list[Any], what: str) -> list[Any]:
        client.until(lambda: all(future.done() for future in futures), what)
        return [future.result() for future in futures]

    def goals(n: int, steps: int) -> list[Any]:
        goal = SimulateSteps.Goal(steps=steps)
        return answers([actions.send_goal_async(goal) for _ in range(n)], "answers to goals")

    long = goals(110, 10**9)
    assert [goal.accepted for goal in long] == [True] * 100 + [False] * 10
    ends = [goal.get_result_async() for goal in long[:100]]
    cancels = answers([goal.cancel_goal_async() for goal in long[:40]], "cancellations")
    assert all(len(cancel.goals_canceling) == 1 for cancel in cancels)
    client.pause(False)  # which aborts all others at once
    expected = [GoalStatus.STATUS_CANCELED] * 40 + [GoalStatus.STATUS_ABORTED] * 60
    assert [end.status for end in answers(ends, "ends")] == expected
    client.pause(True)
    actions.destroy()


def test_no_clock_is_later_than_a_pause_during_steps(client: Client) -> None:
    clock = client.collect(Clock, "/clock")
    client.pause(True)
    assert client.set_parameter("step_ticks", 1_000_000).successful  # for many seconds
    stamps: list[int] = []
    for _ in range(300):
        steps = client.send(Trigger, "crazyflow/step")
        while not steps.done():  # a pause may overtake the steps that it should end
            stamps.append(stamp_ns(client.pause(True)))
            latest = max((time_ns(message.clock) for message in clock), default=0)
            assert latest <= stamps[-1] or not steps.done()
        message = steps.result().message
        assert "step aborted: the simulation was paused, after" in message
        clock.clear()
    assert stamps == sorted(stamps)


def test_parameters_of_no_type_are_refused(client: Client) -> None:
    for service, kind in (
        ("set_parameters", SetParameters),
        ("set_parameters_atomically", SetParametersAtomically),
    ):
        for value in (ParameterValue(type=77), ParameterValue(type=0)):
            wrong = Parameter(name="step_ticks", value=value)
            response = client.call(kind, f"crazyflow/{service}", parameters=[wrong])
            (result,) = getattr(response, "results", None) or [response.result]
            assert not result.successful and result.reason
    assert client.set_parameter("step_ticks", 7).successful


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("real_time_factor", 1e-12, "1e-06 to 1000000, got 1e-12"),
        ("real_time_factor", float("nan"), "nan"),
        ("checkpoint", "/far/flight", "the name of a file, without '/' and not beginning with '.'"),
        ("checkpoint", "../flight", "must be the name of a file"),
        ("checkpoint", "..", "must be the name of a file"),
        ("checkpoint", "~/flight", "must be the name of a file"),
        ("checkpoint", ".flight.part", "must be the name of a file"),
        ("checkpoint_folder", "/far", "checkpoint_folder can only be set at the start"),
        ("world_folders", ["/"], "world_folders can only be set at the start"),
        ("checkpoint", "x" * 10_000, "at most 4096 characters"),
        ("checkpoint", "a\nb", "control characters"),
        ("step_ticks", 10_000_000, "1000000"),
        ("use_sim_time", True, "use_sim_time"),
        ("freq", 100, "freq can only be set at the start, got 100 later"),
        # It names Python modules, which a peer must not have imported.
        ("sensors", "mine.yaml", "sensors can only be set at the start, got mine.yaml later"),
    ],
)
def test_parameters_that_cannot_be_used_are_refused(
    client: Client, name: str, value: Any, reason: str
) -> None:
    result = client.set_parameter(name, value)
    assert not result.successful and reason in result.reason
    assert client.call(Trigger, "crazyflow/reset").success


def test_peers_save_in_one_folder_and_replace_nothing_but_checkpoints(
    client: Client, checkpoints: Path, tmp_path: Path
) -> None:
    save, load = "crazyflow/save_checkpoint", "crazyflow/load_checkpoint"

    def answer(service: str, name: str) -> Trigger.Response:
        assert client.set_parameter("checkpoint", name).successful
        return client.call(Trigger, service)

    for _ in range(2):
        assert answer(save, "mine").success
    assert checkpoints.stat().st_mode & 0o777 == 0o700
    thesis, diary, link, fifo = (
        tmp_path / "thesis_run_17.npz",
        *(checkpoints / name for name in ("diary", "link", "fifo")),
    )
    thesis.write_bytes((checkpoints / "mine").read_bytes())
    diary.write_text("dear diary")
    link.symlink_to(thesis)
    os.mkfifo(fifo)
    for name, reason in (
        ("diary", f"{diary} is not replaced, for it is not a checkpoint: "),
        ("link", f"{link} is a link"),
        ("fifo", "not a regular file"),
        ("x" * 300, "File name too long"),
    ):
        response = answer(save, name)
        assert not response.success and reason in response.message, response.message
    for name, reason in (
        ("link", f"{link} is a link"),
        ("fifo", "not a regular file"),
        ("min", "there is no checkpoint 'min', only diary, fifo, link, mine"),
    ):
        response = answer(load, name)
        assert not response.success and reason in response.message, response.message
    assert answer(load, "mine").success
    assert diary.read_text() == "dear diary" and link.is_symlink()
    assert thesis.read_bytes() == (checkpoints / "mine").read_bytes()
    assert set(checkpoints.iterdir()) == {diary, link, fifo, checkpoints / "mine"}
    assert list(tmp_path.iterdir()) == [thesis]


def test_the_largest_trajectory_that_is_promised_is_taken(
    client: Client, simulator: SimulatorProcess
) -> None:
    points = [
        MultiDOFJointTrajectoryPoint(
            transforms=[Transform()],
            velocities=[Twist()],
            accelerations=[Twist()],
            time_from_start=Duration(seconds=0.1 * (i + 1)).to_msg(),
        )
        for i in range(1000)
    ]
    client.publish("cf0/cmd_trajectory", MultiDOFJointTrajectory(points=points))
    client.advance(50)
    assert "cmd_trajectory is ignored" not in simulator.log
    client.publish("cf0/cmd_trajectory", MultiDOFJointTrajectory(points=points * 2))
    client.until(lambda: "cf0/cmd_trajectory is ignored" in simulator.log, "refusal in the log")


def test_a_huge_message_leaves_no_memory_behind(
    client: Client, simulator: SimulatorProcess
) -> None:
    """The middleware has it whole before anybody can look at its size."""
    huge = serialize_message(Float64MultiArray(data=np.zeros(15_000_000)))
    publisher, before = client.publisher(Float64MultiArray, "cf0/command"), simulator.memory
    publisher.publish(huge)
    refused = f"cf0/command is ignored: expected at most 200000 bytes, got {len(huge)}"
    client.until(lambda: refused in simulator.log, "refusal in the log")
    most = before + len(huge) / 4e6
    client.until(lambda: simulator.memory < most, "memory to be given back")
