"""Bodies of a world that move: beside plain MuJoCo, and with drones."""

from io import BytesIO

import mujoco
import numpy as np
import pytest
from moving_worlds import WORLDS
from physics_helpers import load, started

from crazyflow_ros.drones import load_drone
from crazyflow_ros.flight import Pose
from crazyflow_ros.runtime import Checkpoint, DroneState, SimulationConfig
from crazyflow_ros.scene.description import read_text

T = 300.0  # s, no wait of a test is longer; compiling is among them
AWAY = (50.0, 50.0, 0.05, 0.0, 0.0, 0.0, 1.0)


@pytest.fixture(scope="module")
def physics(tmp_path_factory):
    """One drone far from everything."""
    world = tmp_path_factory.mktemp("world") / "world.xml"
    world.write_text(WORLDS["lands"])
    config = SimulationConfig(
        real_time_factor=0.0,
        start_paused=True,
        scene=str(world),
        initial_poses=np.array([AWAY]),
        downwash=True,
    )
    with started(config, ("cf0",)) as physics:
        yield physics


@pytest.mark.parametrize("name", WORLDS)
def test_bodies_move_as_in_plain_mujoco(physics, name):
    model = mujoco.MjModel.from_xml_string(WORLDS[name])
    model.opt.timestep = min(model.opt.timestep, 1 / physics.freq)
    data = mujoco.MjData(model)
    load(physics, WORLDS[name])
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
        physics.mirror.apply_keyframe(model.key(0).name)
    steps = round(1 / physics.freq / model.opt.timestep)
    for _ in range(50):
        mujoco.mj_step(model, data, 50 * steps)
        physics.step(50).result(T)
        ours = physics.mirror.copy_physics_data()
        np.testing.assert_allclose(ours.qpos[: model.nq], data.qpos, atol=1e-6)


MASS = load_drone(SimulationConfig().drone_model)["mass"]
FOOT = -load_drone(SimulationConfig().drone_model)["geometry"]["foot_z"]
WEIGHT = 9.81 * MASS


def put(physics, pos, **fields):
    physics.state.set_drone_states({"cf0": DroneState(pos=pos, **fields)}).result(T)


def body(physics, name="a"):
    return next(motion for motion in physics.mirror.motions() if motion.name == name)


def test_a_drone_rests_on_a_box_that_rests_on_the_floor(physics):
    load(physics, WORLDS["lands"])
    physics.step(500).result(T)
    put(physics, (0.03, 0.0, 0.2 + FOOT))
    now = physics.step(1000).result(T)
    box = body(physics)
    np.testing.assert_allclose(box.pos, (0, 0, 0.1), atol=5e-4)
    np.testing.assert_allclose(now.pos[0], (0.03, 0, 0.2 + FOOT), atol=1e-3)
    np.testing.assert_allclose(now.contact[0, :3], (0, 0, WEIGHT), atol=1e-4 * WEIGHT)
    np.testing.assert_allclose(now.specific_force[0], (0, 0, 9.81), atol=1e-3)
    np.testing.assert_allclose(now.vel[0], 0, atol=1e-5)


def test_drone_and_ball_push_one_another_equally(physics):
    """The drone's rotors stand still; all forces on the ball are gravity, and the drone's."""
    ball = '<freejoint/><geom size="0.05" mass="0.02"/>'
    load(
        physics,
        f"<mujoco><worldbody><body name='a' pos='0 0 1.2'>{ball}</body></worldbody></mujoco>",
    )
    put(physics, (0.01, 0.0, 1.0), vel=(0.0, 0.0, 3.0))
    begin, push = body(physics).vel, np.zeros(3)
    for _ in range(100):
        push += physics.step(1).result(T).contact[0, :3] / physics.freq
    assert push[2] < -0.01  # they have met
    gained = 0.02 * (body(physics).vel - begin + np.array([0, 0, 9.81]) * 100 / physics.freq)
    np.testing.assert_allclose(gained, -push, atol=1e-6)


