"""Journeys of a student, a debugger, a field engineer and a swarm, as they would go."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from command_processes import command
from foxglove_client import FoxgloveClient
from ros_client import FREQ, RosProcess, own_domain

from crazyflow_ros.client import SimulationError, SimulatorClient
from crazyflow_ros.flight_logs import read_flight_log
from crazyflow_ros.policy import follow_policy, load
from crazyflow_ros.sim import Sim
from crazyflow_ros.view.recording import Recording
from crazyflow_ros.view.replay.run import Run
from crazyflow_ros.view.replay.why import explain
from journeys.log import simulator

DOMAIN = own_domain("test_journeys_flights")


@pytest.fixture(autouse=True)
def own_ros_domain(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of scripts in this process."""
    monkeypatch.setenv("ROS_DOMAIN_ID", str(DOMAIN))


def replayed(path: Path) -> None:
    """A recording replays to the bit."""
    done = command(f"replay {path}")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_student_flies_a_policy_in_sim_and_in_the_node_and_reads_its_recording(
    tmp_path: Path,
) -> None:
    package = pytest.importorskip("foundation_policy", reason="is a judge of make test")
    policy = Path(package.__file__).parent / "blob" / "checkpoint.h5"
    network = load(policy, "cf2x_L250")
    sim = Sim(n_worlds=1, n_drones=1, control="state", state_freq=network.freq)
    follow_policy(sim, network)
    goal = np.array([0.3, 0.2, 1.0])
    sim.state_control(np.array([[[*goal, *[0.0] * 10]]]))
    sim.step(5 * sim.freq)
    in_sim = np.asarray(sim.data.states.pos)[0, 0]

    path = tmp_path / "flight.mcap"
    parameters = ("drones:=[cf0]", f"policy:={policy}", f"record:={path}", "real_time_factor:=5.0")
    with simulator(DOMAIN, *parameters), SimulatorClient() as simulation:
        drone = simulation.drone("cf0")
        drone.takeoff(1.0)
        drone.go_to(*goal)
        simulation.sleep(2.0)
        drone.land()
    replayed(path)
    flown = read_flight_log(path).pose.values[:, :3]
    assert np.linalg.norm(flown - in_sim, axis=1).min() < 0.1
    assert abs(flown[:, 2].max() - 1.0) < 0.15 and flown[-1, 2] < 0.1


def test_a_debugger_steps_goes_back_to_a_checkpoint_and_gets_the_same_flight(
    tmp_path: Path,
) -> None:
    path = tmp_path / "flight.mcap"
    parameters = ("drones:=[cf0,cf1]", "start_paused:=true", f"record:={path}")
    parameters += (f"checkpoint_folder:={tmp_path}",)
    with simulator(DOMAIN, *parameters), SimulatorClient() as simulation:
        simulation.look_at_time()
        start = simulation.time_ns
        simulation.step(7)
        assert simulation.time_ns == start + 7 * 1_000_000_000 // FREQ
        for drone in ("cf0", "cf1"):
            simulation.drone(drone).start_takeoff(1.0)
        simulation.step(FREQ)
        simulation.save_checkpoint("half_way.npz")
        ends = []
        for _ in range(2):
            simulation.step(333)
            simulation.graph.call("/cf1/go_to", {"goal": {"x": 0.5, "z": 1.0}})
            simulation.step(1500)
            ends.append((simulation.time_ns, repr(simulation.world.poses())))
            simulation.restore_checkpoint("half_way.npz")
        assert ends[0] == ends[1]
        with pytest.raises(SimulationError, match="time stands still"):
            simulation.drone("cf0").land()
        simulation.resume()
        simulation.drone("cf0").land()
    replayed(path)


