"""The route of ros2_control's stock topic plugins: a process that responds to each state.

It is measured in real time and at full speed; the simulator does not wait for responses. The delay
is counted from the state that is answered with a new speed to the first state with its effect.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState

from benchmark.processes import ros
from crazyflow_ros.client.simulator_process import SimulatorProcess

FREQ = 500
SPEEDS = (1000.0, 1800.0)  # rad/s, of all rotors, in turn; the drone stays on the floor
TURNS = 150  # states between two changes
READY_TIMEOUT = 120.0  # s
PARAMETERS = {
    "ros2_control.mode": "topic",
    "freq": str(FREQ),
    "ros2_control.rate": str(FREQ),
    "publish_rates.clock": str(FREQ),
}


class Controller:
    """A node like the plugin with a controller that responds at once."""

    def __init__(self) -> None:
        self.node = rclpy.create_node("cf0")
        self.answers = 0
        self.delays: list[int] = []
        self._told, self._changed, self._speed = 0, 0, 0.0
        self._publisher = self.node.create_publisher(JointState, "robot_joint_commands", 1)
        self.node.create_subscription(
            JointState, "robot_joint_states", self._answer, qos_profile_sensor_data
        )

    def _answer(self, state: JointState) -> None:
        stamp, speed = state.header.stamp, state.velocity[0]
        tick = stamp.sec * FREQ + round(stamp.nanosec * FREQ / 1e9)
        if self._changed and self._shows(speed):
            self.delays.append(tick - self._changed)
            self._changed = 0
        if not self._changed and self.answers % TURNS == 0:
            self._told, self._changed = 1 - self._told, tick
        self._speed = speed
        self.answers += 1
        command = JointState(name=state.name, velocity=[SPEEDS[self._told]] * 4)
        command.header.stamp = stamp
        self._publisher.publish(command)

    def _shows(self, speed: float) -> bool:
        """Return whether the rotors have begun to follow the command."""
        return (speed > self._speed) if self._told else (speed < self._speed)


def measure(factor: float, seconds: float = 5.0) -> tuple[float, float]:
    """Return the wall time per answered state [s], and the median delay in ticks.

    Args:
        factor: Real-time factor of the simulator, 0 for as fast as possible.
        seconds: Wall time of the measurement [s].
    """

    def until(condition: Callable[[], object], timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while not condition():
            simulator.check()
            if time.monotonic() > deadline:
                raise TimeoutError(f"no answer of the simulator within {timeout:g} s")
            executor.spin_once(timeout_sec=0.1)

    parameters = PARAMETERS | {"real_time_factor": str(float(factor))}
    with (
        ros(),
        tempfile.TemporaryDirectory() as folder,
        SimulatorProcess(parameters, Path(folder) / "simulator.log") as simulator,
    ):
        executor, controller = SingleThreadedExecutor(), Controller()
        executor.add_node(controller.node)
        until(lambda: controller.delays, READY_TIMEOUT)
        controller.delays.clear()
        answers, began = controller.answers, time.monotonic()
        until(lambda: time.monotonic() > began + seconds, seconds + 1.0)
        until(lambda: controller.delays, READY_TIMEOUT)
        period = (time.monotonic() - began) / (controller.answers - answers)
        executor.shutdown()
    return period, float(np.median(controller.delays))
