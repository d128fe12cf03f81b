"""Flights of a policy in the node from random starts, as a program of the user's own does them.

Only topics and services are used: `~/set_entity_state` puts a drone anywhere in any motion,
`<drone>/command` or `<drone>/cmd_pose` sets its goal, and `~/odometry` says where it is. No
interface sets the speeds of rotors: they stand after a reset, and turn if the drone flew before.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from geometry_msgs.msg import Point, Pose, PoseStamped, Quaternion, Twist, Vector3
from rclpy.duration import Duration
from ros_client import FREQ, Client, RosProcess, SimulatorProcess, numbers, stamp_ns, time_ns
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import MultiDOFJointState
from simulation_interfaces.msg import EntityState, Result
from simulation_interfaces.srv import SetEntityState
from std_msgs.msg import Float64MultiArray

_TAKEOFF = 2.0  # s
_RATE = 10  # Hz, of ~/odometry
_HEIGHT = 40.0  # m: none that falls for a while reaches the floor
_APART = 6.0  # m, so that none flies in another one's air
_UP = np.array([0.0, 0.0, 0.5])  # m, of the take-off
_TIMEOUT = 300.0  # s of wall time for a flight
_DELIVERY = Duration(seconds=60)


@dataclass(frozen=True)
class Starts:
    """Random motions around the goals, uniform up to these figures in each axis."""

    pos: float
    """m."""
    vel: float
    """m/s."""
    rates: float
    """rad/s, in axes of the map."""
    tilt: float | None
    """Rotation vector, rad; None for any attitude."""


ANYHOW = Starts(pos=1.0, vel=1.0, rates=4.0, tilt=None)
"""Those from which `crazyflow_ros.learn` trains."""
GENTLE = Starts(pos=0.2, vel=0.3, rates=0.5, tilt=0.5)


class Flights:
    """A simulator with drones that a policy flies. Time stands still between the flights.

    Args:
        client: Client of the simulator.
        simulator: Its process.
        n: Number of drones.
    """

    def __init__(self, client: Client, simulator: RosProcess, n: int) -> None:
        self.simulator, self._client = simulator, client
        self._names = [f"cf{i}" for i in range(n)]
        side = int(np.ceil(np.sqrt(n)))
        places = np.array([divmod(i, side) for i in range(n)]) * _APART
        self._goals = np.column_stack((places, np.full(n, _HEIGHT)))
        self._seen = client.collect(MultiDOFJointState, "crazyflow/odometry")

    def fly(
        self,
        starts: Starts,
        seed: int,
        *,
        turning: bool = True,
        by_pose: bool = False,
        seconds: float = 5.0,
    ) -> np.ndarray:
        """Put all drones into random motion, and let them fly to their goals.

        Args:
            starts: The motions.
            seed: Of the motions.
            turning: Whether they take off first, so that rotors turn.
            by_pose: Command the goals over `cmd_pose` instead of `command`.
            seconds: Simulated time.

        Returns:
            (n,) distances from the goals after that time [m].
        """
        tick = self._client.reset()
        if turning:
            (standing,) = self._advance(tick, 1 / _RATE)
            self._command(standing + _UP, by_pose=True)
            self._advance(self._client.pause(True), _TAKEOFF)
        self._place(starts, np.random.default_rng(seed))
        self._command(self._goals, by_pose=by_pose)
        (reached,) = self._advance(self._client.pause(True), seconds)
        return np.linalg.norm(reached - self._goals, axis=1)

    def _command(self, goals: np.ndarray, *, by_pose: bool) -> None:
        publishers = []
        for name, goal in zip(self._names, goals):
            message: Any = Float64MultiArray(data=[*goal.tolist(), *[0.0] * 10])
            if by_pose:
                message = PoseStamped(pose=Pose(position=_of(Point, goal)))
                message.header.frame_id = "map"
            topic = f"{name}/{'cmd_pose' if by_pose else 'command'}"
            publisher = self._client.publisher(type(message), topic)
            publisher.publish(message)
            publishers.append(publisher)
        assert all(publisher.wait_for_all_acked(_DELIVERY) for publisher in publishers)

    def _place(self, starts: Starts, rng: np.random.Generator) -> None:
        n = len(self._names)

        def some(most: float) -> np.ndarray:
            return rng.uniform(-most, most, (n, 3))

        turn = Rotation.random(n, rng=rng)
        if starts.tilt is not None:
            turn = Rotation.from_rotvec(some(starts.tilt))
        pos, vel, rates = self._goals + some(starts.pos), some(starts.vel), some(starts.rates)
        has_parts = hasattr(SetEntityState.Request, "set_pose")  # in version 2
        parts = dict.fromkeys(("set_pose", "set_twist"), True) if has_parts else {}
        futures = []
        for i, name in enumerate(self._names):
            pose = Pose(position=_of(Point, pos[i]), orientation=_of(Quaternion, turn[i].as_quat()))
            twist = Twist(linear=_of(Vector3, vel[i]), angular=_of(Vector3, rates[i]))
            request: dict[str, Any] = {"entity": name, "state": EntityState(pose=pose, twist=twist)}
            service = "crazyflow/set_entity_state"
            futures.append(self._client.send(SetEntityState, service, **request, **parts))
        for name, future in zip(self._names, futures):
            result = self._client.response(future, f"the state of {name}").result
            assert result.result == Result.RESULT_OK, result.error_message

    def _advance(self, tick: int, seconds: float) -> list[np.ndarray]:
        """Let time run, at the simulator's factor; positions (n, 3) at the end, as a list of one.

        The time that runs until the pause comes is not counted.
        """
        end = tick + round(seconds * FREQ)
        self._seen.clear()
        self._client.pause(False)
        found: list[np.ndarray] = self._client.until(
            lambda: self._at(end), f"tick {end}", timeout=_TIMEOUT
        )
        self._client.pause(True)
        return found

    def _at(self, tick: int) -> list[np.ndarray]:
        """Positions in the first message at or after a tick."""
        for message in self._seen:
            if time_ns(message.header.stamp) >= stamp_ns(tick):
                return [np.array([numbers(t.translation) for t in message.transforms])]
        return []


def _of(kind: Any, values: np.ndarray) -> Any:
    return kind(**dict(zip("xyzw", values.tolist())))


@contextmanager
def flights(domain: int, policy: str, drone: str, n: int, factor: float) -> Iterator[Flights]:
    """Start a simulator whose drones a policy flies, at a real-time factor."""
    parameters = (
        f"policy:={policy}",
        f"drone_model:={drone}",
        f"drones:=[{', '.join(f'cf{i}' for i in range(n))}]",
        f"real_time_factor:={factor}",
        f"publish_rates.swarm:={_RATE}",
        "start_paused:=true",
    )
    words = [word for parameter in parameters for word in ("-p", parameter)]
    with SimulatorProcess(domain, words) as simulator:
        client = Client(domain)
        try:
            yield Flights(client, simulator, n)
        finally:
            client.close()