def test_a_drone_hung_from_a_hinge_swings_as_a_compound_pendulum(physics):
    """Its rotors stand still, and the air slows it down a little."""
    length, inertia = 0.25, load_drone(SimulationConfig().drone_model)["J"][1][1]
    hinge = f"<connect body1='drone:cf0' body2='world' anchor='0 0 {length}'/>"
    load(physics, f"<mujoco><worldbody/><equality>{hinge}</equality></mujoco>")
    pivot = (*AWAY[:2], AWAY[2] + length)  # above the place for which the world was compiled
    angle = 0.05
    place = pivot - length * np.array([np.sin(angle), 0, np.cos(angle)])
    put(physics, place, quat=(0.0, np.sin(angle / 2), 0.0, np.cos(angle / 2)))
    x = [physics.step(1).result(T).pos[0, 0] - pivot[0] for _ in range(2500)]
    falls = np.flatnonzero((np.array(x[:-1]) < 0) & (np.array(x[1:]) >= 0))
    period = np.diff(falls).mean() / physics.freq
    moment = MASS * length
    expected = 2 * np.pi * np.sqrt((inertia + moment * length) / (9.81 * moment))
    assert period == pytest.approx(expected, rel=0.005)


def flight(physics, chunks):
    """Fly into a stack, in steps of these ticks."""
    load(physics, WORLDS["stack"].replace('mass="0.2"', 'mass="0.004"'))
    put(physics, (-0.5, 0.0, 0.5))
    physics.command("cf0", Pose((0.6, 0.05, 0.5), 0.0))
    for ticks in chunks:
        physics.step(ticks).result(T)
    return physics.snapshot


def test_a_flight_among_bodies_repeats_bit_for_bit(physics):
    first = flight(physics, [600])
    moved = [body(physics, f"b{i}").pos for i in range(3)]
    assert np.abs(np.array(moved)[:, :2]).max() > 0.01
    for chunks in ([600], [1] * 600, [7, 93, 250, 250]):
        again = flight(physics, chunks)
        np.testing.assert_array_equal(again.bodies.state, first.bodies.state)
        for field in ("pos", "quat", "vel", "ang_vel", "rotor_vel"):
            np.testing.assert_array_equal(getattr(again, field), getattr(first, field))


def test_a_checkpoint_holds_the_bodies(physics):
    flight(physics, [300])
    kept = physics.state.checkpoint().result(T)
    straight = physics.step(300).result(T)
    flight(physics, [111])
    loaded = Checkpoint.load(BytesIO(kept.to_bytes()))
    physics.state.restore(loaded).result(T)
    again = physics.step(300).result(T)
    np.testing.assert_array_equal(again.bodies.state, straight.bodies.state)
    np.testing.assert_array_equal(again.pos, straight.pos)
    load(physics, WORLDS["pendulum"])
    with pytest.raises(ValueError, match="bodies/"):
        physics.state.restore(loaded).result(T)


def test_bodies_stay_while_drones_come_and_go_and_return_at_a_reset(physics):
    load(physics, WORLDS["double pendulum"])
    physics.step(100).result(T)
    before = physics.snapshot
    joints = physics.mirror.copy_physics_data().qpos[:2].copy()
    after = physics.world.spawn("guest", (60.0, 0.0, 2.0, 0.0, 0.0, 0.0, 1.0)).result(T)
    assert after.tick == before.tick
    np.testing.assert_array_equal(physics.mirror.copy_physics_data().qpos[:2], joints)
    physics.step(100).result(T)
    assert not np.allclose(physics.mirror.copy_physics_data().qpos[:2], joints)
    physics.world.despawn("guest").result(T)
    physics.state.reset().result(T)
    np.testing.assert_array_equal(physics.mirror.copy_physics_data().qpos[:2], 0)


