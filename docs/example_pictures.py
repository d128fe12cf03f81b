"""Draws the pictures of examples.md: python -m docs.example_pictures [NUMBER...], with matplotlib.

Without numbers it draws all of them. It trains a policy for the race, which takes a minute, and
runs the simulator for what flies over ROS.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from geometry_msgs.msg import PointStamped
from matplotlib.axes import Axes
from nav_msgs.msg import Odometry
from PIL import Image
from sensor_msgs.msg import Range
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import Trigger

from crazyflow_ros.client import SimulatorClient
from crazyflow_ros.client.figure_eight import SHORTEST, plan_flight
from crazyflow_ros.doors import DoorContext
from crazyflow_ros.envs import Environment, Race
from crazyflow_ros.flight import Pose
from crazyflow_ros.learn import READY
from crazyflow_ros.policy import load
from crazyflow_ros.runtime import PhysicsThread, SimulationConfig
from crazyflow_ros.sim import Sim
from docs.figures import STYLE

ROOT = Path(__file__).parents[1]
EXAMPLES, PICTURES = ROOT / "examples", ROOT / "docs" / "examples"
SIZE, DPI, QUALITY = (4.2, 2.6), 100, 80  # inches
PIXELS = (420, 260)
DRONES = ("cf0", "cf1", "cf2", "cf3")
HEIGHTS = (1.0, 1.4, 0.8, 1.7)  # m
RACE_SECONDS, EXCITED_SECONDS = 20.0, 15.0
TRAINING = 900.0  # s, at most
PACKAGES = ("09_service", "10_topic", "13_door", "20_physics")


def force(axes: Axes) -> None:
    """Heights of the drones in the jet and beside it."""
    sim = import_module("01_force").make_sim()
    places = sim.data.states.pos[0, :, 0].tolist()
    heights = []
    for _ in range(60):
        heights.append(np.array(sim.data.states.pos[0, :, 2]))
        sim.step(5)
    labels = [f"{place:.1f} m beside the fan" for place in places]
    axes.plot(np.arange(60) * 5 / sim.freq, heights, label=labels)
    axes.set(xlabel="time [s]", ylabel="height [m]")


def pipeline_stage(axes: Axes) -> None:
    """Speed of a rotor that wears out."""
    sim = import_module("02_pipeline_stage").make_sim()
    sim.rotor_vel_control(np.full((1, 1, 4), 15_000.0))
    speeds = []
    for _ in range(100):
        sim.step(sim.freq // 20)
        speeds.append(float(sim.data.states.rotor_vel[0, 0, 0]))
    axes.plot(np.arange(1, 101) / 20, speeds, label="rotor")
    axes.axhline(15_000, color="gray", linestyle="--", label="command")
    axes.set(xlabel="time [s]", ylabel="speed [RPM]", ylim=(0, None))


def dynamics_model(axes: Axes) -> None:
    """Speeds of drones that fall without and with the drag."""
    example = import_module("03_dynamics_model")
    for drag in (0.0, 0.01):
        sim = example.make_sim(drag, control="rotor_vel")
        above = sim.data.states.pos + np.array([0.0, 0.0, 100.0])
        sim.data = sim.data.replace(states=sim.data.states.replace(pos=above))
        speeds = []
        for _ in range(100):
            sim.step(sim.freq // 50)
            speeds.append(float(np.linalg.norm(sim.data.states.vel[0, 0])))
        axes.plot(np.arange(1, 101) / 50, speeds, label=f"{drag:g} N/(m/s)²")
    axes.set(xlabel="time [s]", ylabel="speed [m/s]")


def environment(axes: Axes) -> None:
    """Heights of the drones of 16 worlds."""
    example = import_module("04_environment")
    env = example.QuadrotorVectorEnv(num_envs=16, task=example.HoverLow())
    obs, _ = env.reset(seed=0)
    heights = [-obs[:, 2]]
    for _ in range(150):
        obs, *_ = env.step(example.policy(obs).clip(-1, 1))
        heights.append(-obs[:, 2])
    axes.plot(np.arange(151) / 50, heights, color="C0", linewidth=0.8)
    axes.set(xlabel="time [s]", ylabel="height [m]")


def nmpc(axes: Axes) -> None:
    """The figure-eight and the flight."""
    example = import_module("05_nmpc")
    parameters = ["control:=attitude", "real_time_factor:=0.0"]
    with simulator(parameters), SimulatorClient(stepping=True) as simulation:
        path = plan_flight(simulation.drone("cf0").position, SHORTEST)
        flown = track(simulation)
        example.fly(simulation, example.Nmpc("cf2x_L250"), "cf0", path)
    wanted = path(np.linspace(0, path.duration, 500)).pos
    axes.plot(*wanted[:, :2].T, color="gray", linestyle="--", label="path")
    axes.plot(*np.array(flown)[:, 1:3].T, label="flight")
    axes.set(xlabel="x [m]", ylabel="y [m]", aspect="equal")


def excite(axes: Axes) -> None:
    """Commands of the flight."""
    example = import_module("06_excite")
    parameters = ["control:=attitude", "real_time_factor:=0.0"]
    with simulator(parameters), SimulatorClient(stepping=True) as simulation:
        commands: list[np.ndarray] = []
        simulation.node.create_subscription(
            Float64MultiArray, "cf0/command", lambda m: commands.append(np.array(m.data)), 100
        )
        example.fly(simulation, "cf0", "cf2x_L250", EXCITED_SECONDS)
    degrees = np.rad2deg(np.array(commands)[:, :3])
    axes.plot(np.arange(len(degrees)) / example.RATE, degrees, label=["roll", "pitch", "yaw"])
    axes.set(xlabel="time [s]", ylabel="command [°]")


def fly_task(axes: Axes) -> None:
    """A race from above, and its gates."""
    example = import_module("07_fly_task")
    task = READY["race"].task()
    with TemporaryDirectory() as folder:
        policy = Path(folder) / "race.policy"
        command = [sys.executable, "-m", "crazyflow_ros.learn", "race", "--out", str(policy)]
        subprocess.run(command, check=True, timeout=TRAINING)
        parameters = [f"policy:={policy}", "scene:=race_track"]
        parameters.append("initial_poses:=[0.0, -3.0, 0.0, 0.0]")
        with simulator(parameters), SimulatorClient(stepping=True) as simulation:
            flown, goals = track(simulation), example.Goals(task)
            example.fly(simulation, "cf0", goals, RACE_SECONDS)
    axes.plot(*np.array(flown)[:, 1:3].T, label=f"{RACE_SECONDS:g} s of flight")
    axes.plot(*task.gates.centre[:, :2].T, "s", color="C1", label="gates")
    axes.set(xlabel="x [m]", ylabel="y [m]", aspect="equal")


def count_flying(axes: Axes) -> None:
    """Answers of the service while drones take off one after the other."""
    times, counts = [], []

    def look(simulation: SimulatorClient) -> None:
        times.append(simulation.time)
        answer = simulation.call(Trigger, "crazyflow/count_flying")
        counts.append(int(answer.message.partition(" ")[0]))

    take_off_in_turn(look)
    axes.step(times, counts, where="post")
    axes.set(xlabel="time [s]", ylabel="drones that fly", yticks=range(len(DRONES) + 1))


def highest(axes: Axes) -> None:
    """The topic, and the heights of all drones."""
    points: list[tuple[float, float]] = []
    tracks: list[list[np.ndarray]] = []

    def look(simulation: SimulatorClient) -> None:
        if tracks:
            return
        tracks.extend(track(simulation, name) for name in DRONES)
        simulation.node.create_subscription(
            PointStamped,
            "crazyflow/highest",
            lambda m: points.append((seconds(m.header.stamp), m.point.z)),
            100,
        )

    take_off_in_turn(look)
    for flown in tracks:
        time, _, _, z = np.array(flown).T
        axes.plot(time, z, color="C0", linewidth=0.8)
    axes.plot(*np.array(points).T, ".", markersize=3, color="C1", label="~/highest")
    axes.set(xlabel="time [s]", ylabel="height [m]")


def anchor_sensor(axes: Axes) -> None:
    """The measured distance of a drone that rises, and the true one."""
    ranges: list[tuple[float, float]] = []
    with TemporaryDirectory() as folder:
        file = Path(folder) / "sensors.yaml"
        file.write_text(
            "all:\n  uwb: {type: anchor_sensor.ANCHOR, rate: 50, anchor: [0, 3, 4],"
            " noise: {std: 0.1}}\n"
        )
        parameters = ["start_paused:=true", f"sensors:={file}"]
        with simulator(parameters), SimulatorClient(stepping=True) as simulation:
            flown = track(simulation)
            simulation.node.create_subscription(
                Range,
                "cf0/uwb",
                lambda m: ranges.append((seconds(m.header.stamp), m.range)),
                100,
            )
            drone = simulation.drone("cf0")
            drone.takeoff(1.0)
            drone.go_to(0.0, 2.0, 2.0)
            drone.land()
    time, *pos = np.array(flown).T
    axes.plot(*np.array(ranges).T, ".", markersize=2, color="C1", label="measured")
    axes.plot(time, np.linalg.norm(np.transpose(pos) - [0, 3, 4], axis=1), label="true")
    axes.set(xlabel="time [s]", ylabel="distance [m]")


def door(axes: Axes) -> None:
    """Heights of two drones that autopilots fly in processes of their own."""
    heights: list[tuple[float, ...]] = []
    module, names = import_module("udp_door"), ("cf0", "cf1")
    config = SimulationConfig(real_time_factor=0.0, start_paused=True)
    context = DoorContext.of(config, names, logging.getLogger("door"))
    physics = PhysicsThread(config, names, module.UdpAutopilot().open(context))
    physics.every(50, lambda now: heights.append((now.time_ns * 1e-9, *now.pos[:, 2])), "heights")
    physics.start()
    program = EXAMPLES / "13_door" / "udp_pilot.py"
    pilots = [
        subprocess.Popen([sys.executable, program, str(i), z]) for i, z in ((0, "0.5"), (1, "0.8"))
    ]
    physics.step(3000).result(60.0)
    physics.stop()
    for pilot in pilots:
        pilot.kill()
    time, *flown = np.array(heights).T
    axes.plot(time, np.transpose(flown), label=names)
    axes.set(xlabel="time [s]", ylabel="height [m]")


def race_by_depth(axes: Axes) -> None:
    """What a drone sees 2 m before a gate."""
    env = Environment(
        1, Race(), eye=load(next(EXAMPLES.glob("*/race_by_depth.policy"))).observation.eye
    )
    state, place = env.sim.data, np.array([[[2.0, -3.2, 1.1]]])
    assert env.eyes is not None
    depth = env.eyes(state.replace(states=state.states.replace(pos=place.astype(np.float32))))
    picture = axes.imshow(depth[0, 0, ..., 0], cmap="viridis_r")
    axes.figure.colorbar(picture, label="depth [m]")
    axes.set(xticks=[], yticks=[])
    axes.grid(visible=False)


def recovery_by_depth(axes: Axes) -> None:
    """Distances of thrown drones from the place where they are to hover."""
    flown = import_module("17_recovery_by_depth.recovery").throws(24, 5.0)
    axes.plot(flown.time, flown.error, color="C0", alpha=0.4, linewidth=0.8)
    axes.set(xlabel="time [s]", ylabel="distance [m]", ylim=(0, None))


def magnet(axes: Axes) -> None:
    """Heights of a drone and of a box that it carries and drops."""
    example, heights = import_module("23_magnet"), list[tuple[float, float]]()
    with simulator(["start_paused:=true"]), SimulatorClient(stepping=True) as simulation:
        flown, step = track(simulation), simulation.step

        def watched(ticks: int) -> None:
            step(ticks)
            if "box" in (poses := simulation.world.poses()):
                heights.append((simulation.time, poses["box"].position.z))

        simulation.step = watched  # type: ignore[method-assign]
        example.carry(simulation)
    time, _, _, z = np.array(flown).T
    axes.plot(time, z, label="drone")
    axes.plot(*np.array(heights).T, label="box")
    axes.set(xlabel="time [s]", ylabel="height [m]")


def physics(axes: Axes) -> None:
    """How far the breeze pushes a drone aside, with its controller and with Mellinger's."""
    for controller in ("spring", "mellinger"):
        parameters = [f"controller:={controller}", "forces:=[breeze]", "start_paused:=true"]
        with simulator(parameters), SimulatorClient(stepping=True) as simulation:
            flown = track(simulation)
            while not flown:
                simulation.sleep(0.1)
            simulation.drone("cf0").start_takeoff(1.0)
            simulation.sleep(12.0)
            time, x, _, _ = np.array(flown).T
        axes.plot(time, 100 * x, label=f"controller {controller}")
    axes.set(xlabel="time [s]", ylabel="aside [cm]")


