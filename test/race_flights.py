"""Flights in the node of a policy that sees what a camera of its drone publishes.

`PolicyPilot` flies, in lock-step: over topics and services alone, as a program of the user's own.
Each flight starts where one of the task begins, with standing rotors.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from crazyflow_ros_interfaces.srv import SetMotorEfficiency
from geometry_msgs.msg import Point, Pose, Quaternion, Twist, Vector3
from nav_msgs.msg import Odometry
from rclpy.qos import QoSProfile, ReliabilityPolicy
from ros_client import Client, SimulatorProcess, numbers
from scipy.spatial.transform import Rotation
from simulation_interfaces.msg import EntityState, Result
from simulation_interfaces.srv import SetEntityState

from crazyflow_ros.client import SimulatorClient
from crazyflow_ros.envs import Flight, Race, Start
from crazyflow_ros.learn.fly_policy import PolicyPilot
from crazyflow_ros.policy import load

NAME = "cf0"
_EACH = QoSProfile(depth=1000, reliability=ReliabilityPolicy.RELIABLE)


def put(client: Client, start: Start) -> None:
    """Reset the simulator, and put its drone where an episode of one drone begins."""
    client.reset()
    given = start.quat, start.vel, start.ang_vel
    rest = [0.0, 0.0, 0.0, 1.0], [0.0] * 3, [0.0] * 3
    motion = [np.asarray(x if y is None else y[0], float) for x, y in zip(rest, given)]
    quat, vel, ang_vel = motion
    turns = Rotation.from_quat(quat).apply(ang_vel)  # of the entity, in the world
    at = np.asarray(start.pos[0], float)
    pose = Pose(
        position=Point(**_named(at)), orientation=Quaternion(**dict(zip("xyzw", quat.tolist())))
    )
    twist = Twist(linear=Vector3(**_named(vel)), angular=Vector3(**_named(turns)))
    has_parts = hasattr(SetEntityState.Request, "set_pose")  # in version 2
    parts = dict.fromkeys(("set_pose", "set_twist"), True) if has_parts else {}
    state = EntityState(pose=pose, twist=twist)
    answer = client.call(
        SetEntityState, "crazyflow/set_entity_state", entity=NAME, state=state, **parts
    )
    assert answer.result.result == Result.RESULT_OK, answer.result.error_message


def _named(vector: np.ndarray) -> dict[str, float]:
    return dict(zip("xyz", vector.tolist()))


class Races:
    """A paused simulator with one drone in the scene of a race.

    Args:
        client: Client of the simulator.
        task: The race.
    """

    def __init__(self, client: Client, task: Race) -> None:
        self.client, self._task = client, task

    def fly(self, file: Path, seed: int, seconds: float, efficiency: float = 1.0) -> int:
        """Fly a race, and return the number of gates that were passed before anything was hit.

        Args:
            file: The policy.
            seed: Of the place of the start.
            seconds: Longest duration, in simulated time.
            efficiency: Of one of the motors, as a share of its thrust.
        """
        put(self.client, Start(*self._task.begin(jax.random.key(seed), 1)))
        answer = self.client.call(
            SetMotorEfficiency, f"{NAME}/set_motor_efficiency", motor=1, efficiency=efficiency
        )
        assert answer.success, answer.message
        referee = _Referee(self._task)
        with SimulatorClient(stepping=True) as simulation:
            simulation.node.create_subscription(Odometry, f"{NAME}/odom", referee.note, _EACH)
            pilot = PolicyPilot(simulation, NAME, str(file), (0.0, 0.0, 0.0))
            pilot.fly(referee.is_over, seconds)
        return referee.gates


class _Referee:
    """Judges a race by the positions of the drone, as the task does.

    Attributes:
        is_over: Set when all gates are passed, or something is hit.
        gates: How many gates were passed.
    """

    def __init__(self, task: Race) -> None:
        self.is_over, self.gates = threading.Event(), 0
        self._last: np.ndarray | None = None

        @jax.jit
        def judge(before: jax.Array, after: jax.Array, gates: int) -> tuple[jax.Array, jax.Array]:
            zero, origin = jnp.zeros((1, 3)), jnp.full((1, 1), gates, jnp.float32)
            goal, _ = task.goal(origin, zero[:, :1])
            flights = [Flight(x[None], zero, goal - x, zero, origin) for x in (before, after)]
            return task.advance(*flights)[0, 0], task.judge(*flights).terminated[0]

        self._judge = judge

    def note(self, message: Odometry) -> None:
        """Judge what happened since the last message."""
        now = numbers(message.pose.pose.position).astype(np.float32)
        if self._last is not None and not self.is_over.is_set():
            gates, ends = self._judge(self._last, now, self.gates)
            self.gates = int(gates)
            if ends:
                self.is_over.set()
        self._last = now


@contextmanager
def races(domain: int, policy: Path, folder: Path) -> Iterator[Races]:
    """Start a simulator of races whose drone has the camera that a policy needs; see `seeing`."""
    with seeing(domain, Race().scene, policy, folder) as client:
        yield Races(client, Race())


@contextmanager
def seeing(domain: int, scene: str, policy: Path, folder: Path) -> Iterator[Client]:
    """Start a paused simulator with one drone that has the camera that a policy needs.

    Args:
        domain: ROS domain.
        scene: The scene.
        policy: File of the policy.
        folder: For the sensors file.
    """
    eye = load(policy).observation.eye
    assert eye is not None
    entry = f"type: camera, rate: 50, width: {eye.width}, height: {eye.height}, fovy: {eye.fovy}"
    sensors = folder / "sensors.yaml"
    sensors.write_text(f"all:\n  eye: {{{entry}, data_types: [{eye.kind}]}}\n")
    parameters = (
        "control:=rotor_vel",
        f"scene:={scene}",
        f"sensors:={sensors}",
        "start_paused:=true",
        "real_time_factor:=0.0",
    )
    words = [word for parameter in parameters for word in ("-p", parameter)]
    with SimulatorProcess(domain, words):
        client = Client(domain)
        try:
            yield client
        finally:
            client.close()
