"""Assembly of scenes: names, figures, geometry, contacts, refusals."""

from pathlib import Path

import jax
import mujoco
import numpy as np
import pytest
from mujoco import mjx

from crazyflow_ros.drones import Drone, load_drone, rotors_of
from crazyflow_ros.scene import build_spec, unweld

MODELS = list(Drone)
N_FREE = 6  # degrees of freedom of a free joint


@pytest.fixture(params=MODELS)
def drone_model(request: pytest.FixtureRequest) -> str:
    return request.param


def names_of(model: mujoco.MjModel, kind: str, n: int) -> list[str]:
    return [getattr(model, kind)(i).name for i in range(n)]


def test_every_element_of_a_drone_carries_its_name(drone_model: str) -> None:
    model = build_spec(drone_model, ["cf0", "b"]).compile()
    rotors = [f"rotor{i}" for i in range(len(rotors_of(drone_model)))]
    expected = [f"{part}:{name}" for name in ("cf0", "b") for part in ("drone", *rotors)]
    assert names_of(model, "body", model.nbody) == ["world", *expected]
    expected = [f"{part}:{name}" for name in ("cf0", "b") for part in ("free", *rotors)]
    assert names_of(model, "joint", model.njnt) == expected
    expected = [f"{part}:{name}" for name in ("cf0", "b") for part in rotors]
    assert names_of(model, "actuator", model.nu) == expected
    for name in ("cf0", "b"):
        for sensor in ("gyro", "accelerometer", "orientation"):
            assert model.sensor(f"{sensor}:{name}").objid == model.site(f"imu:{name}").id
        assert model.camera(f"fpv_cam:{name}").bodyid == model.body(f"drone:{name}").id
        assert model.site(f"CoM:{name}").bodyid == model.body(f"drone:{name}").id


HALL = """<mujoco>{head}<worldbody><geom name="floor" type="plane" size="9 9 .1"/>
<body name="crate" pos="2 2 .3"><freejoint/><geom type="box" size=".2 .2 .2" mass="1"/></body>
<body name="sign" pos="0 3 1"><geom size=".1" contype="0" conaffinity="0"/></body></worldbody>
<keyframe><key name="{key}" qpos="1 1 .3 1 0 0 0"/><key name="other" time="3"/></keyframe>
</mujoco>"""


@pytest.mark.parametrize("mocap", [False, True])
@pytest.mark.parametrize(
    "settings",
    [
        '<compiler discardvisual="true"/>',
        '<compiler fusestatic="true"/>',
        '<compiler settotalmass="7"/>',
        '<compiler boundmass="1" boundinertia="1"/>',
        '<compiler inertiafromgeom="true"/>',
        '<compiler inertiagrouprange="0 0"/>',
        '<compiler angle="radian" eulerseq="zyx"/>',
        '<compiler autolimits="false"/>',
        '<compiler strippath="true" meshdir="nowhere"/>',
        '<default><joint limited="true" armature="1"/><geom density="3" rgba="1 0 0 1"/></default>',
    ],
)
def test_settings_of_the_world_do_not_change_the_drones(
    settings: str, mocap: bool, tmp_path: Path
) -> None:
    def drones(head: str) -> dict[str, np.ndarray]:
        (tmp_path / "hall.xml").write_text(HALL.format(head=head, key="start"))
        spec = build_spec("cf2x_P250", ["cf0", "b"], scene=tmp_path / "hall.xml", mocap=mocap)
        model = spec.compile()
        roots = model.body_rootid
        own = [model.body(int(root)).name.startswith("drone:") for root in roots]
        of_bodies = ("body_mass", "body_inertia", "body_pos", "body_quat")
        of_geoms = ("geom_size", "geom_pos", "geom_contype", "geom_group", "geom_rgba")
        geoms = np.array(own)[model.geom_bodyid]
        return {name: getattr(model, name)[own] for name in of_bodies} | {
            name: getattr(model, name)[geoms] for name in of_geoms
        }

    plain, under_it = drones(""), drones(settings)
    for name in plain:
        np.testing.assert_allclose(under_it[name], plain[name], err_msg=name)


