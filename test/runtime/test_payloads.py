"""What drones carry, hold and push, beside closed forms."""

import math

import mujoco
import numpy as np
import pytest
from physics_helpers import load, started

from crazyflow_ros.drones import load_drone
from crazyflow_ros.flight import AttitudeThrust, Pose
from crazyflow_ros.runtime import (
    DroneState,
    InvalidState,
    PhysicsThread,
    SimulationConfig,
    TimedWrench,
)
from crazyflow_ros.scene.frames import world_to_body

T = 300.0  # s, no wait of a test is longer; compiling is among them
G = 9.81
MASS = load_drone("cf2x_L250")["mass"]
LEVEL = (0.0, 0.0, 0.0, 1.0)
FLOOR = '<geom name="floor" type="plane" size="0 0 1"/>'
BOX = (
    '<body name="box" pos="{}"><freejoint/>'
    '<geom type="box" size="0.03 0.03 0.01" mass="0.004"/></body>'
)
THINGS = f"<mujoco><worldbody>{FLOOR}{BOX.format('0 0 0.01')}</worldbody></mujoco>"


@pytest.fixture(scope="module")
def physics():
    """Two drones, first in the world of the bar, which needs both."""
    config = SimulationConfig(
        real_time_factor=0.0, start_paused=True, scene="carried_bar", battery=True
    )
    with started(config, ("cf0", "cf1")) as physics:
        yield physics


def put(physics, name, pos, vel=(0.0, 0.0, 0.0)):
    """Put a drone or a body somewhere, upright."""
    zero = (0.0, 0.0, 0.0)
    state = DroneState(pos=pos, quat=LEVEL, vel=vel, ang_vel=zero)
    if name in physics.snapshot.names:
        physics.state.set_drone_states({name: state}).result(T)
    else:
        physics.state.set_body_state(name, state).result(T)


def data(physics):
    """MuJoCo's state of everything, between two ticks."""
    return physics.simulation.engine.bodies.data


def tensions(physics):
    """Forces of the limits of all cables [N], in the last tick."""
    now = data(physics)
    return now.efc_force[now.efc_type == mujoco.mjtConstraint.mjCNSTR_LIMIT_TENDON]


def fly(physics, name, pos, seconds):
    physics.command(name, Pose(pos, 0.0))
    physics.step(round(seconds * physics.freq)).result(T)


def test_two_drones_share_the_weight_of_a_bar(physics):
    load(physics, "carried_bar")
    physics.command("cf0", Pose((-0.5, 0.0, 1.0), 0.0))
    fly(physics, "cf1", (0.5, 0.0, 1.0), 12.0)
    weight = 0.01 * G
    forces = [tensions(physics)]
    for _ in range(100):
        physics.step(5).result(T)
        forces.append(tensions(physics))
    assert np.mean(forces, axis=0) == pytest.approx([weight / 2] * 2, rel=0.02)
    height = physics.snapshot.pos[:, 2].mean()
    assert data(physics).body("bar").xpos[2] == pytest.approx(height - 0.41, abs=0.005)


def test_a_world_names_the_drones_that_it_needs(physics):
    load(physics, "carried_bar")
    with pytest.raises(
        ValueError, match="'carried_bar' needs the drones cf0, cf1: there is no cf1"
    ):
        physics.world.despawn("cf1").result(T)
    config = SimulationConfig(scene="carried_bar")
    with pytest.raises(ValueError, match="there is no cf0, cf1"):
        PhysicsThread(config, ("a",))


def test_a_slung_load_swings_with_the_period_of_two_bodies(physics):
    """The drone stays level, and its thrust bears both: it gives way to the pull of the cable."""
    load(physics, "slung_load")
    length, mass, angle = 0.4, 0.005, math.radians(5)
    physics.command("cf1", Pose((5.0, 5.0, 1.0), 0.0))
    fly(physics, "cf0", (0.0, 0.0, 3.0), 12.0)
    x, y, z = physics.snapshot.pos[0]
    put(physics, "load", (x + length * math.sin(angle), y, z - length * math.cos(angle)))
    times, swings = [], []
    for tick in range(1500):
        if tick % 50 == 0:
            physics.command("cf0", AttitudeThrust(0.0, 0.0, 0.0, (MASS + mass) * G))
        physics.step(1).result(T)
        times.append(physics.snapshot.time_ns * 1e-9)
        swings.append(data(physics).body("load").xpos[0] - physics.snapshot.pos[0, 0])
    sign = np.signbit(swings)
    (crossings,) = np.nonzero(sign[1:] != sign[:-1])
    at = [
        np.interp(0.0, *zip(*sorted((swings[j], times[j]) for j in (i, i + 1)))) for i in crossings
    ]
    period = 2 * np.diff(at).mean()
    assert len(at) > 3
    expected = 2 * math.pi * math.sqrt(length / (G * (1 + mass / MASS)))
    assert period == pytest.approx(expected, rel=0.01)