def test_a_field_engineer_sees_why_a_drone_crashed_in_the_wind(tmp_path: Path) -> None:
    path = tmp_path / "flight.mcap"
    parameters = ("drones:=[cf0,cf1]", f"record:={path}", "real_time_factor:=5.0")
    crashed = r"cf0: crashed at .*rotors stopped, call cf0/reset"
    warns = (crashed, r"cf0/takeoff is refused: cf0: it is crashed.*: reset it first")
    with (
        simulator(DOMAIN, *parameters, warns=(*warns, r"^cf0: ")) as node,
        SimulatorClient() as simulation,
    ):
        simulation.parameters.set({"wind": [2.0, 1.0, 0.0]})
        for name in ("cf0", "cf1"):
            simulation.drone(name).takeoff(1.0)
        simulation.graph.call("/cf0/set_motor_efficiency", {"motor": 2, "efficiency": 0.0})
        simulation.wait(lambda: re.search(crashed, node.log), "there is no crash", 60.0)
        states = {drone.name: drone.state for drone in simulation.drone_status()}
        with pytest.raises(SimulationError, match="it is crashed"):
            simulation.drone("cf0").takeoff(1.0)
        simulation.wait(lambda: simulation.drone_status()[0].state == "crashed", "no state")
        assert states["cf1"] == "flying"
        simulation.drone("cf0").reset()
        for name in ("cf0", "cf1"):
            flown = simulation.drone(name)
            if name == "cf0":
                flown.takeoff(0.7)  # its motor is repaired
            flown.land()
    replayed(path)
    run = Run(Recording(path))
    run.scan(lambda _: True)
    (crash,) = (event for event in run.events if event.kind == "crashed")
    assert crash.drone == "cf0"
    assert explain(run, crash, "").cause.startswith("Motor 2 (rear left) gives 0% thrust")


def test_a_swarm_flies_trajectories_and_goes_while_foxglove_looks_on() -> None:
    names = [f"cf{i}" for i in range(4)]
    parameters = (f"drones:=[{','.join(names)}]", "max_drones:=8", "real_time_factor:=4.0")
    server = [sys.executable, "-m", "crazyflow_ros.view.foxglove", "--ros-args", "-p", "port:=0"]

    async def show(url: str, simulation: SimulatorClient) -> None:
        async with FoxgloveClient(url) as foxglove:
            for topic in ("/crazyflow/odometry", "/tf", "/crazyflow/scene"):
                await foxglove.bridge.subscribe(await offered(foxglove, topic))
            await asyncio.to_thread(perform, simulation, names)
            seen = foxglove.messages["/crazyflow/odometry"]
            await foxglove.until(lambda: seen[-1][1].joint_names == ["cf0"], "the last drone")
            assert {len(message.joint_names) for _, message in seen} >= {8, 4, 1}

    with simulator(DOMAIN, *parameters), RosProcess(server, DOMAIN) as foxglove:
        url = re.search(r"ready: (ws://\S+)", foxglove.wait_for("ready: ").log)
        assert url is not None
        with SimulatorClient() as simulation:
            asyncio.run(asyncio.wait_for(show(url[1], simulation), 300))
        assert foxglove.end()[0] == 0 and "ERROR" not in foxglove.log


async def offered(foxglove: FoxgloveClient, topic: str) -> str:
    """The topic, once there is a channel of it."""
    await foxglove.until(
        lambda: topic in {channel["topic"] for channel in foxglove.bridge.channels.values()}, topic
    )
    return topic


def perform(simulation: SimulatorClient, names: list[str]) -> None:
    """Guests come, all fly the same figure side by side, and go, first the guests."""
    guests = [simulation.world.spawn(f"guest{i}", 2.0, float(i)) for i in range(4)]
    everyone = [*names, *guests]
    rise = {"drones": everyone, "height": 0.8, "duration": 2.0}
    assert simulation.graph.call("crazyflow/drones/takeoff", rise).success
    simulation.sleep(3.0)
    # There and back again, at rest at both ends: 0.2 t^2 (2 - t)^2.
    piece = {"poly_x": [0.0, 0.0, 0.8, -0.8, 0.2, 0.0, 0.0, 0.0], "duration": {"sec": 2}}
    piece |= {name: [0.0] * 8 for name in ("poly_y", "poly_z", "poly_yaw")}
    for drone in everyone:
        upload = {"trajectory_id": 1, "pieces": [piece]}
        simulation.graph.call(f"/{drone}/upload_trajectory", upload)
    start = {"trajectory_id": 1, "timescale": 1.0, "relative": True}
    simulation.graph.call("/all/start_trajectory", start)
    simulation.sleep(3.0)
    places = simulation.world.poses()
    assert all(abs(places[drone].position.z - 0.8) < 0.1 for drone in everyone)
    assert simulation.graph.call("crazyflow/drones/delete", {"drones": guests}).success
    assert simulation.graph.call("crazyflow/drones/land", rise | {"drones": names, "height": 0.0})
    simulation.sleep(4.0)
    for drone in names[1:]:
        simulation.world.remove(drone)
    simulation.sleep(1.0)