def test_a_captured_state_is_kept_when_drones_come(physics):
    load(physics, WORLDS["double pendulum"])
    physics.step(100).result(T)
    physics.state.capture_initial_state().result(T)
    joints = physics.mirror.copy_physics_data().qpos[:2].copy()
    physics.step(50).result(T)
    physics.world.spawn("guest", (60.0, 0.0, 2.0, 0.0, 0.0, 0.0, 1.0)).result(T)
    physics.state.reset().result(T)
    np.testing.assert_array_equal(physics.mirror.copy_physics_data().qpos[:2], joints)
    physics.world.despawn("guest").result(T)


def test_worlds_at_rest_and_worlds_that_move_follow_one_another(physics):
    load(physics, WORLDS["lands"])
    assert physics.snapshot.bodies is not None
    physics.world.set_scene("floor").result(T)
    assert physics.snapshot.bodies is None
    physics.world.set_scene(read_text(WORLDS["lands"])).result(T)
    physics.state.reset().result(T)
    physics.step(400).result(T)
    assert body(physics).pos[2] == pytest.approx(0.1, abs=1e-3)


def test_the_state_of_a_body_is_set(physics):
    load(physics, WORLDS["falls"])
    turned = DroneState(pos=(1, 2, 5), quat=(0, 0, 1, 1), vel=(0, 1, 0), ang_vel=(0, 0, 2))
    physics.state.set_body_state("a", turned).result(T)
    now = body(physics)
    np.testing.assert_allclose(now.pos, (1, 2, 5))
    np.testing.assert_allclose(now.quat, np.array((0, 0, 1, 1)) / np.sqrt(2))
    np.testing.assert_allclose((now.vel, now.ang_vel), ((0, 1, 0), (0, 0, 2)), atol=1e-15)
    physics.step(250).result(T)
    np.testing.assert_allclose(body(physics).pos, (1, 2.5, 5 - 9.81 / 8), atol=0.02)
    for name, message in (("b", "no free joint"), ("drone:cf0", "drone")):
        with pytest.raises(ValueError, match=message):
            physics.state.set_body_state(name, DroneState(pos=(0, 0, 1))).result(T)
    with pytest.raises(ValueError, match="pos of a"):
        physics.state.set_body_state("a", DroneState(pos=(0, 0, np.nan))).result(T)


def test_nothing_moves_a_drone_that_is_out_of_service(physics):
    load(physics, WORLDS["lands"])
    put(physics, (0.0, 0.0, 0.25))
    physics.loop.change(lambda: physics.simulation.withdraw("cf0", "a test")).result(T)
    place = physics.snapshot.pos.copy()
    physics.step(500).result(T)
    np.testing.assert_array_equal(physics.snapshot.pos, place)
    assert body(physics).pos[2] > 0.3  # the box lies on it
    physics.state.reset().result(T)


def test_bodies_without_a_state_are_put_back(physics, caplog):
    spring = '<joint type="slide" axis="0 0 1" stiffness="1" springref="0" damping="-100"/>'
    load(
        physics,
        WORLDS["spring"].replace(
            '<joint type="slide" axis="0 0 1" stiffness="20" damping="0.1"/>', spring
        ),
    )
    physics.step(5000).result(T)
    assert "the bodies of the world are back at their start" in caplog.text
    assert np.isfinite(physics.mirror.copy_physics_data().qpos).all()


def test_a_drone_that_stands_feels_the_floor_right_after_a_reset(physics):
    load(physics, WORLDS["lands"])
    physics.step(500).result(T)
    physics.state.capture_initial_state().result(T)
    physics.step(10).result(T)
    put(physics, (50, 50, 2))
    physics.step(50).result(T)
    now = physics.state.reset().result(T)
    np.testing.assert_allclose(now.specific_force[0], (0, 0, 9.81), atol=1e-3)
    np.testing.assert_allclose(now.acc[0], 0, atol=1e-3)
    np.testing.assert_allclose(now.contact[0, :3], (0, 0, WEIGHT), atol=1e-3 * WEIGHT)