def test_an_elastic_cable_is_longer_by_the_weight_over_the_stiffness(physics):
    load(physics, "elastic_load")
    fly(physics, "cf0", (0.0, 0.0, 1.0), 12.0)
    lengths = []
    for _ in range(100):
        physics.step(10).result(T)
        lengths.append(data(physics).ten_length[0])
    assert np.mean(lengths) - 0.3 == pytest.approx(0.005 * G / 2.0, rel=0.02)


def test_battery_and_controller_feel_a_load(physics):
    load(physics, "slung_load")
    physics.command("cf1", Pose((0.5, -0.5, 1.0), 0.0))
    fly(physics, "cf0", (-0.5, -0.5, 1.0), 12.0)
    (loaded, alone), heights = physics.snapshot.battery[:, 1], physics.snapshot.pos[:, 2]
    assert loaded > 1.1 * alone
    np.testing.assert_allclose(heights, 1.0, atol=0.1)


def test_a_drone_holds_a_body_on_an_elastic_cable(physics):
    load(physics, THINGS)
    put(physics, "cf0", (0.0, 0.0, 0.2))
    physics.world.attach("cf0", "box", cable=True, length=0.3, stiffness=2.0, damping=0.01)
    fly(physics, "cf0", (0.0, 0.0, 1.0), 12.0)
    assert data(physics).ten_length[0] - 0.3 == pytest.approx(0.004 * G / 2.0, rel=0.05)


def test_a_slack_cable_pulls_nothing(physics):
    load(physics, "slung_load")
    fly(physics, "cf0", (0.0, 0.0, 0.3), 4.0)
    assert not tensions(physics).size
    assert data(physics).ten_length[0] < 0.4


def test_a_magnet_takes_the_nearest_body_and_lets_it_fall(physics):
    load(physics, THINGS)
    put(physics, "cf0", (0.01, 0.0, 0.05))
    with pytest.raises(ValueError, match=r"box is 0.* m away, the reach of cf0 is 0.01 m"):
        physics.world.attach("cf0", "box", reach=0.01)
    with pytest.raises(ValueError, match=r"nothing to hold within 0.001 m"):
        physics.world.attach("cf0", reach=0.001)
    physics.world.attach("cf0").result(T)
    assert physics.world.held["cf0"].body == "box"
    with pytest.raises(InvalidState, match="cf0 holds box already"):
        physics.world.attach("cf0").result(T)
    at = data(physics).body("box").xpos - physics.snapshot.pos[0]
    fly(physics, "cf0", (0.0, 0.0, 1.5), 10.0)
    now = data(physics)
    kept = now.body("drone:cf0").xmat.reshape(3, 3).T @ (
        now.body("box").xpos - physics.snapshot.pos[0]
    )
    np.testing.assert_allclose(kept, at, atol=2e-3)
    with pytest.raises(InvalidState, match="cf1 holds nothing"):
        physics.world.detach("cf1").result(T)
    physics.world.detach("cf0").result(T)
    start, vel = now.body("box").xpos[2], physics.snapshot.vel[0, 2]
    start = data(physics).body("box").xpos[2]
    physics.step(150).result(T)
    fallen = start + vel * 0.3 - data(physics).body("box").xpos[2]
    assert fallen == pytest.approx(G * 0.3**2 / 2, rel=0.02)


def test_what_is_held_survives_spawns_and_checkpoints_but_no_reset(physics):
    load(physics, THINGS)
    put(physics, "cf0", (0.0, 0.0, 0.3))
    physics.world.attach("cf0", "box", cable=True, length=0.4).result(T)
    physics.command("cf0", Pose((0.0, 0.0, 1.0), 0.0))
    physics.step(500).result(T)
    kept = physics.state.checkpoint().result(T)
    physics.world.spawn("cf2", (3.0, 0.0, 0.05, *LEVEL)).result(T)
    physics.step(1000).result(T)
    assert tensions(physics).size == 1
    physics.world.despawn("cf2").result(T)
    ends = []
    for _ in range(2):
        physics.state.restore(kept).result(T)
        assert physics.world.held["cf0"].length == 0.4
        physics.step(300).result(T)
        ends.append(physics.snapshot)
        physics.world.detach("cf0").result(T)
        physics.step(10).result(T)
    np.testing.assert_array_equal(ends[0].bodies.state, ends[1].bodies.state)
    np.testing.assert_array_equal(ends[0].pos, ends[1].pos)
    physics.state.restore(kept).result(T)
    physics.state.reset(drones=["cf0"]).result(T)
    assert not physics.world.held
    physics.state.restore(kept).result(T)
    physics.state.reset().result(T)
    assert not physics.world.held