def test_a_world_that_discards_visuals_discards_its_own(tmp_path: Path) -> None:
    (tmp_path / "hall.xml").write_text(
        HALL.format(head='<compiler discardvisual="true"/>', key="start")
    )
    model = build_spec("cf2x_P250", ["cf0"], scene=tmp_path / "hall.xml").compile()
    assert model.body("sign").geomnum == 0 and model.body("crate").geomnum == 1


def test_the_keyframe_home_of_a_world_is_kept_with_the_drones_at_their_places(
    tmp_path: Path,
) -> None:
    (tmp_path / "hall.xml").write_text(HALL.format(head="", key="home"))
    pose = [0.5, -0.5, 1.0, 0.0, 0.0, 0.0, 1.0]
    model = build_spec("cf2x_P250", ["b"], scene=tmp_path / "hall.xml", poses=[pose]).compile()
    crate, drone = model.body("crate").jntadr[0], model.joint("free:b").id
    crate, drone = (int(model.jnt_qposadr[joint]) for joint in (crate, drone))
    key = model.key("home").qpos
    np.testing.assert_allclose(key[crate : crate + 3], [1, 1, 0.3])
    np.testing.assert_allclose(key[drone : drone + 7], [0.5, -0.5, 1, 1, 0, 0, 0])
    assert model.nkey == 2 and model.key("other").time == 3


def test_mass_and_inertia_with_held_rotors_are_those_of_the_dynamics(drone_model: str) -> None:
    model = build_spec(drone_model, ["cf0"]).compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    matrix = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, matrix)
    figures = load_drone(drone_model)
    expected = np.zeros((N_FREE, N_FREE))
    expected[:3, :3] = figures["mass"] * np.eye(3)
    expected[3:, 3:] = figures["J"]  # about the origin, which is the centre of mass
    np.testing.assert_allclose(matrix[:N_FREE, :N_FREE], expected, atol=1e-16, rtol=1e-12)
    np.testing.assert_allclose(
        matrix[N_FREE:, N_FREE:], np.diag(figures["rotors"].prop_inertia), atol=1e-20, rtol=1e-12
    )
    origin = data.xpos[model.body("drone:cf0").id]
    np.testing.assert_allclose(data.subtree_com[model.body("drone:cf0").id], origin, atol=1e-15)


def test_rotors_follow_the_mixing_matrix(drone_model: str) -> None:
    figures = load_drone(drone_model)
    arm, heights = figures["L"], figures["rotors"].position[:, 2]
    model = build_spec(drone_model, ["cf0"]).compile()
    roll, pitch, yaw = figures["mixing_matrix"]
    for i, height in enumerate(heights):
        x, y, z = model.body(f"rotor{i}:cf0").pos
        # Thrust f at (x, y) has the moment (y f, -x f, 0), drag turns the body against the rotor.
        np.testing.assert_allclose([y, -x, z], [roll[i] * arm, pitch[i] * arm, height], atol=1e-9)
        np.testing.assert_allclose(model.joint(f"rotor{i}:cf0").axis, [0, 0, -yaw[i]])
        np.testing.assert_allclose(model.joint(f"rotor{i}:cf0").pos, 0)


