"""Drones of users: folders with figures and a drawing."""

from __future__ import annotations

import os
import shutil
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from paths import ROOT

from crazyflow_ros.description.ros2_control import Hardware
from crazyflow_ros.description.urdf import urdf
from crazyflow_ros.description.xacro import main
from crazyflow_ros.drones import Drone, load_drone, load_model, resolve
from crazyflow_ros.dynamics.forces.aerodynamics import ground_effect
from crazyflow_ros.dynamics.forces.floor import floor_contact
from crazyflow_ros.flight import Pose
from crazyflow_ros.resources import resource
from crazyflow_ros.runtime import Checkpoint, PhysicsThread, SimulationConfig
from crazyflow_ros.scene import build_spec
from crazyflow_ros.sim import Sim

EXAMPLE = ROOT / "examples" / "12_drone"
RACER = ROOT / "examples" / "15_racer"
T = 300.0  # s, no wait of a test is longer


def test_each_folder_of_the_package_is_a_drone() -> None:
    folders = (
        path.parent.name for path in (ROOT / "crazyflow_ros" / "drones").glob("*/drone.toml")
    )
    assert sorted(folders) == sorted(Drone)


@pytest.fixture
def edited(tmp_path: Path) -> Callable[..., str]:
    """Makes a copy of the example in which a text stands in place of another; returns its path."""

    def edit(old: str, new: str, file: str = "drone.toml", folder: str = EXAMPLE.name) -> str:
        copy = tmp_path / folder
        shutil.copytree(EXAMPLE, copy)
        text = (copy / file).read_text()
        assert old in text
        (copy / file).write_text(text.replace(old, new))
        return str(copy)

    return edit


@pytest.mark.parametrize(("example", "mass"), [(EXAMPLE, 0.05), (RACER, 0.75)])
def test_the_example_flies(example: Path, mass: float) -> None:
    sim = Sim(drone=example, control="state")
    assert sim.drone == str(example)
    assert float(sim.data.params.mass[0]) == pytest.approx(mass)
    command = np.zeros((1, 1, 13))
    command[..., :3] = 0.5, -0.3, 1.0
    sim.state_control(command)
    sim.step(8 * sim.freq)
    np.testing.assert_allclose(sim.data.states.pos[0, 0], command[0, 0, :3], atol=0.05)
    np.testing.assert_allclose(sim.data.states.vel[0, 0], 0.0, atol=0.02)


def test_the_example_is_drawn_beside_other_drones() -> None:
    model = build_spec([str(EXAMPLE), "cf2x_L250", str(EXAMPLE)], ["a", "b", "c"]).compile()
    masses = [model.body(f"drone:{name}").subtreemass[0] for name in "abc"]
    np.testing.assert_allclose(masses, [0.05, 0.0328, 0.05])
    np.testing.assert_allclose(model.body("rotor1:c").pos, [-0.036, -0.036, 0.012])
    np.testing.assert_allclose(model.joint("rotor1:c").axis, [0, 0, -1])
    assert model.material(f"{EXAMPLE.name}/frame").rgba[1] == pytest.approx(0.45)
    mixed = Sim(drone=[EXAMPLE, "cf2x_L250"], control="attitude", forces=())
    np.testing.assert_allclose(mixed.mj_model.body("drone:0").pos[2], 0.015)


def test_the_physics_thread_spawns_one_and_resumes_from_its_checkpoint(tmp_path: Path) -> None:
    config = SimulationConfig(
        drone_model=str(EXAMPLE), real_time_factor=0.0, start_paused=True, max_drones=2
    )
    physics = PhysicsThread(config, ("cf0",))
    physics.start()
    try:
        physics.world.spawn("cf1", (1.0, 0.0, 0.1, 0.0, 0.0, 0.0, 1.0)).result(T)
        for name, x in (("cf0", 0.0), ("cf1", 1.0)):
            physics.command(name, Pose((x, 0.0, 1.0), 0.0))
        physics.step(1000).result(T)
        physics.state.checkpoint().result(T).save(tmp_path / "flight")
        flown = physics.step(1000).result(T)
        np.testing.assert_allclose(flown.pos, [[0, 0, 1], [1, 0, 1]], atol=0.1)
        physics.state.restore(Checkpoint.load(tmp_path / "flight")).result(T)
        np.testing.assert_array_equal(physics.step(1000).result(T).pos, flown.pos)
    finally:
        physics.stop()