def swap_places(axes: Axes) -> None:
    """Paths of eight drones that swap places, from above."""
    swap = import_module("28_swap_places.swap")
    for path in swap.paths().swapaxes(0, 1):
        axes.plot(path[:, 0], path[:, 1], linewidth=1.2)
        axes.plot(*path[0, :2], "o", color="0.3", markersize=3)
    axes.set(xlabel="x [m]", ylabel="y [m]", aspect="equal")


def slung_load(axes: Axes) -> None:
    """Distances of carried loads from their goals."""
    flown = import_module("21_slung_load.slung_load").carried(24)
    axes.plot(flown.time, flown.error, color="C0", alpha=0.4, linewidth=0.8)
    axes.set(xlabel="time [s]", ylabel="load to goal [m]", xlim=(0, 4), ylim=(0, None))


PLOTS: dict[str, Callable[[Axes], None]] = {
    "01_force": force,
    "02_pipeline_stage": pipeline_stage,
    "03_dynamics_model": dynamics_model,
    "04_environment": environment,
    "05_nmpc": nmpc,
    "06_excite": excite,
    "07_fly_task": fly_task,
    "09_service": count_flying,
    "10_topic": highest,
    "11_sensor": anchor_sensor,
    "13_door": door,
    "16_race_by_depth": race_by_depth,
    "17_recovery_by_depth": recovery_by_depth,
    "20_physics": physics,
    "21_slung_load": slung_load,
    "28_swap_places": swap_places,
    "23_magnet": magnet,
}