def test_drawing_fits_the_geometry_of_the_dynamics(drone_model: str) -> None:
    geometry = load_drone(drone_model)["geometry"]
    model = build_spec(drone_model, ["cf0"], poses=[[0, 0, 0, 0, 0, 0, 1]]).compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    rotors = rotors_of(drone_model)
    for i in range(len(rotors)):
        radius = model.geom(f"disc{i}:cf0").size[0]
        assert radius == pytest.approx(geometry["rotor_radius"])
        blade = model.geom(f"blade{i}_a:cf0")
        assert 0.9 * radius < blade.pos[0] + blade.size[0] <= radius
    box, half = model.geom("col_box:cf0"), geometry["hull_half_width"]
    low, high = geometry["foot_z"], geometry["rotor_z"]
    np.testing.assert_allclose(box.size, [half, half, (high - low) / 2])
    np.testing.assert_allclose(box.pos, [0, 0, (high + low) / 2], atol=1e-12)
    # Where the rotors reach farthest, diagonally, the box has its corners.
    reach = np.abs(rotors.position[:, :2]).max() + geometry["rotor_radius"] / np.sqrt(2)
    assert half == pytest.approx(reach, abs=1e-3 if len(rotors.places) == 4 else 0.05)
    sizes = {"foot": 1, "skid": 0}  # half length of upright feet, radius of level skids
    parts = [model.geom(i) for i in range(model.ngeom)]
    lows = [
        part.pos[2] - part.size[size]
        for part in parts
        for name, size in sizes.items()
        if part.name.startswith(name)
    ]
    np.testing.assert_allclose(lows, geometry["foot_z"], atol=1e-9)
    for name in names_of(model, "geom", model.ngeom):
        geom = model.geom(name)
        if geom.group == 2:
            assert geom.contype == geom.conaffinity == 0
            assert data.geom(name).xpos[2] >= low


def test_camera_looks_forward(drone_model: str) -> None:
    model = build_spec(drone_model, ["cf0"], poses=[[0, 0, 1, 0, 0, 0, 1]]).compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    right, up, backward = data.camera("fpv_cam:cf0").xmat.reshape(3, 3).T
    np.testing.assert_allclose(
        [right, up, backward], [[0, -1, 0], [0, 0, 1], [-1, 0, 0]], atol=1e-9
    )
    camera = model.camera("fpv_cam:cf0")
    expected = [0.03, 0, 0] if drone_model.startswith("cf2") else [0.115, 0, -0.01]
    np.testing.assert_allclose(camera.pos, expected)
    assert camera.fovy == 70
    assert list(model.cam_resolution[camera.id]) == [640, 480]


def test_actuators_drive_rotors_to_their_commanded_speed(drone_model: str) -> None:
    model = build_spec(drone_model, ["cf0"], poses=[[0, 0, 100, 0, 0, 0, 1]]).compile()
    data = mujoco.MjData(model)
    figures = load_drone(drone_model)
    highest = model.actuator("rotor0:cf0").ctrlrange[1]
    rpm = highest * 60 / (2 * np.pi)
    k0, k1, k2 = figures["rpm2thrust"]
    assert k0 + k1 * rpm + k2 * rpm**2 == pytest.approx(figures["thrust_max"])
    data.ctrl[:4] = [0.3 * highest, 0.5 * highest, 2 * highest, 0.0]
    while data.time < 0.6:
        mujoco.mj_step(model, data)
    speeds = [data.joint(f"rotor{i}:cf0").qvel[0] for i in range(4)]
    np.testing.assert_allclose(speeds, highest * np.array([0.3, 0.5, 1.0, 0.0]), rtol=1e-2, atol=5)


def test_initial_poses_are_body_poses_and_keyframe() -> None:
    poses = [[1, 2, 3, 0.1, 0.2, 0.3, 0.9], [4, 5, 6, 0, 0, 0, 2]]
    model = build_spec(Drone.cf2x_L250, ["a", "b"], poses=poses).compile()
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, model.key("home").id)
    quat = np.array([0.9, 0.1, 0.2, 0.3]) / np.linalg.norm([0.9, 0.1, 0.2, 0.3])
    np.testing.assert_allclose(data.joint("free:a").qpos, [1, 2, 3, *quat])
    np.testing.assert_allclose(data.joint("free:b").qpos, [4, 5, 6, 1, 0, 0, 0])
    np.testing.assert_array_equal(data.qvel, 0)


def test_default_poses_stand_on_the_floor_apart(drone_model: str) -> None:
    model = build_spec(drone_model, [f"cf{i}" for i in range(7)]).compile()
    data = mujoco.MjData(model)
    position = np.array([data.joint(f"free:cf{i}").qpos[:3] for i in range(7)])
    np.testing.assert_allclose(position[:, 2], -load_drone(drone_model)["geometry"]["foot_z"])
    distance = np.linalg.norm(position[:, None] - position, axis=-1)
    assert distance[~np.eye(7, dtype=bool)].min() >= 1.0 - 1e-9
    for _ in range(500):  # at rest, it stays
        mujoco.mj_step(model, data)
    after = np.array([data.joint(f"free:cf{i}").qpos[:3] for i in range(7)])
    np.testing.assert_allclose(after, position, atol=1e-3)