def test_relative_paths_and_links_are_the_same_drone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(EXAMPLE)
    monkeypatch.chdir(EXAMPLE.parent)
    path = f"./{EXAMPLE.name}"
    assert resolve(path) == resolve(tmp_path / "link") == resolve(EXAMPLE) == str(EXAMPLE)
    assert resolve(Path("cf2x_L250")) is Drone("cf2x_L250")
    Sim(drone=EXAMPLE, forces=(ground_effect(path), floor_contact(path, 500)))


def test_drones_of_one_name_are_not_mixed(edited: Callable[..., str], tmp_path: Path) -> None:
    heavy = edited("mass = 0.050", "mass = 0.060")
    assert Path(heavy).name == EXAMPLE.name
    masses = [load_drone(folder)["mass"] for folder in (EXAMPLE, heavy, EXAMPLE)]
    assert masses == [0.05, 0.06, 0.05]
    robots = [ET.fromstring(urdf(folder, "cf0")) for folder in (str(EXAMPLE), heavy)]
    weights = [sum(float(m.get("value", 0)) for m in robot.iter("mass")) for robot in robots]
    np.testing.assert_allclose(weights, [0.05, 0.06])
    both = build_spec([str(EXAMPLE), heavy], ["a", "b"]).compile()
    np.testing.assert_allclose(both.body("drone:b").subtreemass, 0.06)