def test_a_drone_can_hold_another_one(physics):
    load(physics, THINGS)
    put(physics, "cf1", (1.0, 0.0, 0.05))
    put(physics, "cf0", (1.0, 0.0, 0.5))
    physics.world.attach("cf0", "cf1", cable=True).result(T)
    fly(physics, "cf0", (1.0, 0.0, 0.9), 3.0)
    assert tensions(physics).size == 1
    physics.world.despawn("cf1").result(T)
    assert not physics.world.held
    physics.world.spawn("cf1", (0.5, -0.5, 0.05, *LEVEL)).result(T)


def carried(physics, *, cable):
    """Fly with the box, and return where it is, from the drone, and its velocity."""
    load(physics, THINGS)
    put(physics, "cf0", (0.01, 0.0, 0.05))
    physics.world.attach("cf0", "box", cable=cable).result(T)
    fly(physics, "cf0", (0.0, 0.0, 1.0), 5.0)
    return seen(physics)


def seen(physics):
    model, now = physics.mirror.model, data(physics)
    joint, speed = model.body("box").jntadr[0], model.body("box").dofadr[0]
    place = model.jnt_qposadr[joint]
    at = now.qpos[place : place + 3] - physics.snapshot.pos[0]
    return at, now.qvel[speed : speed + 6].copy()


TURNED = (math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5))  # z of the body is -y of the world
THERE = DroneState(pos=(3, -2, 2), quat=TURNED, vel=(1, 0, 0), ang_vel=(0, 0, 2))


def test_a_load_is_displaced_with_the_drone_that_holds_its_cable(physics):
    at, speed = carried(physics, cable=True)
    before = physics.snapshot.vel[0]
    physics.state.set_drone_states({"cf0": THERE}).result(T)
    now, changed = seen(physics)
    np.testing.assert_allclose(now, at, atol=1e-6)
    np.testing.assert_allclose(changed[:3] - speed[:3], (1, 0, 0) - before, atol=1e-6)
    np.testing.assert_array_equal(changed[3:], speed[3:])


def test_a_body_in_a_gripper_moves_with_the_drone_as_one_rigid_body(physics):
    at, _ = carried(physics, cable=False)
    at = world_to_body(physics.snapshot.quat[0], at)
    physics.state.set_drone_states({"cf0": THERE}).result(T)
    now, speed = seen(physics)
    np.testing.assert_allclose(now, (at[0], -at[2], at[1]), atol=1e-6)
    moves = np.cross((0, -2, 0), now)
    np.testing.assert_allclose(speed[:3] - moves, (1, 0, 0), atol=1e-6)
    np.testing.assert_allclose(speed[3:], (0, 0, 2), atol=0.05)  # they have the same axes
    physics.step(1).result(T)
    assert np.abs(physics.snapshot.vel[0] - (1, 0, 0)).max() < 0.1


def test_a_drone_that_holds_a_post_stays_there(physics):
    post = '<body name="post"><geom type="box" size="0.05 0.05 0.1"/></body>'
    load(physics, f"<mujoco><worldbody>{FLOOR}{post}</worldbody></mujoco>")
    put(physics, "cf0", (0.1, 0.0, 0.1))
    physics.world.attach("cf0", "post").result(T)
    with pytest.raises(ValueError, match="cf0 holds post, which does not move freely"):
        put(physics, "cf0", (1.0, 0.0, 1.0))
    physics.world.detach("cf0").result(T)


def test_a_cable_must_be_long_enough_and_not_too_stiff(physics):
    load(physics, THINGS)
    put(physics, "cf0", (0.0, 0.0, 1.0))
    with pytest.raises(ValueError, match=r"box is 0.99 m away, the cable is 0.5 m long"):
        physics.world.attach("cf0", "box", cable=True, length=0.5)
    with pytest.raises(ValueError, match=r"stiffness must be at most 8.* N/m"):
        physics.world.attach("cf0", "box", cable=True, stiffness=5000.0)
    with pytest.raises(ValueError, match="damping is that of a cable that stretches"):
        physics.world.attach("cf0", "box", cable=True, damping=1.0)
    with pytest.raises(ValueError, match="only box, cf0, cf1"):
        physics.world.attach("cf0", "bx")