def test_free_drones_touch_the_floor_and_each_other(drone_model: str) -> None:
    poses = [[0, 0, 0.01, 0, 0, 0, 1], [0, 0, 1, 0, 0, 0, 1], [0.09, 0, 1, 0, 0, 0, 1]]
    model = build_spec(drone_model, ["low", "left", "right"], poses=poses).compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    pairs = {frozenset(model.geom(g).name for g in contact.geom) for contact in data.contact}
    assert pairs == {
        frozenset({"floor", "col_box:low"}),
        frozenset({"col_box:left", "col_box:right"}),
    }


def test_mocap_drones_have_neither_joints_nor_sensors(drone_model: str) -> None:
    model = build_spec(drone_model, ["0", "1"], mocap=True).compile()
    assert model.nmocap == 2
    assert [model.body(f"drone:{i}").mocapid[0] for i in range(2)] == [0, 1]
    assert (model.nu, model.nsensor, model.nkey) == (0, 0, 0)
    assert not any(joint.startswith("rotor") for joint in names_of(model, "joint", model.njnt))


def test_mjx_reports_contacts_of_mocap_drones() -> None:
    names = ["0", "1", "2"]
    model = build_spec(Drone.cf2x_L250, names, mocap=True).compile()
    unweld(model, names)
    data = mujoco.MjData(model)
    data.mocap_pos[:] = [[0, 0, 0.06], [3, 0, 1], [3.1, 0, 1]]
    mjx_model, mjx_data = mjx.put_model(model), mjx.put_data(model, data)
    collide = jax.jit(lambda data: mjx.collision(mjx_model, mjx.kinematics(mjx_model, data)))
    mjx_data = collide(mjx_data)
    contact = mjx_data._impl.contact
    touching = {
        frozenset(model.geom(int(g)).name for g in geoms): float(dist)
        for geoms, dist in zip(contact.geom, contact.dist, strict=True)
        if dist < 0
    }
    assert touching == {
        frozenset({"floor", "col_sphere:0"}): pytest.approx(-0.01, abs=1e-5),
        frozenset({"col_sphere:1", "col_sphere:2"}): pytest.approx(-0.04, abs=1e-5),
    }
    assert len(contact.dist) == 6  # 3 with the floor, 3 among the drones; none inside a drone


def test_drones_that_are_read_later_are_like_the_first() -> None:
    names = [f"cf{i}" for i in range(70)]
    spec = build_spec(Drone.cf2x_L250, names)
    model, one = spec.compile(), build_spec(Drone.cf2x_L250, ["cf0"]).compile()
    assert model.nmat == one.nmat
    for name in ("cf0", "cf69"):
        geoms = [i for i in range(model.ngeom) if model.geom(i).name.endswith(f":{name}")]
        alone = [i for i in range(one.ngeom) if one.geom(i).name.endswith(":cf0")]
        for field in ("geom_matid", "geom_group", "geom_size", "geom_contype", "geom_rgba"):
            assert np.array_equal(getattr(model, field)[geoms], getattr(one, field)[alone])
    again = mujoco.MjModel.from_xml_string(spec.to_xml())
    assert again.ngeom == model.ngeom and again.nmat == model.nmat


def test_callers_add_to_the_scene_as_in_crazyflows_documentation() -> None:
    spec = build_spec(Drone.cf2x_L250, ["0"], mocap=True)
    obstacle_spec = mujoco.MjSpec.from_string(
        "<mujoco><worldbody><body name='obstacle'><geom type='box' size='.1 .1 .1'/></body>"
        "</worldbody></mujoco>"
    )
    frame = spec.worldbody.add_frame()
    for i, pos in enumerate([[1.0, 0.0, 0.5], [2.0, 0.0, 0.5]]):
        attached = frame.attach_body(obstacle_spec.body("obstacle"), "p", f":{i}")
        attached.pos = pos
    model = spec.compile()
    np.testing.assert_allclose(model.body("pobstacle:1").pos, [2.0, 0.0, 0.5])
    assert model.body("drone:0").mocapid[0] == 0