def copy(page_picture: str) -> Image.Image:
    """A picture of another page, which `draw` makes smaller."""
    return Image.open(ROOT / "docs" / page_picture)


def own_drone(name: str, distance: float) -> Image.Image:
    """A drone, drawn by MuJoCo."""
    sim = Sim(drone=EXAMPLES / name)
    width, height = (3 * pixels for pixels in PIXELS)
    view = {"distance": distance, "azimuth": 130.0, "elevation": -25.0, "lookat": (0.0, 0.0, 0.02)}
    pixels = sim.render("rgb_array", cam_config=view, width=width, height=height)
    return Image.fromarray(np.asarray(pixels))


def among_bodies(
    scene: str, goals: dict[str, tuple[Sequence[float], float]], look: dict[str, Any]
) -> Image.Image:
    """Drones in a world that moves, drawn by MuJoCo.

    Args:
        scene: Name of the world.
        goals: Where each drone flies [m], and for how long before the next one is told [s].
        look: Attributes of the camera.
    """
    import mujoco  # after crazyflow_ros, which sets MUJOCO_GL

    names = tuple(sorted(goals))
    config = SimulationConfig(real_time_factor=0.0, start_paused=True, scene=scene)
    physics = PhysicsThread(config, names)
    physics.start()
    for name, (goal, duration) in goals.items():
        physics.command(name, Pose(tuple(goal), 0.0))
        physics.step(round(duration * physics.freq)).result(300.0)
    model, data = physics.mirror.copy_physics_model(), physics.mirror.copy_physics_data()
    physics.stop()
    mujoco.mj_forward(model, data)  # for tendons
    camera = mujoco.MjvCamera()
    for name, value in look.items():
        setattr(camera, name, value)
    width, height = (3 * pixels for pixels in PIXELS)
    with mujoco.Renderer(model, height, width) as renderer:
        renderer.update_scene(data, camera)
        return Image.fromarray(renderer.render())