@pytest.mark.parametrize("hardware", list(Hardware))
def test_xacro_and_python_make_the_same_robot(
    hardware: Hardware, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    xacro = pytest.importorskip("xacro", reason="xacro is not installed")
    monkeypatch.chdir(tmp_path)
    main([str(EXAMPLE)])
    mappings = {"model": str(tmp_path / EXAMPLE.name), "drones": "a b", "hardware": str(hardware)}
    file = str(resource("urdf_mjcf", "crazyflow.urdf.xacro"))
    theirs = ET.fromstring(xacro.process_file(file, mappings=mappings).toxml())
    ours = ET.fromstring(urdf(str(EXAMPLE), ["a", "b"], hardware))
    assert [(e.tag, e.attrib, (e.text or "").strip()) for e in theirs.iter()] == [
        (e.tag, e.attrib, (e.text or "").strip()) for e in ours.iter()
    ]


@pytest.mark.parametrize("model", ["so_rpy", "so_rpy_rotor", "so_rpy_rotor_drag"])
def test_a_missing_fit_switches_off_its_model(model: str) -> None:
    expected = rf"{EXAMPLE}/drone.toml has no table \[so_rpy\], which dynamics '{model}' needs"
    with pytest.raises(ValueError, match=expected):
        Sim(dynamics=model, control="attitude", drone=EXAMPLE)


def test_a_fit_of_ones_own_is_flown(edited: Callable[..., str]) -> None:
    fit = """
[so_rpy]
acc_coef = 0.0
cmd_f_coef = 1.0
rpy_coef = [-400, -400, -300]
rpy_rates_coef = [-30, -30, -30]
cmd_rpy_coef = [400, 400, 300]
"""
    folder = edited("[geometry]", f"{fit}\n[geometry]")
    assert load_model(folder, "so_rpy")["rpy_coef"].tolist() == [-400.0, -400.0, -300.0]
    sim = Sim(dynamics="so_rpy", control="attitude", drone=folder)
    sim.attitude_control([[[0.0, 0.0, 0.0, 0.6]]])
    sim.step(100)
    assert sim.data.states.vel[0, 0, 2] > 0.3
    with pytest.raises(ValueError, match=r"no table \[so_rpy_rotor\], which dynamics 'so_rpy_ro"):
        Sim(dynamics="so_rpy_rotor", control="attitude", drone=folder)


def test_without_gains_there_are_rotor_speeds_to_command(edited: Callable[..., str]) -> None:
    text = (EXAMPLE / "drone.toml").read_text()
    folder = edited(text[text.index("[mellinger]") : text.index("[drawing]")], "")
    for control in ("state", "attitude", "body_rate", "force_torque"):
        with pytest.raises(ValueError, match=r"no table \[mellinger\], which its controllers need"):
            Sim(drone=folder, control=control)
    sim = Sim(drone=folder, control="rotor_vel")
    sim.rotor_vel_control(np.full((1, 1, 4), 20_000.0))
    sim.step(250)
    assert sim.data.states.pos[0, 0, 2] > 0.1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("mass = 0.050  # kg, all", "# ", "mass is missing"),
        ("mass = 0.050  # kg, all", "mass = nan # ", "mass must be finite, got nan"),
        ("mass = 0.050  # kg, all", "mass = 1e400 # ", "mass must be finite, got inf"),
        ("mass = 0.050  # kg, all", "mass = -1 # ", "mass must be positive, got -1"),
        ("mass = 0.050  # kg, all", "mass = 2e6 # ", "mass must be within 1e.06, got 2e.06"),
        ("mass = 0.050  # kg, all", "mass = true # ", "mass must be a number, got True"),
        ("mass = 0.050  # kg, all", "mass = '50 g' # ", "mass must be a number, got 50 g"),
        ("mass = 0.050  # kg, all", "mass = 0.5 # ", "thrust_max must lift the weight of 4.905 N"),
        ("mass = 0.050  # kg, all", "mas = 0.05 # ", "there is no figure 'mas', only mass, "),
        ("mass = 0.050  # kg, all", "mass = ", "drone.toml: Invalid value"),
        ("J = [35e-6, 35e-6, 65e-6]", "J = [1e-6, 1e-6]", "J must be 3 finite numbers, got"),
        ("J = [35e-6, 35e-6, 65e-6]", "J = 35e-6", "J must be 3 numbers, got 3.5e-05"),
        ("J = [35e-6, 35e-6, 65e-6]", "J = [1e-6, 1e-6, 3e-6]", "J must be that of a rigid body"),
        ("thrust_min = 0.025", "thrust_min = 0.25", "thrust_min must be below thrust_max, 0.25"),
        ("4.34e-10]", "-4.34e-10]", "rpm2thrust must begin with at most thrust_min and end"),
        ("[20.0, 0.0, 20.0, 0.0]", "[20.0, 0.0, 0.0, 0.0]", "rotor_dyn_coef must let rotors"),
        ("drag = [-0.02", "drag = [0.02", "drag must be 0 or less, got"),
        ("foot_z = -0.015", "foot_z = 0.015", "geometry.foot_z must be negative, got 0.015"),
        ("rotor_z = 0.012", "", "geometry.rotor_z is missing"),
        ("[geometry]", "[body]", "there is no figure 'body', only "),
        ("[geometry]", "geometry = 1\n[drawing.x]", "geometry must be a table, got 1"),
        ("thrust2torque = 0.006", "", "mellinger.thrust2torque is missing"),
        ("kp = [0.45, 0.45, 1.25]", "kp = [1, 2]", "mellinger.state.kp must be 3 finite numbers"),
        (
            "pwm_max = 1.0",
            "pwm_max = 1.0\nki = 1",
            "there is no figure 'mellinger.ki', only mellinger.mass, ",
        ),
        ("pwm_min = 0.0", "pwm_min = 1.0", "mellinger.pwm_min must be below pwm_max, 1, got 1"),
        ("[drawing]", "[drawing]\nfile = '../x.xml'", "drawing.file must be the name of a file"),
        ("colour = [0.15", "colour = [1, 1, 1", "drawing.colour must have at most 4 numbers"),
        ("colour = [0.15", "colour = ['red'", "drawing.colour must be 3 numbers, got"),
    ],
)
def test_figures_that_cannot_be_are_named(
    edited: Callable[..., str], old: str, new: str, message: str
) -> None:
    folder = edited(old, new)
    with pytest.raises(ValueError, match=message) as error:
        load_drone(folder)
    assert str(error.value).startswith(f"{folder}/drone.toml: ")


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("drawing.xml", '<site name="imu"/>', "", r"the drawing of a drone must have .*'imu'"),
        ("drawing.xml", 'name="col_box"', 'name="box"', "must have .*col_box"),
        ("drawing.xml", 'body name="rotor{i}"', 'body name="r{i}"', "must have .*rotor0"),
        ("drawing.xml", "{arm}", "{arms}", "size='{arms}': there is no figure 'arms'"),
        ("drawing.xml", "{arm}", "{0}", "there is no figure '0'"),
        ("drawing.xml", "{arm}", "{L.__class__}", "expected the name of a figure in braces"),
        ("drawing.xml", "{arm}", "1 1", "drawing.xml: .*size"),
        ("drawing.xml", "<asset>", "<asset>&", "drawing.xml: not well-formed"),
        ("drawing.xml", "<mujoco", "<!DOCTYPE x><mujoco", "DOCTYPE"),
        ("drawing.xml", '"0.6 0.6 0.6 1"', '"red"', "drawing.xml: "),
        ("drone.toml", "prop_inertia = 40e-9", "prop_inertia = 9e-6", "leave no mass or inertia"),
        ("drone.toml", "[drawing]", "[drawing]\nfile = 'x.xml'", "there is no drawing .*x.xml"),
    ],
)
def test_drawings_that_cannot_be_used_are_refused(
    edited: Callable[..., str], file: str, old: str, new: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        build_spec(edited(old, new, file), ["a"]).compile()


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    for path in ("./no_such_drone", str(tmp_path), "/", "~nobody_here/x", "\0/", "a/" * 5000):
        with pytest.raises(ValueError, match=r"^drone '"):
            load_drone(path)
    own = tmp_path / "own"
    own.mkdir()
    (own / "drone.toml").write_bytes(b"\xff")
    with pytest.raises(ValueError, match=r"drone.toml: .* is not UTF-8"):
        load_drone(own)
    (own / "drone.toml").write_bytes(b"#" * 100_000)
    with pytest.raises(ValueError, match=r"is too large"):
        load_drone(own)
    (own / "drone.toml").write_text("a = " + "[" * 20_000)
    with pytest.raises(ValueError, match=r"drone.toml"):
        load_drone(own)
    (own / "drone.toml").unlink()
    os.mkfifo(own / "drone.toml")
    with pytest.raises(ValueError, match=r"there is no file"):
        load_drone(own)
    with pytest.raises(ValueError, match=r"my drone.*only letters"):
        load_drone(shutil.copytree(EXAMPLE, tmp_path / "my drone"))


def test_a_drawing_may_have_meshes(edited: Callable[..., str]) -> None:
    mesh = '<asset><mesh name="shell" file="shell.obj"/>'
    folder = Path(edited("<asset>", mesh, "drawing.xml"))
    corners = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\n"
    (folder / "shell.obj").write_text(f"{corners}f 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n")
    text, imu = (folder / "drawing.xml").read_text(), '<site name="imu"/>'
    geom = '<geom name="shell" class="visual" type="mesh" mesh="shell"/>'
    (folder / "drawing.xml").write_text(text.replace(imu, imu + geom))
    assert build_spec(str(folder), ["a", "b"]).compile().nmesh == 1


def test_a_drone_may_have_the_crazyflies_drawing(edited: Callable[..., str]) -> None:
    figures = """[drawing]
file = "crazyflie.xml"
front = [1, 0, 0]
front_disc = [1, 0, 0]
blade_x = 0.012
blade_size = [0.011, 0.003]
motor_size = [0.003, 0.009]
foot_radius = 0.004
sphere = 0.08"""
    model = build_spec(edited("[drawing]", figures), ["a"]).compile()
    assert model.body("drone:a").subtreemass[0] == pytest.approx(0.05)
    np.testing.assert_allclose(model.geom("motor3:a").pos, [0.036, 0.036, 0.0005])
