"""Races in the node of a policy that sees what a camera of its drone publishes.

`PolicyPilot` flies, in lock-step: over topics and services alone, as a program of the user's own.
Each race starts where one of the task begins, with standing rotors.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from geometry_msgs.msg import Point, Pose, Quaternion, Twist
from nav_msgs.msg import Odometry
from rclpy.qos import QoSProfile, ReliabilityPolicy
from ros_client import Client, SimulatorProcess, numbers
from simulation_interfaces.msg import EntityState, Result
from simulation_interfaces.srv import SetEntityState

from crazyflow_ros.client import SimulatorClient
from crazyflow_ros.envs import Flight, Race, Start
from crazyflow_ros.fly_policy import PolicyPilot
from crazyflow_ros.policy import load

NAME = "cf0"
_EACH = QoSProfile(depth=1000, reliability=ReliabilityPolicy.RELIABLE)


class Races:
    """A paused simulator with one drone in the scene of a race.

    Args:
        client: Client of the simulator.
        task: The race.
    """

    def __init__(self, client: Client, task: Race) -> None:
        self._client, self._task = client, task

    def fly(self, file: Path, seed: int, seconds: float) -> int:
        """Fly a race, and return the number of gates that were passed before anything was hit."""
        place = Start(*self._task.begin(jax.random.key(seed), 1)).pos[0]
        self._client.reset()
        pose = Pose(position=Point(**dict(zip("xyz", np.asarray(place, float).tolist()))))
        pose.orientation = Quaternion(w=1.0)
        has_parts = hasattr(SetEntityState.Request, "set_pose")  # in version 2
        parts = dict.fromkeys(("set_pose", "set_twist"), True) if has_parts else {}
        state = EntityState(pose=pose, twist=Twist())
        answer = self._client.call(
            SetEntityState, "crazyflow/set_entity_state", entity=NAME, state=state, **parts
        )
        assert answer.result.result == Result.RESULT_OK, answer.result.error_message
        seen: list[Odometry] = []
        with SimulatorClient(stepping=True) as simulation:
            simulation.node.create_subscription(Odometry, f"{NAME}/odom", seen.append, _EACH)
            PolicyPilot(simulation, NAME, str(file), (0.0, 0.0, 0.0)).fly(
                threading.Event(), seconds
            )
        return self._passed(np.array([numbers(m.pose.pose.position) for m in seen]))

    def _passed(self, path: np.ndarray) -> int:
        """Return how many gates a path (T, 3) passes before it ends, or hits something."""
        task, origin = self._task, jnp.zeros((1, 1))
        zero = jnp.zeros((1, 1))
        for before, after in pairwise(path):
            goal, _ = task.goal(origin, zero)
            flights = [
                Flight(jnp.array(x[None]), jnp.zeros((1, 3)), goal - x, jnp.zeros((1, 3)), origin)
                for x in (before, after)
            ]
            verdict = task.judge(*flights)
            origin = task.advance(*flights)
            if verdict.terminated[0]:
                break
        return int(origin[0, 0])


@contextmanager
def races(domain: int, policy: Path, folder: Path, *given: str, mount: str = "") -> Iterator[Races]:
    """Start a simulator whose drone has the camera that a policy needs.

    Args:
        domain: ROS domain.
        policy: File of the policy.
        folder: For the sensors file.
        *given: Further parameters of the simulator.
        mount: Further fields of the camera's entry in the sensors file.
    """
    task = Race()
    eye = load(policy).observation.eye
    assert eye is not None
    entry = f"type: camera, rate: 50, width: {eye.width}, height: {eye.height}, fovy: {eye.fovy}"
    sensors = folder / "sensors.yaml"
    sensors.write_text(f"all:\n  eye: {{{entry}, data_types: [{eye.kind}]{mount}}}\n")
    x, y, _ = task.gates.start.tolist()
    parameters = (
        "control:=rotor_vel",
        f"scene:={task.scene}",
        f"initial_poses:=[{x}, {y}, {task.height}, 0.0]",
        f"sensors:={sensors}",
        "start_paused:=true",
        "real_time_factor:=0.0",
        *given,
    )
    words = [word for parameter in parameters for word in ("-p", parameter)]
    with SimulatorProcess(domain, words):
        client = Client(domain)
        try:
            yield Races(client, task)
        finally:
            client.close()
