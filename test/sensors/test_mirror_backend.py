"""Contacts of drones that follow the physics."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from crazyflow_ros.dynamics.components import BodyDerivative, BodyState, split, stack
from crazyflow_ros.dynamics.forces import rest_height
from crazyflow_ros.dynamics.forces.collisions import drone_contact, obstacle_contact
from crazyflow_ros.dynamics.forces.external import DroneContact
from crazyflow_ros.dynamics.forces.floor import floor_contact
from crazyflow_ros.dynamics.obstacles import Obstacles
from crazyflow_ros.dynamics.rigid_body import RigidBody
from crazyflow_ros.scene import MirrorState, build_spec
from crazyflow_ros.scene.frames import quat_from_rpy
from crazyflow_ros.sensors import (
    BuiltinSensor,
    ContactMatch,
    ContactSensorCfg,
    LidarPatternCfg,
    MirrorBackend,
    ObjRef,
    RayCastSensorCfg,
    SensorSet,
    ShapeRecorder,
)

DRONE, FREQ, G = "cf2x_L250", 500, 9.81
NAMES = ("cf0", "cf1", "cf2")
FORCE = floor_contact(DRONE, FREQ)
PARAMS = RigidBody.create(DRONE)
MASS = float(PARAMS.mass[0])


def wrenches(
    now: MirrorState, contacts: tuple[DroneContact, ...] = (FORCE,), params: RigidBody = PARAMS
) -> np.ndarray:
    """What the contacts do to drones in free fall, (M, 6)."""
    fields = (now.pos, now.quat, now.vel, now.ang_vel, now.rotor_vel)
    arrays: list[Any] = [split(jnp.asarray(field, jnp.float32)) for field in fields]
    drones, zero = BodyState(*arrays), jnp.zeros(len(now.pos))
    still = (zero, zero, zero)
    falls = (zero, zero, zero - G)
    free = BodyDerivative(drones.vel, drones.ang_vel, falls, still, (*still, zero))

    @jax.jit
    def of(*args: Any) -> Any:
        each = (contact(*args) for contact in contacts)
        return sum(stack((*w.force, *w.torque)) for w in each)

    return np.asarray(of(drones, free, params))


def state(pos: Any, rpy: Any = (0, 0, 0), vel: Any = (0, 0, 0), turn: Any = (0, 0, 0)) -> Any:
    """Of three drones, their positions one by one, the rest for all."""
    pos = np.array(pos, float)
    each = [np.tile(np.array(part, float), (len(pos), 1)) for part in (vel, turn)]
    zeros, quat = np.zeros((len(pos), 3)), quat_from_rpy(np.array(rpy, float))
    quats, rotors = np.tile(quat, (len(pos), 1)), np.zeros((len(pos), 4))
    return MirrorState(0, pos, quats, *each, zeros, zeros, rotors, rotors)


@pytest.fixture(scope="module")
def drones() -> tuple[MirrorBackend, SensorSet]:
    """Three drones, a wall at x = 2, and sensors of what they touch."""
    spec = build_spec(DRONE, NAMES)
    wall: dict[str, Any] = {"type": mujoco.mjtGeom.mjGEOM_BOX, "size": [0.1, 3, 3]}
    spec.worldbody.add_geom(name="wall", pos=[2.1, 0, 0], **wall)
    of = {name: ContactMatch("subtree", "drone", entity=name) for name in NAMES}
    net: dict[str, Any] = {"reduce": "netforce", "fields": ("found", "force", "torque", "pos")}
    sensors = SensorSet(
        [
            *(ContactSensorCfg(name=name, primary=of[name], **net) for name in NAMES),
            ContactSensorCfg(
                name="feet", primary=of["cf0"], secondary=ContactMatch("geom", "floor"),
                num_slots=5, global_frame=True, track_air_time=True, debug_vis=True,
            ),
            ContactSensorCfg(
                name="others", primary=of["cf1"], secondary=of["cf2"], fields=("found", "normal")
            ),
            RayCastSensorCfg(
                name="ahead", frame=ObjRef("xbody", "drone", "cf0"),
                pattern=LidarPatternCfg(samples=1, azimuth_range=(0, 0)),
            ),
        ]
    )  # fmt: skip
    backend = MirrorBackend(spec.compile(), NAMES)
    for sensor in sensors.values():
        sensor.initialize(backend)
    return backend, sensors


def test_a_drone_at_rest_presses_down_with_its_weight(
    drones: tuple[MirrorBackend, SensorSet],
) -> None:
    backend, sensors = drones
    height = rest_height(DRONE)
    now = state([[0, 0, height], [1, 0, height + 0.01], [0, 1, height]])
    backend.update(now, wrenches(now))
    sensors.update(0.01)
    for name, force, found in (("cf0", -MASS * G, 4), ("cf1", 0.0, 0), ("cf2", -MASS * G, 4)):
        data = sensors[name].data
        np.testing.assert_allclose(data.force, [[[0, 0, force]]], rtol=1e-3, atol=1e-6)
        np.testing.assert_allclose(data.torque, 0.0, atol=1e-6)
        assert data.found[0, 0] == found
    np.testing.assert_allclose(sensors["cf2"].data.pos[0, 0], [0, 1, 0], atol=1e-3)
    feet = sensors["feet"].data
    np.testing.assert_allclose(feet.force[0, :4, 2], -MASS * G / 4, rtol=1e-3)
    np.testing.assert_allclose(feet.current_contact_time, 0.01)
    sensors["feet"].debug_vis(recorder := ShapeRecorder(backend.model))
    assert len(recorder.spheres) == len(recorder.arrows) == 4
    assert all(arrow.end[2] > arrow.start[2] for arrow in recorder.arrows)
    sensors["ahead"].sense()
    np.testing.assert_allclose(sensors["ahead"].data.distances, 2.0)


def test_forces_add_up_to_the_wrench_of_the_physics(
    drones: tuple[MirrorBackend, SensorSet],
) -> None:
    """Tilted, sliding and turning; the torque is about the centre of mass."""
    backend, sensors = drones
    now = state([[0, 0, 0.011], [3, 3, 1], [0, 5, 0.012]], (0.05, 0.03, 0.4), (0.2, 0.1, -0.05),
                (0.3, -0.2, 1))  # fmt: skip
    forces = wrenches(now)
    backend.update(now, forces)
    sensors.update(0.01)
    force, torque = forces[:, :3], forces[:, 3:]
    assert force[0, 2] > 0.1 and np.abs(torque[0]).max() > 1e-3
    for row in (0, 2):
        data = sensors[NAMES[row]].data
        np.testing.assert_allclose(-data.force[0, 0], force[row], rtol=1e-4, atol=1e-5)
        about = -data.torque[0, 0] + np.cross(data.pos[0, 0] - now.pos[row], -data.force[0, 0])
        np.testing.assert_allclose(about, torque[row], rtol=1e-3, atol=1e-5)
    assert not sensors["cf1"].data.force.any()


def test_what_the_physics_does_not_push_is_found_without_a_force(
    drones: tuple[MirrorBackend, SensorSet],
) -> None:
    backend, sensors = drones
    now = state([[1.96, 0, 1], [0, 0, 1], [0.09, 0, 1]])
    backend.update(now, wrenches(now))
    sensors.update(0.01)
    assert sensors["cf0"].data.found[0, 0] > 0  # the wall
    assert sensors["others"].data.found[0, 0] > 0
    np.testing.assert_allclose(sensors["others"].data.normal[0, 0], [1, 0, 0], atol=1e-9)
    assert not sensors["cf0"].data.force.any() and not sensors["cf1"].data.force.any()


def test_mujocos_own_sensors_are_refused(drones: tuple[MirrorBackend, SensorSet]) -> None:
    with pytest.raises(ValueError, match="'gyro:cf0': a MirrorBackend has frames and contacts"):
        BuiltinSensor.from_existing("gyro:cf0").initialize(drones[0])


def test_drones_push_walls_and_each_other(drones: tuple[MirrorBackend, SensorSet]) -> None:
    """With all contact forces of the physics: nothing is lost between two drones."""
    model = drones[0].model
    wall = Obstacles.create(["box"], [[0.1, 3, 3]], [[2.1, 0, 0]])
    forces = (FORCE, obstacle_contact(DRONE, FREQ), drone_contact(DRONE, FREQ))
    backend = MirrorBackend(model, NAMES)
    net: dict[str, Any] = {"reduce": "netforce", "fields": ("found", "force")}
    sensors = [
        ContactSensorCfg(
            name=name, primary=ContactMatch("subtree", "drone", entity=name), **net
        ).build()
        for name in NAMES
    ]
    now = state([[1.96, 0, 1], [0, 0, 1], [0.097, 0, 1]], vel=(0.01, 0, 0))
    backend.update(now, wrenches(now, forces, PARAMS.replace(obstacles=wall)))
    for sensor in sensors:
        sensor.initialize(backend)
    on_wall, on_right, on_left = (sensor.data.force[0, 0] for sensor in sensors)
    assert on_wall[0] > 0.1 and on_right[0] > 0.1
    assert np.linalg.norm(on_wall[1:]) < 0.61 * on_wall[0]  # friction, as it falls along the wall
    np.testing.assert_allclose(on_left, -on_right, atol=1e-4)
