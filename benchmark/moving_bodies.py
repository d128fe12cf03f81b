"""Speed of worlds in which boxes move: the physics thread alone, and the node with its topics.

    python -m benchmark.moving_bodies [seconds]

Prints a Markdown table. Drones hover, boxes of 100 g lie beside them on the floor, at 500 Hz, as
fast as possible. The physics thread steps for a number of seconds of simulated time, five times in
turns for all rows; the table has the medians by wall and by processor time. `asleep` lets MuJoCo
leave out what is at rest. The node publishes to another process as in `benchmark.node`. MuJoCo
alone steps the boxes without drones.
"""

from __future__ import annotations

import math
import statistics
import sys
import tempfile
import time
from pathlib import Path

import mujoco

from benchmark.node import Case, time_until_ready
from benchmark.processes import ros
from crazyflow_ros.client.simulator_process import SimulatorProcess
from crazyflow_ros.flight import Pose
from crazyflow_ros.runtime import PhysicsThread, SimulationConfig

CASES = (
    *((1, 0, False), (1, 20, False), (1, 20, True)),
    *((10, 0, False), (10, 100, False), (10, 100, True)),
)
"""Drones, boxes, and whether they sleep."""
ROUNDS, LISTENING = 5, 10.0  # s of wall time
BOX = '<freejoint/><geom type="box" size="0.05 0.05 0.05" mass="0.1"/>'
HEAD = (
    "| drones | boxes | real-time factor | by processor time | of the node | MuJoCo alone |\n"
    "|---:|---:|---:|---:|---:|---:|"
)


def world(boxes: int, *, asleep: bool) -> str:
    """Return a world with boxes, beside the drones of `Case`."""
    side = math.ceil(math.sqrt(boxes))
    content = "".join(
        f'<body pos="{0.3 * (i % side):.1f} {-1 - 0.3 * (i // side):.1f} 0.05">{BOX}</body>'
        for i in range(boxes)
    )
    option = '<option><flag sleep="enable"/></option>' if asleep else ""
    floor = '<geom type="plane" size="0 0 1"/>'
    return f"<mujoco>{option}<worldbody>{floor}{content}</worldbody></mujoco>"


def hovering(drones: int, scene: Path) -> PhysicsThread:
    """Return a physics thread whose drones hover."""
    names = [f"cf{i}" for i in range(drones)]
    config = SimulationConfig(
        real_time_factor=0.0, start_paused=True, scene=str(scene), downwash=True
    )
    physics = PhysicsThread(config, names)
    physics.start()
    for i, name in enumerate(names):
        physics.command(name, Pose((i % 10, i // 10, 1.0), 0.0))
    physics.step(5 * physics.freq).result()
    return physics


def factor_alone(scene: Path, freq: int, seconds: float) -> float:
    """Return the real-time factor of MuJoCo without drones, by processor time."""
    model = mujoco.MjModel.from_xml_path(str(scene))
    model.opt.timestep = 1 / freq
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, 5 * freq)
    began = time.process_time()
    mujoco.mj_step(model, data, round(seconds * freq))
    return seconds / (time.process_time() - began)


def factor_of_node(drones: int, scene: Path, folder: Path) -> float:
    """Return the real-time factor of the node with a subscriber to the topics of each drone."""
    case = Case(drones, "each")
    parameters = case.parameters(folder) | {"scene": str(scene)}
    with SimulatorProcess(parameters, folder / "simulator.log") as simulator:
        time_until_ready(simulator)
        factor = case.count(LISTENING, folder / "messages").factor
        simulator.check()
    return factor


def main(seconds: float = 10.0) -> None:
    """Measure each row for a simulated time [s]."""
    with tempfile.TemporaryDirectory() as name, ros():
        scenes: dict[tuple[int, int, bool], Path] = {}
        for case in CASES:
            scenes[case] = Path(name) / f"{len(scenes)}.xml"
            scenes[case].write_text(world(case[1], asleep=case[2]))
        running = {case: hovering(case[0], scene) for case, scene in scenes.items()}
        taken: dict[tuple[int, int, bool], list[tuple[float, float]]] = {x: [] for x in CASES}
        for _ in range(ROUNDS):
            for case, physics in running.items():
                wall, used = time.perf_counter(), time.process_time()
                physics.step(round(seconds * physics.freq)).result()
                used = time.process_time() - used
                taken[case].append((time.perf_counter() - wall, used))
        freq = next(iter(running.values())).freq
        for physics in running.values():
            physics.stop()
        print(HEAD, flush=True)
        for (drones, boxes, asleep), scene in scenes.items():
            both = zip(*taken[drones, boxes, asleep])
            wall, used = (seconds / statistics.median(times) for times in both)
            node = factor_of_node(drones, scene, Path(name))
            alone = f"{factor_alone(scene, freq, seconds):.1f}" if boxes else ""
            what = f"{boxes}, asleep" if asleep else f"{boxes}"
            print(
                f"| {drones} | {what} | {wall:.1f} | {used:.1f} | {node:.1f} | {alone} |",
                flush=True,
            )


if __name__ == "__main__":
    main(*map(float, sys.argv[1:2]))
