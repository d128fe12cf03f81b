"""A running simulator under hostile messages, requests and descriptions: part of `make hostile`.

What can be sent is taken from the node: all topics that it subscribes to, all services and actions
that it serves, and all parameters that can be set.
"""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped
from hostile_descriptions import Descriptions, Sandboxes
from hostile_messages import Files, Inputs, type_of
from hostile_policies import KINDS, PolicyFiles
from hostile_processes import check_stop
from nav_msgs.msg import Odometry
from paths import ROOT
from rcl_interfaces.msg import Parameter, ParameterValue
from rcl_interfaces.srv import DescribeParameters, SetParameters, SetParametersAtomically
from rclpy.action import ActionClient
from rclpy.action.graph import get_action_server_names_and_types_by_node
from ros_client import Client, SimulatorProcess, numbers
from rosidl_parser.definition import AbstractNestedType, Array
from simulation_interfaces.msg import Resource, SimulationState
from simulation_interfaces.srv import (
    GetAvailableWorlds,
    GetCurrentWorld,
    GetSpawnables,
    LoadWorld,
    ResetSimulation,
    SetSimulationState,
    SpawnEntities,
    SpawnEntity,
)
from std_srvs.srv import SetBool, Trigger

from crazyflow_ros.checks.plain_values import ParameterError
from crazyflow_ros.sim.policies import policy_of

PILOT, VICTIMS, FRAMES = "ace", ("cf0", "cf1"), ("odom", "base_link")
RADIUS, HEIGHT, LAP = 0.5, 1.0, 10.0  # m, m, s of the pilot's figure
BATCH = 25  # inputs between two looks at the pilot
ANSWER = 60.0  # s in which a service has to answer that waits for nobody
SETTLE = 400.0  # s in which all have to answer, some after compiling, and the pilot is back
PASSED = 20.0  # s after which large messages have passed
MOST_GROWTH = 100.0  # MB of memory, over the second half of the inputs
COMPILED = 200.0  # MB more for each compilation that the simulator announces then: its code stays

_DESCRIBED = (LoadWorld, SpawnEntity, SpawnEntities, GetSpawnables, GetAvailableWorlds)
"""Services whose requests have descriptions, or name them."""
_LEAD, _NEAR = 0.3, 0.15  # m, of the point that leads the pilot, and of the figure