def test_a_static_world_holds_a_tethered_drone(physics):
    post = '<body name="post"><geom type="box" size="0.05 0.05 0.1"/></body>'
    load(physics, f"<mujoco><worldbody>{FLOOR}{post}</worldbody></mujoco>")
    put(physics, "cf0", (0.2, 0.0, 0.3))
    physics.world.attach("cf0", "post", cable=True, length=0.5).result(T)
    fly(physics, "cf0", (0.0, 0.0, 1.0), 3.0)
    assert physics.snapshot.pos[0, 2] == pytest.approx(0.5, abs=0.01)
    physics.world.detach("cf0").result(T)
    fly(physics, "cf0", (0.0, 0.0, 1.0), 3.0)
    assert physics.snapshot.pos[0, 2] > 0.8


def test_a_pad_moves_in_its_period(physics):
    load(physics, "moving_pad")
    for quarter, x in ((1, 2.0), (2, 3.0), (4, 1.0)):
        physics.state.reset().result(T)
        physics.step(round(quarter * 2.5 * physics.freq)).result(T)
        assert data(physics).body("pad").xpos[0] == pytest.approx(x, abs=0.01)


def test_a_drone_stays_where_it_stands_on_a_moving_pad(physics):
    load(physics, "moving_pad")
    put(physics, "cf0", (1.0, 0.0, 0.315))
    physics.step(100).result(T)
    at = physics.snapshot.pos[0] - data(physics).body("pad").xpos
    physics.step(2500).result(T)
    np.testing.assert_allclose(
        physics.snapshot.pos[0] - data(physics).body("pad").xpos, at, atol=5e-3
    )


def test_a_drone_opens_a_door_by_its_momentum(physics):
    load(physics, "door")
    put(physics, "cf0", (0.8, -0.2, 0.6), vel=(2.0, 0.0, 0.0))
    physics.command("cf0", AttitudeThrust(0.0, 0.0, 0.0, MASS * G))
    angles = []
    for _ in range(100):
        physics.step(10).result(T)
        angles.append(math.degrees(data(physics).joint("hinge").qpos[0]))
    assert max(np.abs(angles)) > 20


def test_gates_give_way(physics):
    load(physics, "gates_to_hit")
    physics.step(500).result(T)
    assert data(physics).body("standing").xpos[2] == pytest.approx(1.0, abs=0.01)
    put(physics, "cf0", (1.3, 0.0, 1.33), vel=(3.0, 0.0, 0.0))
    put(physics, "cf1", (2.8, 0.0, 0.67), vel=(3.0, 0.0, 0.0))
    swung = 0.0
    for _ in range(150):
        physics.step(10).result(T)
        swung = max(swung, abs(data(physics).joint("swing").qpos[0]))
    assert data(physics).body("standing").xpos[2] < 0.3
    assert swung > 0.2


def test_a_force_pushes_a_body_for_its_time(physics):
    heavy = THINGS.replace('mass="0.004"', 'mass="2"').replace("0 0 0.01", "0 0 5")
    load(physics, heavy.replace("<worldbody>", '<option gravity="0 0 0"/><worldbody>'))
    done = physics.apply_wrench("box", TimedWrench((1.0, 0.0, 0.0), (0.0, 0.0, 0.001), 0.5))
    physics.step(100).result(T)
    kept = physics.state.checkpoint().result(T)
    ends = []
    for _ in range(2):
        physics.step(400).result(T)
        ends.append(data(physics).body("box").cvel.copy())
        physics.state.restore(kept).result(T)
    np.testing.assert_array_equal(*ends)
    assert done.done()
    assert ends[0][3] == pytest.approx(1.0 / 2.0 * 0.5, rel=1e-6)
    inertia = 2.0 * (0.06**2 + 0.06**2) / 12
    assert ends[0][2] == pytest.approx(0.001 / inertia * 0.5, rel=1e-6)
    physics.apply_wrench("box", TimedWrench((1.0, 0.0, 0.0), (0.0, 0.0, 0.0), math.inf))
    physics.step(10).result(T)
    physics.state.reset().result(T)
    physics.step(100).result(T)
    assert not data(physics).qvel[:6].any()
    with pytest.raises(ValueError, match="no drone 'floor'"):
        physics.apply_wrench("floor", TimedWrench((1.0, 0.0, 0.0), (0.0, 0.0, 0.0), 1.0))
