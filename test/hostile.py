"""A simulator under hostile input, while a drone flies a figure: `make hostile`.

    make hostile ARGS="--inputs 2000 --seed 7"

What can be sent is taken from the running node: all topics that it subscribes to, all services and
actions that it serves, and all parameters that can be set. The fields of each message are random:
plausible names and numbers, of which some are replaced by what nobody should send. Files of all
kinds that a request can name are whole, damaged, huge, or no files at all. Policies reach a node
only at its start, so files of them are read beside it, as a node that starts does.

Nothing of that may end or hang the simulator, fail inside of it, or make its memory grow.
"""

from __future__ import annotations

import argparse
import importlib
import math
import os
import random
import string
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped
from hostile_policies import KINDS, PolicyFiles, damaged
from nav_msgs.msg import Odometry
from paths import ROOT
from rcl_interfaces.msg import Parameter, ParameterValue
from rcl_interfaces.srv import DescribeParameters, SetParameters, SetParametersAtomically
from rclpy.action import ActionClient
from rclpy.action.graph import get_action_server_names_and_types_by_node
from ros_client import Client, SimulatorProcess, numbers, own_domain
from rosidl_parser.definition import (
    AbstractNestedType,
    AbstractString,
    AbstractWString,
    Array,
    BasicType,
    NamespacedType,
)
from simulation_interfaces.msg import Resource, SimulationState
from simulation_interfaces.srv import (
    GetCurrentWorld,
    LoadWorld,
    ResetSimulation,
    SetSimulationState,
    SpawnEntity,
)
from std_srvs.srv import SetBool, Trigger

from crazyflow_ros.plain_values import ParameterError
from crazyflow_ros.ros.parameters.policy import usable_policy

PILOT, VICTIMS, FRAMES = "ace", ("cf0", "cf1"), ("odom", "base_link")
RADIUS, HEIGHT, LAP = 0.5, 1.0, 10.0  # m, m, s of the pilot's figure
BATCH = 25  # inputs between two looks at the pilot
ANSWER = 60.0  # s in which a service has to answer that waits for nobody
SETTLE = 400.0  # s in which all have to answer, some after compiling, and the pilot is back
PASSED = 20.0  # s after which large messages have passed
MOST_GROWTH = 100.0  # MB of memory, over the second half of the inputs

_LEAD, _NEAR = 0.3, 0.15  # m, of the point that leads the pilot, and of the figure
_INTEGERS = {
    f"{sign}int{bits}": ((0, 2**bits - 1) if sign else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1))
    for sign in ("", "u")
    for bits in (8, 16, 32, 64)
} | {"byte": (0, 255), "octet": (0, 255), "char": (0, 255)}
_WILD_FLOATS = (math.nan, math.inf, -math.inf, 1.7e308, -1e300, 1e12, -1e9, 1e-320, 0.0, -0.0)