BAR = {"cf0": ((-0.5, 0.3, 0.9), 0.2), "cf1": ((0.5, 0.3, 0.9), 2.2)}
DRAWN = {
    "08_rerun_layout": partial(copy, "rerun.jpg"),
    "12_drone": partial(own_drone, "12_drone", 0.22),
    "14_real_drone": partial(copy, "reality/star.webp"),
    "15_racer": partial(own_drone, "15_racer", 0.62),
    "18_figure_eights": partial(copy, "flight.png"),
    "19_room": partial(copy, "room.jpg"),
    "22_payloads": partial(
        among_bodies,
        "carried_bar",
        BAR,
        {"lookat": (0.0, 0.1, 0.65), "distance": 1.25, "azimuth": 65.0, "elevation": -12.0},
    ),
    "24_moving_pad": partial(
        among_bodies,
        "moving_pad",
        {"cf0": ((2.9, 0.0, 0.7), 4.6)},
        {"lookat": (2.9, 0.0, 0.45), "distance": 1.7, "azimuth": 60.0, "elevation": -20.0},
    ),
    "25_door": partial(
        among_bodies,
        "door",
        {"cf0": ((2.5, -0.2, 0.7), 1.75)},
        {"lookat": (0.9, -0.1, 0.65), "distance": 1.6, "azimuth": 30.0, "elevation": -15.0},
    ),
    "26_robots": partial(
        among_bodies,
        "robots",
        {"cf0": ((0.1, -0.9, 0.35), 3.0)},
        {"lookat": (0.4, -0.5, 0.3), "distance": 1.9, "azimuth": 70.0, "elevation": -18.0},
    ),
    "27_gates": partial(
        among_bodies,
        "gates_to_hit",
        {"cf0": ((2.6, 0.0, 0.95), 3.4)},
        {"lookat": (2.75, 0.0, 0.8), "distance": 1.5, "azimuth": 40.0, "elevation": -12.0},
    ),
}