class Hostile:
    """Sends inputs of all kinds, and sees that the simulator lives on.

    Args:
        simulator: The process, whose pilot is `PILOT`.
        domain: ROS domain.
        rng: Random numbers.
        folder: For files.
    """

    def __init__(
        self, simulator: SimulatorProcess, domain: int, rng: random.Random, folder: Path
    ) -> None:
        self.client, self._simulator, self._rng = Client(domain), simulator, rng
        self.files = Files(folder, rng)
        self._policies = PolicyFiles(folder, rng)
        self._reader = ThreadPoolExecutor(1)
        self._descriptions = Descriptions(folder, rng)
        self.sandboxes = Sandboxes(simulator.process.pid)
        self.counts: dict[str, Counter[str]] = {}
        self.pauses: list[float] = []
        self.memory: list[float] = []
        self.compilations: list[int] = []  # until each of these
        self._odometry = self.client.collect(Odometry, f"{PILOT}/odom")
        self._status = self.client.collect(DiagnosticArray, "crazyflow/status")
        self._open: list[tuple[str, Any]] = []
        self._began = time.monotonic()
        self._parameters = self.client.parameter_names()
        described = self.client.call(
            DescribeParameters, "crazyflow/describe_parameters", names=self._parameters
        )
        self._settable = [d.name for d in described.descriptors if not d.read_only]
        texts = {
            "uri": [*self.files.sources, *self.files.objects, "cf2x_T350"],
            "sources": self.files.sources,
            "frame_id": ["", "map", "world", *(f"{d}/{f}" for d in VICTIMS for f in FRAMES)],
            "namespace": ["", "", "here"],
            "keyframe": ["", "home"],
            "resource_string": ["", "", "<mujoco/>", "<robot name='a'><link name='b'/></robot>"],
            "joint_names": [*VICTIMS, "base_link"],
            "filter": ["", "cf.*", "[a-z]+[0-9]"],
            "parameter": self._parameters,
            "": [*VICTIMS, *VICTIMS, "thing", "other", "thing_1"],
        }
        self._inputs = Inputs(rng, texts)
        assert self.client.set_parameter("checkpoint", self.files.checkpoint.name).successful
        assert self.client.call(Trigger, "crazyflow/save_checkpoint").success
        self.kinds = self._interface()
        # What is compiled for the first object stays, and is no leak.
        spawn = {"entity_resource": Resource(uri=self.files.objects[0]), "name": "first"}
        first = self.client.call(SpawnEntity, "crazyflow/spawn_entity", SETTLE, **spawn)
        assert first.result.result == first.result.RESULT_OK, first.result.error_message
        self._actions: dict[str, ActionClient] = {}

    def _interface(self) -> list[tuple[str, str, Any]]:
        """Kind, name and type of all that the node takes, but for what is the pilot's.

        Services that read descriptions are there two more times, as kind `description`.
        """
        node = self.client.node
        self.client.until(lambda: "crazyflow" in node.get_node_names(), "node in the graph")
        found = []
        for kind, every in (
            ("topic", node.get_subscriber_names_and_types_by_node("crazyflow", "/")),
            ("service", node.get_service_names_and_types_by_node("crazyflow", "/")),
            ("action", get_action_server_names_and_types_by_node(node, "crazyflow", "/")),
        ):
            for name, types in every:
                if "/_action/" not in name and not name.startswith(f"/{PILOT}/"):
                    found.append((kind, name, type_of(types[0])))
        found += [("policy", kind, None) for kind in KINDS]
        found += 2 * [("description", name, of) for _, name, of in found if of in _DESCRIBED]
        return sorted(found, key=lambda entry: entry[:2])

    def run(self, n_inputs: int, told: Callable[[str], object] = print) -> None:
        """Send inputs.

        Args:
            n_inputs: How many.
            told: Hears how far it has come.
        """
        turn = min(10 * BATCH, -(-n_inputs // 2))  # also of few inputs, the second half counts
        for i in range(n_inputs):
            if i % BATCH == 0:
                self._look()
            if i % turn == 0:
                self._recover()
                self._measure()
                told(f"{i} of {n_inputs} inputs, {self.memory[-1]:.0f} MB")
            # Every kind in turn, so that none is missed.
            kind, name, of = self.kinds[i % len(self.kinds)]
            self.files.damage()
            self._counts(kind, name)["tried"] += 1
            getattr(self, f"_send_{kind}")(name, of, self._rng.choice((0.0, 0.0, 0.05, 0.3, 1.0)))
            self.client.spin_for(0.005)
            self._collect()
            self._fly()
            self.sandboxes.look()
        self._look()
        self._recover()
        self._measure()

    def stop(self, seconds: float) -> None:
        """Stop the process for a while [s]; afterwards the pilot gets back on its figure."""
        check_stop(self.client, self._simulator.process, seconds)
        self._recover()

    def _measure(self) -> None:
        self.memory.append(self._memory())
        self.compilations.append(self._simulator.log.count(" compiling for "))

    def _memory(self) -> float:
        """Of the simulator [MB], without that of large messages which are on their way."""
        least, deadline = math.inf, time.monotonic() + PASSED
        while time.monotonic() < deadline:
            least = min(least, self._simulator.memory)
            if not self.memory or least < self.memory[-1] + MOST_GROWTH / 4:
                break
            self.client.spin_for(0.1)
            self._fly()
        return least

    def _counts(self, kind: str, name: str) -> Counter[str]:
        return self.counts.setdefault(f"{kind} {name}", Counter())

    def _send_topic(self, name: str, of: Any, wild: float) -> None:
        message = self._inputs.fill(of(), wild)
        if wild == 1.0 and self._rng.random() < 0.1:
            message = self._large(message)
        if not self.client.node.count_subscribers(name):
            restart(self.client)  # an input has deleted the drone
        self.client.publisher(of, name).publish(message)

    def _large(self, message: Any) -> Any:
        """A message with a very long list, of some 200 MB at most: machines of CI have few GB."""
        for field, kind in zip(message.get_fields_and_field_types(), message.SLOT_TYPES):
            if isinstance(kind, AbstractNestedType) and not isinstance(kind, Array):
                element = self._inputs.element(field, kind.value_type)
                setattr(message, field, [element] * 100_000)
                break
        return message

    def _send_service(self, name: str, of: Any, wild: float) -> None:
        request = self._inputs.fill(of.Request(), wild)
        if of in (SetParameters, SetParametersAtomically):
            request.parameters = [self._parameter(wild) for _ in range(self._rng.randrange(3))]
        if of is SetSimulationState and request.state.state == SimulationState.STATE_QUITTING:
            request.state.state = SimulationState.STATE_PAUSED  # it would quit, and rightly so
        self._open.append((f"service {name}", self.client.send_request(of, name, request, inf)))

    def _send_description(self, name: str, of: Any, _: float) -> None:
        """Send a description in an otherwise ordinary request, so that it is what is refused."""
        rng, request = self._rng, of.Request()
        if of is LoadWorld:
            request.world_resource = self._described()
        elif of is SpawnEntity:
            request = self._spawned()
        elif of is SpawnEntities:
            request.spawn_requests = [self._spawned() for _ in range(rng.choice((1, 1, 3)))]
        else:
            paths = [self._descriptions.another().path for _ in range(rng.choice((1, 3, 10)))]
            folders = [path.parent for path in paths]
            sources = rng.choice((paths, folders, [self._descriptions.folder]))
            field = "sources" if of is GetSpawnables else "additional_sources"
            setattr(request, field, [str(source) for source in sources])
        self._open.append((f"description {name}", self.client.send_request(of, name, request, inf)))

    def _spawned(self) -> SpawnEntity.Request:
        name = f"thing{self._rng.randrange(100)}"
        request = SpawnEntity.Request(
            name=name, allow_renaming=True, entity_resource=self._described()
        )
        request.initial_pose.pose.position.x = self._rng.uniform(-20.0, 20.0)
        request.initial_pose.pose.orientation.w = 1.0
        return request

    def _described(self) -> Resource:
        path, text = self._descriptions.another()
        if text and self._rng.random() < 0.5:
            return Resource(resource_string=text.replace("\0", ""))
        return Resource(uri=self._rng.choice((str(path), path.as_uri())))

    def _parameter(self, wild: float) -> Parameter:
        """A parameter to set."""
        rng = self._rng
        names = rng.choice((self._settable, self._settable, self._parameters, ["x" * 5000]))
        name = rng.choice(names)
        value = self._inputs.fill(ParameterValue(), wild)
        value.type = rng.choice((0, 1, 2, 3, 4, 5, 9, 77, 255))
        if name == "checkpoint" and value.type == 4:
            damaged = self.files.sources[-1]
            names = (Path(path).name for path in (*self.files.paths, damaged))
            value.string_value = rng.choice((*names, damaged, "../x", f"{damaged}\0", ""))
        if name == "real_time_factor" and rng.random() < 0.5:
            value.type, value.double_value = 3, rng.choice((0.0, 1e-12, 1e-6, 0.5, 50.0, math.nan))
        return Parameter(name=name, value=value)

    def _send_action(self, name: str, of: Any, wild: float) -> None:
        if name not in self._actions:
            self._actions[name] = ActionClient(self.client.node, of, name)
            self.client.until(self._actions[name].server_is_ready, f"action {name}")
        goal = self._inputs.fill(of.Goal(), wild)
        answer = self._actions[name].send_goal_async(goal)
        cancels = self._rng.random() < 0.5

        def follow(future: Any) -> None:
            handle = future.result()
            if handle is not None and handle.accepted:
                self._open.append((f"action {name}", handle.get_result_async()))
                if cancels:
                    handle.cancel_goal_async()

        answer.add_done_callback(follow)
        self._open.append((f"action {name}", answer))

    def _send_policy(self, kind: str, _: None, __: float) -> None:
        answer = self._reader.submit(_read_policy, self._policies.next(kind))
        self._open.append((f"policy {kind}", answer))

    def _collect(self) -> None:
        """Count the answers that there are."""
        left = []
        for name, future in self._open:
            if future.done():
                self.counts[name]["refused" if _is_refusal(future.result()) else "accepted"] += 1
            else:
                left.append((name, future))
        self._open = left

    def _look(self) -> None:
        """See that it pauses at once. Without a world there would be little to be hostile to."""
        began = time.monotonic()
        answer = self.client.call(SetBool, "crazyflow/pause", ANSWER, data=True)
        self.pauses.append(time.monotonic() - began)
        assert answer.success, answer.message
        world = self.client.call(GetCurrentWorld, "crazyflow/get_current_world")
        if world.result.result != world.result.RESULT_OK:
            _load_world(self.client)
        self.client.call(SetBool, "crazyflow/pause", ANSWER, data=False)

    def _recover(self) -> None:
        """See that it answers all, and that the pilot gets back on its figure."""
        assert self.client.set_parameter("real_time_factor", 1.0).successful
        restart(self.client)  # which ends what waits for time to go on

        def answered() -> bool:
            self._collect()
            return not self._open

        waiting = f"answers of {', '.join(sorted({name for name, _ in self._open}))}"
        self.client.until(answered, waiting, SETTLE)
        restart(self.client)  # what was answered late may have left the pilot on its back
        self._odometry.clear()
        self.client.until(self._is_on_its_figure, "the pilot to fly its figure", SETTLE)

    def _fly(self) -> None:
        """Lead the pilot along its figure, never farther ahead than it can follow."""
        if not self._odometry:
            return
        angle = 2 * math.pi * (time.monotonic() - self._began) / LAP
        target = RADIUS * math.cos(angle), RADIUS * math.sin(angle), HEIGHT
        now = numbers(self._odometry[-1].pose.pose.position)
        del self._odometry[:-1]
        if now[2] < HEIGHT / 2:  # straight up, or it rolls about the feet that stand on the floor
            target = now[0], now[1], HEIGHT
        step = np.array(target) - now
        goal = now + step * min(1.0, _LEAD / max(_LEAD, float(np.linalg.norm(step))))
        message = PoseStamped()
        message.header.frame_id, message.pose.orientation.w = "map", 1.0
        position = message.pose.position
        position.x, position.y, position.z = goal.tolist()
        self.client.publisher(PoseStamped, f"{PILOT}/cmd_pose").publish(message)

    def _is_on_its_figure(self) -> bool:
        self._fly()
        self.client.spin_for(0.05)
        if not self._odometry:
            return False
        x, y, z = numbers(self._odometry[-1].pose.pose.position)
        return abs(math.hypot(x, y) - RADIUS) < _NEAR and abs(z - HEIGHT) < _NEAR

    def tried(self, name: str) -> bool:
        """Whether something was sent there."""
        return any(key.endswith(f" {name}") for key in self.counts)

    def figures(self) -> dict[str, float]:
        """What the node counts."""
        self._status.clear()
        self.client.until(lambda: self._status, "status")
        values = {v.key: v.value for v in self._status[-1].status[0].values}
        names = ("refused_inputs", "failed_inputs", "resent_answers")
        return {name: float(values[name]) for name in names}


def restart(client: Client) -> None:
    """Make all as it was at the start; the world may be another one, or none.

    Inputs that were sent before may still come, such as one that unloads the world: then once more.
    """
    client.until(lambda: _is_as_at_the_start(client), "the start", SETTLE)


def _is_as_at_the_start(client: Client) -> bool:
    _load_world(client)
    everything = ResetSimulation.Request.SCOPE_SPAWNED | ResetSimulation.Request.SCOPE_STATE
    reset = client.call(ResetSimulation, "crazyflow/reset_simulation", SETTLE, scope=everything)
    resumed = client.call(SetBool, "crazyflow/pause", ANSWER, data=False)
    return reset.result.result == reset.result.RESULT_OK and bool(resumed.success)


def _load_world(client: Client) -> None:
    world = Resource(uri=str(ROOT / "urdf_mjcf" / "floor.xml"))
    loaded = client.call(LoadWorld, "crazyflow/load_world", SETTLE, world_resource=world)
    assert loaded.result.result == loaded.result.RESULT_OK, loaded.result.error_message


def _read_policy(path: Path) -> Trigger.Response:
    """Read a policy as a node that starts does, and say whether it takes it."""
    fits = {"freq": 500, "control": "state", "dynamics": "first_principles", "flown_by": ""}
    try:
        policy_of(str(path), "cf2x_L250").check(**fits)
    except ParameterError as error:
        return Trigger.Response(success=False, message=str(error))
    finally:
        path.unlink()
    return Trigger.Response(success=True)


def _is_refusal(response: Any) -> bool:
    """An answer that says no, in whatever way its type has."""
    if response is None or getattr(response, "accepted", True) is False:
        return True
    result = getattr(response, "result", None)
    if hasattr(result, "result"):  # of an action, or of simulation_interfaces
        result = result.result
        return getattr(result, "result", result) != 1
    if hasattr(result, "successful"):
        return not result.successful
    if hasattr(response, "results"):
        return not all(getattr(each, "successful", True) for each in response.results)
    return not getattr(response, "success", getattr(response, "successful", True))


def arguments(folder: Path) -> list[str]:
    """Arguments of a simulator to be hostile to, with all that listens."""
    parameters = [f"drones:=[{PILOT},{','.join(VICTIMS)}]", "max_drones:=8"]
    parameters.append("drone_model:=cf2x_T350")  # which small steps do not flip
    poses = [0.5, 0.0, 0.0, 0.0, 3.0, 3.0, 0.0, 0.0, -3.0, 3.0, 0.0, 0.0]
    parameters += [f"initial_poses:=[{','.join(map(str, poses))}]", f"record:={folder}/run.mcap"]
    parameters += [f"checkpoint_folder:={folder}", f"world_folders:=[{folder}]"]
    return [word for parameter in parameters for word in ("-p", parameter)]


def check(hostile: Hostile, simulator: SimulatorProcess) -> list[str]:
    """What went wrong."""
    if simulator.process.poll() is not None:
        return ["the simulator has ended"]
    wrong = []
    if failed := hostile.figures()["failed_inputs"]:
        wrong.append(f"{failed:g} inputs failed inside of the simulator")
    half = len(hostile.memory) // 2
    growth = max(hostile.memory[half:]) - hostile.memory[half]
    compilations = hostile.compilations[-1] - hostile.compilations[half]
    if growth > MOST_GROWTH + COMPILED * compilations:
        told = f" over {compilations} compilations" if compilations else ""
        wrong.append(f"the memory has grown by {growth:.0f} MB{told}")
    if hostile.sandboxes.peak > hostile.sandboxes.MOST:
        wrong.append(f"a description took {hostile.sandboxes.peak:.0f} MB when it was tried out")
    if not hostile.sandboxes.started:
        wrong.append("no description was tried out")
    wrong += [f"{name} was never tried" for _, name, _ in hostile.kinds if not hostile.tried(name)]
    return wrong
