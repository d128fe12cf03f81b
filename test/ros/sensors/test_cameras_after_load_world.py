"""Cameras of the node go on in each world that is loaded, and at the next start in another one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from images import can_draw
from ros_client import Client, SimulatorProcess, own_domain
from sensor_msgs.msg import Image
from simulation_interfaces.msg import Resource, Result, SimulationState
from simulation_interfaces.srv import LoadWorld, SetSimulationState, UnloadWorld

DOMAIN = own_domain("test_ros_cameras_after_load_world")
COMPILE_TIMEOUT = 300.0  # s; a machine may be busy
KINDS = ("depth", "segmentation")
RENDERERS = ("rays", "opengl") if can_draw() else ("rays",)
EYE = "{{type: camera, rate: 50, width: 32, height: 24, renderer: {0}, data_types: [{1}]}}"


def world(wall: float, floor: str = "", above: str = "") -> str:
    """A world with a wall before the drone, some way off [m]."""
    return f"""
    <mujoco>
      <visual><rgba haze="{above or "1 1 1 1"}"/></visual>
      <asset>
        {'<texture type="skybox" builtin="flat" width="8" height="8"/>' if above else ""}
        <material name="floor" {floor}/>
      </asset>
      <worldbody>
        <geom type="plane" size="0 0 1" material="floor"/>
        <geom type="box" size=".1 5 5" pos="{wall + 0.1} 0 0"/>
      </worldbody>
    </mujoco>"""


WORLDS = [(2.0, "", ""), (3.0, 'reflectance="0.35"', ""), (4.0, "", "0.2 0.9 0.4 1")]
LAST = (5.0, 'reflectance="0.8"', "0.9 0.4 0.2 1")


def check(client: Client, wall: float) -> None:
    """All pictures come, and show the wall."""
    topics = [
        (f"cf0/{renderer}_{kind}/{kind}/image_raw", kind)
        for renderer in RENDERERS
        for kind in KINDS
    ]
    pictures: dict[str, list[Any]] = {topic: client.collect(Image, topic) for topic, _ in topics}
    for topic, kind in topics:
        client.until(lambda t=topic: pictures[t], topic, COMPILE_TIMEOUT)
        if kind == "depth":  # pictures of the world before may be on their way
            seen = pictures[topic]
            client.until(lambda s=seen: abs(ahead(s[-1]) - wall) < 0.2, f"the wall on {topic}")


def ahead(image: Image) -> float:
    """Depth in the middle of a picture [m]."""
    depth = np.frombuffer(image.data, np.float32).reshape(image.height, image.width)
    return float(depth[6, 16])


def test_pictures_come_in_each_world_and_after_the_next_start(tmp_path: Path) -> None:
    eyes = "\n".join(
        f"  {renderer}_{kind}: {EYE.format(renderer, kind)}"
        for renderer in RENDERERS
        for kind in KINDS
    )
    (tmp_path / "sensors.yaml").write_text(f"all:\n{eyes}\n")
    for start, worlds in enumerate((WORLDS, [LAST, WORLDS[0]])):
        first, *later = worlds
        (tmp_path / "world.xml").write_text(world(*first))
        files = [f"scene:={tmp_path / 'world.xml'}", f"sensors:={tmp_path / 'sensors.yaml'}"]
        arguments = ["drones:=[cf0]", *files]
        # The second start finds what the first one has compiled.
        with SimulatorProcess(DOMAIN, arguments, ready_timeout=COMPILE_TIMEOUT) as simulator:
            client = Client(DOMAIN)
            check(client, first[0])
            for number, one in enumerate(later):
                if number:
                    unloaded = client.call(UnloadWorld, "crazyflow/unload_world").result
                    assert unloaded.result == Result.RESULT_OK, unloaded.error_message
                loaded = client.call(
                    LoadWorld, "crazyflow/load_world", COMPILE_TIMEOUT,
                    world_resource=Resource(resource_string=world(*one)),
                ).result  # fmt: skip
                assert loaded.result == Result.RESULT_OK, loaded.error_message
                playing = SimulationState(state=SimulationState.STATE_PLAYING)
                client.call(SetSimulationState, "crazyflow/set_simulation_state", state=playing)
                check(client, one[0])
            client.close()
            assert simulator.end()[0] == 0
            levels = [line.split("]")[0] for line in simulator.log.splitlines()]
            assert not {"[ERROR", "[FATAL"} & {*levels}, simulator.log
            assert start == 0 or "compiling" not in simulator.log