def seconds(stamp: Any) -> float:
    """A time of a message [s]."""
    return float(stamp.sec + stamp.nanosec * 1e-9)


@contextmanager
def simulator(parameters: list[str]) -> Iterator[None]:
    """A simulator in a process of its own, where the examples that are packages are installed."""
    words = [word for parameter in parameters for word in ("-p", parameter)]
    command = [sys.executable, "-m", "crazyflow_ros", "--ros-args", *words]
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target"]
    with TemporaryDirectory() as folder:
        subprocess.run([*install, folder, *(EXAMPLES / name for name in PACKAGES)], check=True)
        path = f"{ROOT}:{EXAMPLES / '11_sensor'}:{folder}"
        with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}) as process:
            try:
                yield
            finally:
                process.terminate()


def track(simulation: SimulatorClient, name: str = "cf0") -> list[np.ndarray]:
    """Time [s] and position [m] of a drone, (4,), from now on; the list grows meanwhile."""
    flown: list[np.ndarray] = []

    def note(message: Odometry) -> None:
        place = message.pose.pose.position
        flown.append(np.array([seconds(message.header.stamp), place.x, place.y, place.z]))

    simulation.node.create_subscription(Odometry, f"{name}/odom", note, 100)
    return flown


def take_off_in_turn(look: Callable[[SimulatorClient], None]) -> None:
    """Let drones take off and land one after the other, and look five times a second."""
    parameters = [f"drones:=[{','.join(DRONES)}]", "start_paused:=true"]
    with simulator(parameters), SimulatorClient(stepping=True) as simulation:
        drones = [simulation.drone(name) for name in DRONES]
        orders = [partial(drone.start_takeoff, z) for drone, z in zip(drones, HEIGHTS)]
        orders += [drone.start_landing for drone in drones]
        for order, duration in zip(orders, [1.0] * 7 + [4.0]):
            order()
            for _ in range(round(duration * 5)):
                look(simulation)
                simulation.sleep(0.2)


def draw(name: str) -> None:
    """Draw the picture of an example."""
    file = PICTURES / f"{name}.webp"
    if name in DRAWN:
        picture = DRAWN[name]().convert("RGB")
        picture.thumbnail(PIXELS)
    else:
        figure, axes = plt.subplots(figsize=SIZE, dpi=DPI, layout="constrained")
        PLOTS[name](axes)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize=8)
        figure.canvas.draw()
        picture = Image.fromarray(np.asarray(figure.canvas.buffer_rgba())).convert("RGB")
        plt.close(figure)
    picture.save(file, quality=QUALITY, method=6)


def main() -> None:
    """Draw the pictures."""
    os.environ.setdefault("ROS_DOMAIN_ID", "98")  # without the simulators of others
    sys.path[:0] = [str(EXAMPLES), str(EXAMPLES / "13_door")]
    plt.switch_backend("Agg")
    plt.rcParams.update({key: value for key, value in STYLE.items() if key != "savefig.bbox"})
    PICTURES.mkdir(exist_ok=True)
    for name in sorted([*PLOTS, *DRAWN]):
        if not sys.argv[1:] or name[:2] in sys.argv[1:]:
            draw(name)


if __name__ == "__main__":
    main()