def test_scene_of_ones_own_keeps_its_compiler_settings(tmp_path: Path) -> None:
    path = tmp_path / "gate.xml"
    path.write_text(
        "<mujoco><compiler angle='radian'/><default><geom rgba='1 0 0 1'/></default><worldbody>"
        "<body name='gate'><joint name='gate' axis='0 1 0'/>"
        "<geom name='gate' type='box' size='.1 .1 .1' euler='0 0 1'/></body></worldbody></mujoco>"
    )
    model = build_spec(Drone.cf2x_L250, ["cf0"], scene=path).compile()
    np.testing.assert_allclose(model.geom("gate").quat, [np.cos(0.5), 0, 0, np.sin(0.5)])
    quarter = np.cos(np.pi / 8)
    np.testing.assert_allclose(
        model.geom("arm_a:cf0").quat, [quarter, 0, 0, np.sqrt(1 - quarter**2)]
    )
    assert model.joint("gate").id >= 0
    assert model.nkey == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("cf9", ["a"]), "cf9"),
        ((Drone.cf2x_L250, []), "at least one"),
        ((Drone.cf2x_L250, "cf0"), "cf0"),
        ((Drone.cf2x_L250, ["a", ""]), "''"),
        ((Drone.cf2x_L250, ["a", "b c"]), "'b c'"),
        ((Drone.cf2x_L250, ["a", "{name}"]), "{name}"),
        ((Drone.cf2x_L250, ["cf0", "cf1", "cf0"]), "more than once: cf0"),
    ],
)
def test_refusals(arguments: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build_spec(*arguments)


@pytest.mark.parametrize(
    ("scene", "message"),
    [
        ("nowhere", "no scene 'nowhere', only carried_bar, door"),
        ("cf2x_L250", "no scene 'cf2x_L250', only carried_bar, door"),
        ("/nowhere/scene.xml", "no scene /nowhere/scene.xml$"),
    ],
)
def test_unknown_scenes_are_refused(scene: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build_spec(Drone.cf2x_L250, ["a"], scene=scene)


@pytest.mark.parametrize(
    ("poses", "message"),
    [
        ([[0, 0, 0, 0, 0, 0]], r"shape \(1, 7\), got \(1, 6\)"),
        ([[0, 0, np.nan, 0, 0, 0, 1]], "finite"),
        ([[0, 0, 1, 0, 0, 0, 0]], "quaternions not zero"),
    ],
)
def test_bad_poses_are_refused(poses: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build_spec(Drone.cf2x_L250, ["a"], poses=poses)


def test_only_drones_touch_other_bodies_in_mjx() -> None:
    """MJX skips pairs of geoms whose bodies are welded together."""
    spec = build_spec("cf2x_L250", ["0", "1"], mocap=True)
    for name in ("gate", "wall"):
        body = spec.worldbody.add_body(name=name, mocap=True)
        body.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=[0.1, 0.1, 0.1])
    model = spec.compile()
    unweld(model, ["0", "1"])
    bodies = ("gate", "wall", "drone:0", "drone:1")
    weld = {name: int(model.body(name).weldid[0]) for name in bodies}
    assert weld["gate"] == weld["wall"] == 0
    assert len({0, weld["drone:0"], weld["drone:1"]}) == 3
    assert model.body("rotor0:1").weldid[0] == weld["drone:1"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("<mujoco><worldbody><geom type='round'/></worldbody></mujoco>", "round"),
        ("not XML", "XML"),
    ],
)
def test_scene_that_cannot_be_read_is_refused(tmp_path: Path, content: str, reason: str) -> None:
    scene = tmp_path / "scene.xml"
    scene.write_text(content)
    with pytest.raises(ValueError, match=reason) as refusal:
        build_spec(Drone.cf2x_L250, ["cf0"], scene=scene)
    assert str(scene) in str(refusal.value)
