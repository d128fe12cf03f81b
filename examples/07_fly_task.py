"""Lead a drone that a policy flies through a race or a figure-eight, over ROS topics.

Train a policy, start a simulator that it flies, then this program:

    .venv/bin/python -m crazyflow_ros.learn race
    .venv/bin/python -m crazyflow_ros --ros-args -p policy:=race.policy -p scene:=race_track \
-p initial_poses:='[0.0, -3.0, 0.0, 0.0]'
    .venv/bin/python examples/07_fly_task.py race

It commands the goal of the task on <drone>/command: in a race the next gate, as soon as the drone
is through the last one.
"""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from nav_msgs.msg import Odometry
from rclpy.duration import Duration
from std_msgs.msg import Float64MultiArray

from crazyflow_ros.client import SimulatorClient
from crazyflow_ros.envs import CourseTask, Flight, Start, Task
from crazyflow_ros.learn import READY
from crazyflow_ros.scene.frames import body_to_world

RATE = 50  # Hz, of the goals, as of the policies
EASE = 2.0  # s
DELIVERY = Duration(seconds=10)


class Seen(NamedTuple):
    """What odometry tells of a `Flight`, and all that a `Race` asks for; see there."""

    pos: Any
    vel: Any
    error: Any
    vel_error: Any
    origin: Any


class Goals:
    """The goals of a task, in single precision as in training."""

    def __init__(self, task: Task, ease: float = 0.0) -> None:
        """Take the goals of `task`; during the first `ease` seconds they come up to their speed."""
        self._task, self._last, self._ease = task, None, ease
        start = Start(*task.begin(jax.random.key(0), 1))
        self.origin = start.origin
        """What the task keeps; in a `Race`, how many gates are behind the drone, (1, 1)."""
        self._goal = jax.jit(self._command)

    def _command(self, origin: Any, time: Any) -> tuple[Any, Any, Any]:
        rate = jnp.where(time < self._ease, time / max(self._ease, 1e-6), 1.0)
        eased = jnp.where(time < self._ease, time * rate / 2, time - self._ease / 2)
        (pos, vel), (_, acc) = jax.jvp(
            lambda time: self._task.goal(origin, time), (eased,), (jnp.ones_like(time),)
        )
        gain = jnp.where(time < self._ease, 1 / max(self._ease, 1e-6), 0.0)  # of the rate, 1/s
        return pos, rate * vel, rate**2 * acc + gain * vel

    def __call__(self, odometry: Odometry, time: float) -> np.ndarray:
        """Return position, velocity and acceleration of the goal, (3, 3).

        Args:
            odometry: Where the drone is, one period after the last call.
            time: Since the first call, s.
        """
        pos, vel = motion(odometry)
        now = jnp.full((1, 1), time)
        goal, goal_vel, _ = self._goal(self.origin, now)
        seen = Seen(pos[None], vel[None], goal - pos, goal_vel - vel, self.origin)
        if isinstance(self._task, CourseTask) and self._last is not None:
            self.origin = self._task.advance(cast(Flight, self._last), cast(Flight, seen))
        goals = self._goal(self.origin, now)
        goal, goal_vel, _ = goals
        self._last = Seen(pos[None], vel[None], goal - pos, goal_vel - vel, self.origin)
        return np.concatenate(goals)


def motion(odometry: Odometry) -> tuple[np.ndarray, np.ndarray]:
    """Return position and velocity in the map, (3,) each."""
    pose, linear = odometry.pose.pose, odometry.twist.twist.linear
    place, quat = pose.position, pose.orientation
    turned = body_to_world(
        np.array([quat.x, quat.y, quat.z, quat.w]), np.array([linear.x, linear.y, linear.z])
    )
    return np.array([place.x, place.y, place.z]), turned


def fly(simulation: SimulatorClient, name: str, goals: Goals, seconds: float) -> np.ndarray:
    """Lead a drone, and return its distance from the goal at each period, m.

    Args:
        simulation: Connection to the simulator.
        name: Name of the drone.
        goals: Where it has to fly.
        seconds: Duration in simulated time.
    """
    drone = simulation.drone(name)
    commands = simulation.node.create_publisher(Float64MultiArray, f"{name}/command", 1)
    found = commands.get_subscription_count
    simulation.wait(found, f"nobody reads {name}/command")
    distances, begin = [], simulation.time
    while (time := simulation.time - begin) < seconds:
        odometry = drone.odometry
        command = goals(odometry, time)
        commands.publish(Float64MultiArray(data=[*command.ravel().tolist(), *[0.0] * 4]))
        commands.wait_for_all_acked(DELIVERY)  # before time goes on
        distances.append(np.linalg.norm(command[0] - motion(odometry)[0]))
        simulation.sleep(1 / RATE)
    return np.array(distances)


def main() -> None:
    """Fly the first drone of a running simulator."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", choices=("figure_eight", "race"))
    parser.add_argument("--seconds", type=float, default=20.0, help="simulated time")
    parser.add_argument(
        "--lock-step", action="store_true", help="the simulator waits for each goal"
    )
    arguments = parser.parse_args()
    # From hovering, a goal that moves at once is 1.5 m/s too fast for a drone.
    goals = Goals(READY[arguments.task].task(), EASE if arguments.task == "figure_eight" else 0.0)
    with SimulatorClient(stepping=arguments.lock_step) as simulation:
        name = simulation.drones[0]
        if arguments.task == "figure_eight":
            simulation.drone(name).takeoff(1.0)
        distances = fly(simulation, name, goals, arguments.seconds)
    if arguments.task == "race":
        print(f"passed {int(goals.origin[0, 0])} gates")
    else:
        print(f"distance from the goal: mean {distances.mean():.3f} m")


if __name__ == "__main__":
    main()