class Inputs:
    """Random messages.

    Args:
        rng: Random numbers.
        texts: Those that mean something to the simulator, by what is in the name of the field.
    """

    def __init__(self, rng: random.Random, texts: dict[str, list[str]]) -> None:
        self._rng, self._texts = rng, texts

    def fill(self, message: Any, wild: float) -> Any:
        """Give all fields random values, each a wild one with some probability."""
        for field, kind in zip(message.get_fields_and_field_types(), message.SLOT_TYPES):
            setattr(message, field, self._value(field, kind, getattr(message, field), wild))
        return message

    def element(self, field: str, kind: Any) -> Any:
        """An ordinary element of a list."""
        return self._value(field, kind, _element(kind), 0.0)

    def _value(self, field: str, kind: Any, present: Any, wild: float) -> Any:
        rng = self._rng
        if isinstance(kind, BasicType):
            return self._number(kind.typename, wild)
        if isinstance(kind, AbstractString | AbstractWString):
            return self._text(field, wild)
        if isinstance(kind, NamespacedType):
            return self.fill(present, wild)
        assert isinstance(kind, AbstractNestedType)
        if isinstance(kind, Array):
            n = kind.size
        else:
            n = rng.choice((0, 1, 1, 2, 3, 4, 13, 16))
            if rng.random() < wild:
                n = rng.choice((17, 300, 2000 if isinstance(kind.value_type, BasicType) else 50))
        of = kind.value_type
        return [self._value(field, of, _element(of), wild) for _ in range(n)]

    def _number(self, typename: str, wild: float) -> Any:
        rng = self._rng
        if typename == "boolean":
            return rng.random() < 0.5
        if typename in ("float", "double"):
            if rng.random() < wild:
                value = rng.choice(_WILD_FLOATS)
                return math.inf if typename == "float" and abs(value) > 1e38 else value
            return rng.choice((0.0, 1.0, rng.gauss(0.0, 1.0)))
        low, high = _INTEGERS[typename]
        value = rng.choice((low, high, high // 2)) if rng.random() < wild else rng.choice(range(4))
        return bytes([value]) if typename in ("byte", "octet") else value

    def _text(self, field: str, wild: float) -> str:
        rng = self._rng
        if rng.random() >= wild:
            fitting = [texts for part, texts in self._texts.items() if part in field]
            return rng.choice((fitting or list(self._texts.values()))[0])
        return rng.choice(
            (
                "",
                "\0",
                "\n\x1b[31m",
                "é😀",
                "../../..",
                "/dev/zero",
                "file:///dev/zero",
                "(" * 3000,
                "(" * 30_000,
                "((((a{1,255}){1,255}){1,255}){1,255})",
                "a" * 20_000,
                "<" * 1000,
                "".join(rng.choices(string.printable, k=rng.randrange(1, 40))),
            )
        )


def _type(name: str) -> Any:
    """A type of the ROS interface, such as geometry_msgs/msg/Point."""
    package, folder, last = name.split("/")
    return getattr(importlib.import_module(f"{package}.{folder}"), last)


def _element(kind: Any) -> Any:
    """What an element of a list is filled from."""
    if isinstance(kind, NamespacedType):
        return _type("/".join(kind.namespaced_name()))()
    return None


class Files:
    """Files of all kinds that a request can name, and what is no file."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self._folder, self._rng = folder, rng
        self.checkpoint = folder / "good.checkpoint"
        os.mkfifo(folder / "fifo")
        (folder / "folder").mkdir()
        (folder / "empty").touch()
        (folder / "dangling").symlink_to(folder / "nowhere")
        with (folder / "huge.xml").open("wb") as file:
            file.truncate(4 << 30)
        (folder / "many.xml").write_text(
            "<mujoco><worldbody><replicate count='1000000'><geom size='1'/></replicate>"
            "</worldbody></mujoco>"
        )
        self._objects = sorted((ROOT / "urdf_mjcf" / "objects").iterdir())
        self.objects = list(map(str, self._objects))
        self._scenes = [ROOT / "urdf_mjcf" / f"{name}.xml" for name in ("floor", "room")]
        self.paths = [str(folder / n) for n in ("fifo", "folder", "empty", "dangling", "nowhere")]
        self.sources = [
            *self.paths,
            *map(str, self._objects + self._scenes),
            str(folder / "huge.xml"),
            str(folder / "many.xml"),
            str(folder / "damaged"),
        ]

    def damage(self) -> None:
        """Write another damaged file, made from a good one."""
        source = self._rng.choice([*self._objects, *self._scenes, self.checkpoint])
        content = source.read_bytes() if source.is_file() else b"?"
        (self._folder / "damaged").write_bytes(damaged(content, self._rng))


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
        self.counts: dict[str, Counter[str]] = {}
        self.pauses: list[float] = []
        self.memory: list[float] = []
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
        assert self.client.set_parameter("checkpoint", str(self.files.checkpoint)).successful
        assert self.client.call(Trigger, "crazyflow/save_checkpoint").success
        self.kinds = self._interface()
        # What is compiled for the first object stays, and is no leak.
        spawn = {"entity_resource": Resource(uri=self.files.objects[0]), "name": "first"}
        first = self.client.call(SpawnEntity, "crazyflow/spawn_entity", SETTLE, **spawn)
        assert first.result.result == first.result.RESULT_OK, first.result.error_message
        self._actions: dict[str, ActionClient] = {}

    def _interface(self) -> list[tuple[str, str, Any]]:
        """Kind, name and type of all that the node takes, but for what is the pilot's."""
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
                    found.append((kind, name, _type(types[0])))
        found += [("policy", kind, None) for kind in KINDS]
        return sorted(found, key=lambda entry: entry[:2])

    def run(self, n_inputs: int, told: Callable[[str], object] = print) -> None:
        """Send inputs.

        Args:
            n_inputs: How many.
            told: Hears how far it has come.
        """
        for i in range(n_inputs):
            if i % BATCH == 0:
                self._look()
            if i % (10 * BATCH) == 0:
                self._recover()
                self.memory.append(self._memory())
                told(f"{i} of {n_inputs} inputs, {self.memory[-1]:.0f} MB")
            # Every kind in turn, so that none is missed.
            kind, name, of = self.kinds[i % len(self.kinds)]
            self.files.damage()
            self._counts(kind, name)["tried"] += 1
            getattr(self, f"_send_{kind}")(name, of, self._rng.choice((0.0, 0.0, 0.05, 0.3, 1.0)))
            self.client.spin(0.005)
            self._collect()
            self._fly()
        self._look()
        self._recover()
        self.memory.append(self._memory())

    def _memory(self) -> float:
        """Of the simulator [MB], without that of large messages which are on their way."""
        least, deadline = math.inf, time.monotonic() + PASSED
        while time.monotonic() < deadline:
            least = min(least, self._simulator.memory)
            if not self.memory or least < self.memory[-1] + MOST_GROWTH / 4:
                break
            self.client.spin(0.1)
            self._fly()
        return least

    def _counts(self, kind: str, name: str) -> Counter[str]:
        return self.counts.setdefault(f"{kind} {name}", Counter())

    def _send_topic(self, name: str, of: Any, wild: float) -> None:
        message = self._inputs.fill(of(), wild)
        if wild == 1.0 and self._rng.random() < 0.1:
            message = self._large(message)
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
        self._open.append((f"service {name}", self.client.send_request(of, name, request)))

    def _parameter(self, wild: float) -> Parameter:
        """A parameter to set; files only within our folder, for they are written to."""
        rng = self._rng
        names = rng.choice((self._settable, self._settable, self._parameters, ["x" * 5000]))
        name = rng.choice(names)
        value = self._inputs.fill(ParameterValue(), wild)
        value.type = rng.choice((0, 1, 2, 3, 4, 5, 9, 77, 255))
        if name == "checkpoint" and value.type == 4:
            damaged = self.files.sources[-1]
            value.string_value = rng.choice((*self.files.paths, damaged, f"{damaged}\0", ""))
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
            self._load_world()
        self.client.call(SetBool, "crazyflow/pause", ANSWER, data=False)

    def _recover(self) -> None:
        """See that it answers all, and that the pilot gets back on its figure."""
        assert self.client.set_parameter("real_time_factor", 1.0).successful
        self._restart()  # which ends what waits for time to go on

        def answered() -> bool:
            self._collect()
            return not self._open

        waiting = f"answers of {', '.join(sorted({name for name, _ in self._open}))}"
        self.client.until(answered, waiting, SETTLE)
        self._restart()  # what was answered late may have left the pilot on its back
        self._odometry.clear()
        self.client.until(self._is_on_its_figure, "the pilot to fly its figure", SETTLE)

    def _restart(self) -> None:
        """Make all as it was at the start; the world may be another one, or none."""
        call = self.client.call
        self._load_world()
        everything = ResetSimulation.Request.SCOPE_SPAWNED | ResetSimulation.Request.SCOPE_STATE
        reset = call(ResetSimulation, "crazyflow/reset_simulation", SETTLE, scope=everything)
        assert reset.result.result == reset.result.RESULT_OK, reset.result.error_message
        resumed = call(SetBool, "crazyflow/pause", ANSWER, data=False)
        assert resumed.success, resumed.message

    def _load_world(self) -> None:
        world = Resource(uri=str(ROOT / "urdf_mjcf" / "floor.xml"))
        loaded = self.client.call(LoadWorld, "crazyflow/load_world", SETTLE, world_resource=world)
        assert loaded.result.result == loaded.result.RESULT_OK, loaded.result.error_message

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
        self.client.spin(0.05)
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


def _read_policy(path: Path) -> Trigger.Response:
    """Read a policy as a node that starts does, and say whether it takes it."""
    fits = {"freq": 500, "control": "state", "dynamics": "first_principles", "source": "off"}
    try:
        usable_policy(str(path), "cf2x_L250", **fits)
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
    if growth > MOST_GROWTH:
        wrong.append(f"the memory has grown by {growth:.0f} MB")
    wrong += [f"{name} was never tried" for _, name, _ in hostile.kinds if not hostile.tried(name)]
    return wrong


def main() -> None:
    """Send inputs, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    domain = own_domain("hostile")
    with TemporaryDirectory() as folder, SimulatorProcess(domain, arguments(Path(folder))) as it:
        hostile = Hostile(it, domain, random.Random(options.seed), Path(folder))
        try:
            hostile.run(options.inputs)
            wrong, figures = check(hostile, it), hostile.figures()
            reading = getrusage(RUSAGE_CHILDREN).ru_maxrss / 1024  # MB, before the simulator ends
        finally:
            hostile.client.close()
        code, _ = it.end()
    print(f"{'':60} tried refused accepted")
    totals: dict[str, Counter[str]] = defaultdict(Counter)
    for name, counts in sorted(hostile.counts.items()):
        totals[f"all of kind {name.split()[0]}"] += counts
    for name, counts in (*sorted(hostile.counts.items()), *totals.items()):
        print(f"{name:60} {counts['tried']:5} {counts['refused']:7} {counts['accepted']:8}")
    print(*(f"{name}: {value:g}" for name, value in figures.items()), sep=", ")
    pauses = np.array(hostile.pauses) * 1e3
    print(
        f"{len(pauses)} times pause answered within {np.median(pauses):.1f} ms in the median, "
        f"{pauses.max():.0f} ms at most, {(pauses > 100).sum()} times after more than 100 ms"
    )
    memory = hostile.memory
    print(
        f"memory {memory[0]:.0f} MB at first, {max(memory):.0f} at most, {memory[-1]:.0f} at last; "
        f"{reading:.0f} MB at most to read a policy"
    )
    print(*wrong, f"exit code {code}", sep="\n")
    sys.exit(bool(wrong or code))


if __name__ == "__main__":
    main()