def test_a_captured_state_is_kept_when_drones_come_after_a_checkpoint(physics):
    load(physics, WORLDS["double pendulum"])
    physics.step(100).result(T)
    physics.state.capture_initial_state().result(T)
    joints = physics.mirror.copy_physics_data().qpos[:2].copy()
    kept = physics.state.checkpoint().result(T)
    load(physics, WORLDS["double pendulum"])
    physics.state.restore(kept).result(T)
    physics.world.spawn("guest", (60.0, 0.0, 2.0, 0.0, 0.0, 0.0, 1.0)).result(T)
    physics.state.reset().result(T)
    np.testing.assert_array_equal(physics.mirror.copy_physics_data().qpos[:2], joints)
    physics.world.despawn("guest").result(T)


PAPER = '<freejoint/><geom type="box" size="0.05 0.05 0.0001" mass="{}"/>'


def over(physics, z, mass, rotor_vel=1500.0, option=""):
    """Hover for a tick at a height above a sheet of paper, and return the force on it."""
    content = f"<body name='a' pos='0.02 0 1'>{PAPER.format(mass)}</body>"
    load(physics, f"<mujoco>{option}<worldbody>{content}</worldbody></mujoco>")
    put(physics, (0.0, 0.0, 1.0 + z), rotor_vel=np.full(4, rotor_vel))
    before = body(physics).vel[2]
    now = physics.step(1).result(T)
    return ((body(physics).vel[2] - before) * physics.freq + 9.81) * mass, now


@pytest.mark.parametrize("z", [0.2, 0.6, 1.5])
def test_a_wake_pushes_a_sheet_of_paper_as_in_closed_form(physics, z):
    force, now = over(physics, z, 0.0008)
    figures = load_drone(SimulationConfig().drone_model)
    turns = now.rotor_vel[0] * 30 / np.pi
    thrust = np.polynomial.polynomial.polyval(turns, figures["rpm2thrust"]).sum()
    radius = figures["geometry"]["rotor_radius"]
    width = 4 * figures["L"] ** 2 + radius**2 + 2 / 3 * (2 * 0.05**2) + (0.113 * z) ** 2
    speed = np.sqrt(2 * thrust / (np.pi * 1.225 * width)) * np.exp(-(0.02**2) / width)
    expected = 1.225 / 2 * 0.1**2 * speed**2
    assert force == pytest.approx(-expected, rel=0.01)


def test_a_wake_hardly_moves_what_is_heavy_and_nothing_above_or_beside(physics):
    light, _ = over(physics, 0.3, 0.0008)
    assert light < -0.01
    heavy, _ = over(physics, 0.3, 2.0)
    assert heavy == pytest.approx(light, rel=1e-3)  # 5 mm/s^2 instead of 12 m/s^2
    for z, speed in ((-0.3, 1500.0), (0.3, 0.0)):
        force, _ = over(physics, z, 0.0008, speed)
        assert force == pytest.approx(0, abs=1e-12)


def test_a_wake_and_the_air_of_the_world_act_together(physics):
    """At the speed of the wake nothing acts on a body, and at rest the wake alone."""
    air = '<option density="1.225"/>'
    rest, _ = over(physics, 0.3, 0.0008, option=air)
    assert rest == pytest.approx(over(physics, 0.3, 0.0008)[0], rel=1e-3)


def test_a_sheet_of_paper_below_a_hovering_drone_is_blown_down(physics):
    def fallen(x):
        content = f"<body name='a' pos='{x} 0 2'>{PAPER.format(0.0008)}</body>"
        option = '<option density="1.225"/>'
        load(physics, f"<mujoco>{option}<worldbody>{content}</worldbody></mujoco>")
        put(physics, (0.0, 0.0, 2.3), rotor_vel=np.full(4, 1900.0))
        physics.command("cf0", Pose((0.0, 0.0, 2.3), 0.0))
        physics.step(250).result(T)
        return 2 - body(physics).pos[2]

    beside, below = fallen(1.0), fallen(0.03)
    assert below > 1.2 * beside
