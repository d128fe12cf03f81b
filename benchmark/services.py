"""Clock, pause, steps and reset over ROS, compared with measurements of mujoco_ros2_control.

    python -m benchmark.services [seconds]

Prints Markdown tables. One drone hovers, physics and /clock run at 500 Hz, and this process
subscribes to the clock. The figures of mujoco_ros2_control are for its main branch (bda2b67) with a
body and four rotor joints on a similar machine; its highest factor is that of its own row.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import SetParameters
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from std_srvs.srv import SetBool, Trigger

from benchmark.node import time_until_ready
from benchmark.processes import ros
from benchmark.subscriber import Subscriber
from crazyflow_ros.demo.simulator import SimulatorProcess

FREQ = 500  # Hz
STEPS = 500
ROUNDS = 10
TIMEOUT = 30.0  # s
SILENCE = 0.3  # s of wall time for earlier messages to arrive
PARAMETERS = {
    "freq": str(FREQ),
    "publish_rates.clock": str(FREQ),
    "initial_poses": "[0.0, 0.0, 1.0, 0.0]",
    "step_ticks": str(STEPS),
}
PEER = {1.0: ("0 %", "0"), 10.0: ("80 %", "14"), 50.0: ("88 %", "88"), 0.0: ("92 %, at 88", "172")}
"""By requested factor: lost ticks of the clock, and ms simulated after the response to a pause."""
PEER_STEPS, PEER_RESET = "560 to 580", "0.5 to 0.9"  # ms


class Caller:
    """A client of the simulator's services."""

    def __init__(self, node: Node) -> None:
        self._node, self._executor = node, SingleThreadedExecutor()
        self._executor.add_node(node)
        self._clients: dict[str, Any] = {}

    def call(self, kind: Any, name: str, request: Any, timeout: float = TIMEOUT) -> Any:
        """Call a service and return the response.

        Raises:
            TimeoutError: The service does not respond.
        """
        client = self._clients.get(name)
        if client is None:
            client = self._clients[name] = self._node.create_client(kind, f"crazyflow/{name}")
            if not client.wait_for_service(TIMEOUT):
                raise TimeoutError(f"no service {name} within {TIMEOUT:g} s")
        future = client.call_async(request)
        self._executor.spin_until_future_complete(future, timeout)
        if not future.done():
            raise TimeoutError(f"no answer of {name} within {timeout:g} s")
        return future.result()

    def pause(self, paused: bool) -> int:
        """Pause or resume, and return the tick."""
        return _tick(self.call(SetBool, "pause", SetBool.Request(data=paused)))

    def trigger(self, name: str) -> int:
        """Step or reset, and return the tick."""
        return _tick(self.call(Trigger, name, Trigger.Request()))

    def ask_for(self, factor: float) -> None:
        """Set the real-time factor."""
        value = ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=factor)
        parameter = Parameter(name="real_time_factor", value=value)
        request = SetParameters.Request(parameters=[parameter])
        (result,) = self.call(SetParameters, "set_parameters", request).results
        if not result.successful:
            raise RuntimeError(result.reason)


def _tick(response: Any) -> int:
    if not response.success:
        raise RuntimeError(response.message)
    return int(re.findall(r"at tick (\d+)", response.message)[-1])


def _after_pause(caller: Caller, subscriber: Subscriber) -> float:
    """Return the simulated time [s] from the tick in a pause's response to the latest clock."""
    tick = caller.pause(True)
    subscriber.spin(SILENCE)
    after = subscriber.latest_clock() - tick / FREQ
    caller.pause(False)
    subscriber.spin(SILENCE)
    return after


def main(seconds: float = 5.0) -> None:
    """Measure each factor for a wall time [s]."""
    with (
        ros(),
        tempfile.TemporaryDirectory() as folder,
        SimulatorProcess(PARAMETERS, Path(folder) / "simulator.log") as simulator,
    ):
        time_until_ready(simulator)
        caller = Caller(rclpy.create_node("caller"))
        subscriber = Subscriber(rclpy.create_node("subscriber"))
        subscriber.subscribe(["clock"])
        subscriber.hover()
        print(
            "| factor asked for | reached | clock lost | mujoco_ros2_control | ms simulated after a"
            " pause | mujoco_ros2_control |\n|---:|---:|---:|---:|---:|---:|"
        )
        for factor, (lost_by_peer, after_by_peer) in PEER.items():
            caller.ask_for(factor)
            subscriber.spin(1.0)
            seen = subscriber.measure(seconds)
            reached = seen["simulated"] / seen["wall"]
            lost = 100 * max(0.0, 1 - seen["received"] / (seen["simulated"] * FREQ))
            after = [_after_pause(caller, subscriber) for _ in range(ROUNDS)]
            print(
                f"| {factor:g} | {reached:.1f} | {lost:.1f} % | {lost_by_peer}"
                f" | {1e3 * min(after):+.0f} to {1e3 * max(after):+.0f}"
                f" | {after_by_peer} |",
                flush=True,
            )
        caller.pause(True)
        times, ticks = {"step": list[float](), "reset": list[float]()}, list[int]()
        for name, durations in times.items():
            caller.trigger(name)
            for _ in range(ROUNDS):
                began = time.perf_counter()
                ticks.append(caller.trigger(name))
                durations.append(time.perf_counter() - began)
        simulator.check()
    exact = set(np.diff(ticks[:ROUNDS]).tolist()) == {STEPS}
    steps, reset = (1e3 * float(np.median(durations)) for durations in times.values())
    print(
        f"\n| ms, median of {ROUNDS} | ours | mujoco_ros2_control |\n|---|---:|---:|\n"
        f"| {STEPS} steps by a service | {steps:.1f} | {PEER_STEPS} |\n"
        f"| reset by a service | {reset:.1f} | {PEER_RESET} |\n\n"
        f"{STEPS / steps * 1e3:.0f} steps/s, {'exact' if exact else 'not exact'}."
    )


if __name__ == "__main__":
    main(*map(float, sys.argv[1:2]))
