"""SDF becomes what its authors mean, as written by hand in MJCF; xacro is expanded."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest
from description_corpus import Files, difference, robot, stl, written

from crazyflow_ros.scene.description import Folders, read, read_text

INERTIA = "<inertia><ixx>.01</ixx><iyy>.02</iyy><izz>.03</izz></inertia>"
MASS = f"<inertial><pose>0 0 -.5 0 0 1.5707963267948966</pose><mass>2</mass>{INERTIA}</inertial>"
THEIRS = '<inertial pos="{0}" mass="2" fullinertia="{1} 0 0 0"/>'
BOX = "<geometry><box><size>.2 .4 .6</size></box></geometry>"
PENDULUM = f"""<sdf version="1.9"><model name="pendulum">
  <frame name="top"><pose>0 0 2 0 0 0</pose></frame>
  <link name="base"><collision name="c">{BOX}</collision></link>
  <link name="arm"><pose relative_to="hinge"/>{MASS}
    <visual name="v"><pose>0 0 -1 0 0 0</pose>
      <geometry><sphere><radius>.3</radius></sphere></geometry>
      <material><diffuse>1 0 0 1</diffuse></material></visual>
    <collision name="c"><pose>0 0 -1 0 0 0</pose>{BOX}</collision></link>
  <joint name="world" type="fixed"><parent>world</parent><child>base</child></joint>
  <joint name="hinge" type="revolute"><pose relative_to="top">0 .1 0 0 0 0</pose>
    <parent>base</parent><child>arm</child><axis><xyz>1 0 0</xyz>
    <dynamics><damping>0</damping></dynamics><limit><lower>-3</lower><upper>3</upper></limit></axis>
  </joint></model></sdf>"""
PENDULUM_MJCF = f"""<mujoco><compiler angle="radian"/><worldbody><body name="base">
  {THEIRS.format("0 0 0", "1 1 1").replace('"2"', '"1"')}<geom type="box" size=".1 .2 .3"/>
  <body name="arm" pos="0 .1 2"><joint name="hinge" axis="1 0 0" range="-3 3"/>
    {THEIRS.format("0 0 -.5", ".02 .01 .03")}
    <geom size=".3" pos="0 0 -1" contype="0" conaffinity="0" rgba="1 0 0 1" group="1"/>
    <geom type="box" size=".1 .2 .3" pos="0 0 -1"/></body></body></worldbody>
  <contact><exclude body1="base" body2="arm"/></contact></mujoco>"""
CRATE = f"""<sdf version="1.6"><model name="crate"><pose>0 0 .3 0 0 0</pose>
  <link name="link"><collision name="c">{BOX}</collision></link></model></sdf>"""
YARD: Files = {
    "main.sdf": f"""<sdf version="1.7"><world name="yard"><gravity>0 0 -1.62</gravity>
  <light name="sun" type="directional"><pose>0 0 10 0 0 0</pose></light>
  <model name="ground"><static>true</static><link name="link"><collision name="c">
    <geometry><plane><normal>0 0 1</normal></plane></geometry></collision></link></model>
  <include><uri>model://crate</uri></include>
  <include><uri>model://crate</uri><name>other</name><pose>1 2 3 0 0 0</pose></include>
  <include><uri>crate</uri><name>third</name><static>true</static></include>
  <model name="cart"><pose>5 0 0 0 0 1.5707963267948966</pose>
    <model name="wheel"><pose>1 0 0 0 0 0</pose><link name="link"/></model>
    <link name="body"><collision name="c">{BOX}</collision></link>
    <joint name="axle" type="continuous"><parent>body</parent><child>wheel::link</child>
      <axis><xyz expressed_in="__model__">0 1 0</xyz></axis></joint></model>
  <plugin name="a" filename="b"/></world></sdf>""",
    "crate/model.config": """<model><sdf version="1.4">old.sdf</sdf>
      <sdf version="1.6">new.sdf</sdf></model>""",
    "crate/new.sdf": CRATE,
    "crate/old.sdf": "<sdf/>",
}
ONE = THEIRS.format("0 0 0", "1 1 1").replace('"2"', '"1"')
BLOCK = '<geom type="box" size=".1 .2 .3"/>'
YARD_MJCF = f"""<mujoco><option gravity="0 0 -1.62"/><worldbody>
  <light pos="0 0 10" type="directional"/>
  <body name="ground"><geom type="plane" size=".5 .5 1"/></body>
  <body name="crate" pos="0 0 .3"><freejoint/>{ONE}{BLOCK}</body>
  <body name="other" pos="1 2 3"><freejoint/>{ONE}{BLOCK}</body>
  <body name="third" pos="0 0 .3">{BLOCK}</body>
  <body name="cart" pos="5 0 0" euler="0 0 90"><freejoint/>{ONE}{BLOCK}
    <body name="cart/wheel" pos="1 0 0"><joint name="cart/axle" axis="0 1 0"/>{ONE}</body></body>
  </worldbody><contact><exclude body1="cart" body2="cart/wheel"/></contact></mujoco>"""
MERGED: Files = {
    "main.sdf": """<sdf version="1.9"><model name="drone">
  <include merge="true"><uri>base</uri><pose>0 0 1 0 0 0</pose></include>
  <link name="eye"><pose relative_to="trunk">.1 0 0 0 0 0</pose></link>
  <joint name="neck" type="universal"><parent>trunk</parent><child>eye</child>
    <axis><xyz>0 0 1</xyz></axis><axis2><xyz>0 1 0</xyz></axis2></joint></model></sdf>""",
    "base/model.sdf": """<sdf version="1.9"><model name="base"><link name="trunk"><visual name="v">
  <geometry><mesh><uri>t.stl</uri><scale>2 2 2</scale></mesh></geometry></visual></link>
  </model></sdf>""",
    "base/t.stl": stl(),
}
MERGED_MJCF = f"""<mujoco><asset><mesh file="base/t.stl" scale="2 2 2" inertia="shell"/></asset>
  <worldbody><body name="trunk" pos="0 0 1"><freejoint/>{ONE}<geom type="mesh" mesh="t" contype="0"
    conaffinity="0" rgba=".7 .7 .7 1"/><body name="eye" pos=".1 0 0"><joint name="neck"/>
    <joint name="neck_2" axis="0 1 0"/>{ONE}</body></body></worldbody>
  <contact><exclude body1="trunk" body2="eye"/></contact></mujoco>"""


@pytest.mark.parametrize(
    ("files", "mjcf"),
    [({"main.sdf": PENDULUM}, PENDULUM_MJCF), (YARD, YARD_MJCF), (MERGED, MERGED_MJCF)],
)
def test_sdf_is_what_its_author_means(files: Files, mjcf: str, tmp_path: Path) -> None:
    ours = read(written(files, tmp_path)).compiled()
    theirs = tmp_path / "theirs.xml"
    theirs.write_text(mjcf)
    expected = mujoco.MjModel.from_xml_path(str(theirs))
    expected.geom_group[:] = ours.geom_group
    assert difference(ours, expected) is None
    assert ours.opt.gravity == pytest.approx(expected.opt.gravity, abs=0.011)
    names = [ours.joint(i).name for i in range(ours.njnt)]
    assert names == [expected.joint(i).name for i in range(expected.njnt)]
    np.testing.assert_allclose(ours.jnt_axis, expected.jnt_axis, atol=1e-12)
    np.testing.assert_allclose(ours.dof_damping, expected.dof_damping)


def test_a_pendulum_of_sdf_swings_with_its_period() -> None:
    model = read_text(PENDULUM.replace("<limit>", "<x>").replace("</limit>", "</x>")).compiled()
    data = mujoco.MjData(model)
    data.joint("hinge").qpos[0] = 0.01
    times = [0.0]
    while len(times) < 3:
        before = data.qvel[0]
        mujoco.mj_step(model, data)
        if before > 0 >= data.qvel[0]:
            times.append(data.time)
    period = 2 * np.pi * np.sqrt((0.02 + 2 * 0.5**2) / (2 * 9.81 * 0.5))
    assert times[2] - times[1] == pytest.approx(period, rel=2e-3)


def test_what_sdf_has_and_mujoco_has_not_is_told(tmp_path: Path) -> None:
    _, notes = read(written(YARD, tmp_path)).conditions
    assert "the world has no plugin of its SDF" in notes


def joined(kind: str, rest: str = "", child: str = "b") -> str:
    ends = f"<parent>a</parent><child>{child}</child>{rest}"
    links = '<link name="a"/><link name="b"/>'
    model = f'<model name="m">{links}<joint name="j" type="{kind}">{ends}</joint></model>'
    return f'<sdf version="1.9">{model}</sdf>'


def posed(pose: str) -> str:
    return joined("fixed").replace('<link name="a"/>', f'<link name="a">{pose}</link>')


def shaped(shape: str) -> str:
    inside = shape if "material" in shape else f"<geometry>{shape}</geometry>"
    return posed(f'<visual name="v">{inside}</visual>')


def many(part: str, n: int = 400) -> str:
    parts = "".join(part.format(i, i + 1) for i in range(n))
    return posed('<pose relative_to="f0"/>' if "<frame" in part else "").replace(
        "<link", f'{parts}<frame name="f{n}"/><link', 1
    )


def including(uri: str) -> str:
    return f'<sdf version="1.9"><world name="w"><include><uri>{uri}</uri></include></world></sdf>'


FUEL = "https://fuel.gazebosim.org/1.0/OpenRobotics/models/My%20Crate"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (joined("gearbox"), "joint in line 1: MuJoCo has no joint of type 'gearbox'"),
        (joined("fixed", child="c"), "'c' is no link"),
        (joined("fixed", child="a"), "joins a with itself"),
        (posed("<pose>1 2</pose>"), "pose in line 1: expected 6 numbers, got '1 2'"),
        (posed("<pose>1 x</pose>"), "expected 6 numbers, got '1 x'"),
        (posed('<pose rotation_format="quat_xyzw">0 0 0 0 0 0 0</pose>'), "zero quaternion"),
        (shaped("<sphere><radius>nan</radius></sphere>"), "radius in line 1: expected a number"),
        (shaped("<cylinder><length>1 2</length></cylinder>"), "expected a number, got '1 2'"),
        (shaped("<plane><normal>0 0 0</normal></plane>"), "normal of a plane"),
        (shaped("<plane><normal>0 1</normal></plane>"), "normal in line 1: expected 3 numbers"),
        (
            shaped("<material><diffuse>1 0</diffuse></material>"),
            "expected 3 or 4 numbers, got '1 0",
        ),
        (posed("<inertial><mass>nan</mass></inertial>"), "mass in line 1: expected a number"),
        (posed("<inertial><inertia><ixx>inf</ixx></inertia></inertial>"), "ixx .* got 'inf'"),
        (joined("revolute", "<axis><xyz>1 0</xyz></axis>"), "xyz in line 1: expected 3 numbers"),
        (joined("revolute", "<axis><limit><lower>x</lower></limit></axis>"), "lower .* got 'x'"),
        (joined("screw", "<thread_pitch>0</thread_pitch>"), "thread_pitch .* got 0"),
        (many('<link name="{0}"><collision name="c"/></link>'), "79800 pairs of links"),
        (many('<frame name="f{0}"><pose relative_to="f{1}"/></frame>', 2000), "too many in a row"),
        (many('<model name="m{0}"/>', 11_000), "at most 10000 models and links"),
        (posed('<pose relative_to="c"/>'), "there is no frame 'c', only j, a, b"),
        (posed('<pose relative_to="a"/>'), "relative to itself"),
        ('<sdf><world><model name="m"/><model name="m"/></world></sdf>', "two called 'm'"),
        (including("model://nobody"), "no model 'nobody'"),
        (including(FUEL), "is not here: gz fuel download -u https"),
    ],
)
def test_refusals_of_sdf_name_the_reason(text: str, why: str) -> None:
    with pytest.raises((ValueError, FileNotFoundError), match=why):
        read_text(text).compiled()


def test_models_that_contain_themselves_are_refused(tmp_path: Path) -> None:
    again = '<sdf version="1.9"><model name="m"><include><uri>../m</uri></include></model></sdf>'
    files: Files = {"main.sdf": again.replace("../m", "m"), "m/model.sdf": again}
    with pytest.raises(ValueError, match="contains itself"):
        read(written(files, tmp_path))


def test_models_of_fuel_are_found_where_gazebo_keeps_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GZ_FUEL_CACHE_PATH", str(tmp_path))
    at = "fuel.gazebosim.org/openrobotics/models/my crate"
    files: Files = {f"{at}/1/model.sdf": "<sdf/>", f"{at}/12/model.sdf": CRATE}
    written({**files, "main.sdf": ""}, tmp_path)
    assert read_text(including(FUEL)).compiled().body("crate").pos[2] == 0.3
    with pytest.raises(ValueError, match="must have one model"):
        read_text(including(f"{FUEL}/1"))
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read_text(including(FUEL), folders=Folders(()))  # others may not name it


def test_xacro_is_expanded_with_packages_around_it(tmp_path: Path) -> None:
    part = '<robot xmlns:xacro="x"><xacro:macro name="part" params="n">{}</xacro:macro></robot>'
    mesh = '<link name="${n}"><visual><geometry><mesh filename="package://parts/t.stl"/></geometry>'
    files: Files = {
        "mine/main.urdf.xacro": robot(
            '<xacro:include filename="$(find parts)/part.xacro"/><xacro:part n="base"/>'
        ).replace("<robot", '<robot xmlns:xacro="http://www.ros.org/wiki/xacro"'),
        "parts/part.xacro": part.format(f"{mesh}</visual></link>").replace(
            '"x"', '"http://www.ros.org/wiki/xacro"'
        ),
        "parts/package.xml": "<package><name>parts</name></package>",
        "parts/t.stl": stl(),
    }
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    main = tmp_path / "mine/main.urdf.xacro"
    assert read(main).compiled().nmesh == 1
    with pytest.raises(ValueError, match="expand it with xacro first"):
        read(main, limited=True)  # xacro runs code
    main.write_text(main.read_text().replace("parts", "nothing"))
    with pytest.raises(ValueError, match=r"xacro: .*package 'nothing' not found"):
        read(main)


def test_a_xacro_that_asks_for_gigabytes_is_refused(tmp_path: Path) -> None:
    namespace = 'xmlns:xacro="http://www.ros.org/wiki/xacro"'
    for size in ("9 * 10**8", "4 * 10**9"):  # in parts, or at once
        greedy = f"<robot {namespace}><link name=\"${{'a' * ({size})}}\"/></robot>"
        (path := tmp_path / "main.urdf.xacro").write_text(greedy)
        with pytest.raises(ValueError, match=r"xacro: (it needs more than 1 GiB|when evaluating)"):
            read(path)
