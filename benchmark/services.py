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
from std_srvs.srv import SetBool, Trigger

from benchmark.processes import ros
from benchmark.subscriber import Subscriber
from crazyflow_ros.client import SimulatorClient
from crazyflow_ros.client.connection import checked
from crazyflow_ros.client.simulator_process import SimulatorProcess

FREQ = 500  # Hz
STEPS = 500
ROUNDS = 10
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


def _tick(simulation: SimulatorClient, kind: Any, name: str, **request: Any) -> int:
    """Call a service, and return the tick in its response."""
    response = checked(simulation.call(kind, f"crazyflow/{name}", **request))
    return int(re.findall(r"at tick (\d+)", response.message)[-1])


def _after_pause(simulation: SimulatorClient, subscriber: Subscriber) -> float:
    """Return the simulated time [s] from the tick in a pause's response to the latest clock."""
    tick = _tick(simulation, SetBool, "pause", data=True)
    subscriber.spin(SILENCE)
    after = subscriber.latest_clock() - tick / FREQ
    simulation.resume()
    subscriber.spin(SILENCE)
    return after


def main(seconds: float = 5.0) -> None:
    """Measure each factor for a wall time [s]."""
    with (
        ros(),
        tempfile.TemporaryDirectory() as folder,
        SimulatorProcess(PARAMETERS, Path(folder) / "simulator.log") as simulator,
        SimulatorClient(check=simulator.check) as simulation,
    ):
        subscriber = Subscriber(rclpy.create_node("subscriber"))
        subscriber.subscribe(["clock"])
        subscriber.hover()
        print(
            "| factor asked for | reached | clock lost | mujoco_ros2_control | ms simulated after a"
            " pause | mujoco_ros2_control |\n|---:|---:|---:|---:|---:|---:|"
        )
        for factor, (lost_by_peer, after_by_peer) in PEER.items():
            simulation.parameters.set({"real_time_factor": factor})
            subscriber.spin(1.0)
            seen = subscriber.measure(seconds)
            reached = seen["simulated"] / seen["wall"]
            lost = 100 * max(0.0, 1 - seen["received"] / (seen["simulated"] * FREQ))
            after = [_after_pause(simulation, subscriber) for _ in range(ROUNDS)]
            print(
                f"| {factor:g} | {reached:.1f} | {lost:.1f} % | {lost_by_peer}"
                f" | {1e3 * min(after):+.0f} to {1e3 * max(after):+.0f}"
                f" | {after_by_peer} |",
                flush=True,
            )
        simulation.pause()
        times, ticks = {"step": list[float](), "reset": list[float]()}, list[int]()
        for name, durations in times.items():
            _tick(simulation, Trigger, name)
            for _ in range(ROUNDS):
                began = time.perf_counter()
                ticks.append(_tick(simulation, Trigger, name))
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
