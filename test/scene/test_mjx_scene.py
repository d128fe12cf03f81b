"""Worlds for MJX: what it lacks, and contacts and depth do not need, troubles neither."""

from __future__ import annotations

import warnings
from pathlib import Path

import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from mujoco import mjx

from crazyflow_ros.scene import build_spec, frames
from crazyflow_ros.scene.mjx_internals import contacts
from crazyflow_ros.scene.mjx_scene import fitted_to_mjx
from crazyflow_ros.sensors.mjx_backend import MjxBackend
from crazyflow_ros.sim import Sim, sync_sim2mjx
from crazyflow_ros.sim.sensors.depth import render_depth

ARM = """
<body name="arm" pos="1 0 .5">
  <joint name="swing" type="hinge" axis="0 1 0" range="-90 90" stiffness="1"/>
  <site name="tip" pos=".2 0 0" size=".05"/>
  <geom name="box" type="box" size=".1 .1 .1"/>
  <body name="hand" pos=".5 0 0">
    <joint name="wrist" type="ball"/>
    <geom name="fist" size=".08"/>
  </body>
</body>
<site name="hook" pos="0 1 1"/>
"""
TENDON = """
<tendon>
  <spatial name="rope" limited="true" range="0 2"><site site="tip"/><site site="hook"/></spatial>
</tendon>
<actuator><position name="servo" joint="swing"/></actuator>
"""
SENSORS = """
<sensor>
  <touch site="tip"/> <accelerometer site="tip"/> <velocimeter site="tip"/> <gyro site="tip"/>
  <force site="tip"/> <torque site="tip"/> <magnetometer site="tip"/> <rangefinder site="tip"/>
  <camprojection site="tip" camera="above"/> <jointpos joint="swing"/> <jointvel joint="swing"/>
  <tendonpos tendon="rope"/> <tendonvel tendon="rope"/> <actuatorpos actuator="servo"/>
  <actuatorvel actuator="servo"/> <actuatorfrc actuator="servo"/> <ballquat joint="wrist"/>
  <jointactuatorfrc joint="swing"/> <tendonactuatorfrc tendon="rope"/> <ballangvel joint="wrist"/>
  <jointlimitpos joint="swing"/> <jointlimitvel joint="swing"/> <jointlimitfrc joint="swing"/>
  <tendonlimitpos tendon="rope"/> <tendonlimitvel tendon="rope"/> <tendonlimitfrc tendon="rope"/>
  <framepos name="place" objtype="site" objname="tip"/>
  <framequat objtype="xbody" objname="arm" reftype="camera" refname="above"/>
  <framexaxis objtype="geom" objname="box"/> <frameyaxis objtype="body" objname="arm"/>
  <framezaxis objtype="camera" objname="above"/> <framelinvel objtype="site" objname="tip"/>
  <frameangvel objtype="site" objname="tip"/> <framelinacc objtype="site" objname="tip"/>
  <frameangacc objtype="site" objname="tip"/> <subtreecom body="arm"/>
  <subtreelinvel body="arm"/> <subtreeangmom body="arm"/>
  <insidesite site="tip" objtype="body" objname="arm"/> <distance geom1="box" geom2="floor"/>
  <normal geom1="box" geom2="floor"/> <fromto geom1="box" geom2="floor"/>
  <contact geom1="box" num="2" data="found"/> <contact subtree1="arm" data="found force"/>
  <contact site="tip" data="found"/> <contact geom1="box" reduce="netforce" data="force"/>
  <e_potential/> <e_kinetic/> <clock/> <user name="own" dim="3"/>
  <framepos name="last" objtype="body" objname="hand"/>
</sensor>
"""
ACTUATORS = """
<actuator>
  <muscle tendon="rope"/> <cylinder joint="swing"/> <damper joint="swing" ctrlrange="0 1"/>
  <intvelocity joint="swing" actrange="-1 1"/> <adhesion body="arm" ctrlrange="0 1"/>
  <general site="tip" refsite="hook" gear="1 0 0 0 0 0"/> <motor jointinparent="wrist"/>
  <plugin joint="swing" plugin="mujoco.pid" instance="pid"/>
</actuator>
"""
PID = """
<extension>
  <plugin plugin="mujoco.pid"><instance name="pid"><config key="kp" value="1"/></instance></plugin>
</extension>
"""
PLUGINS = """
<extension>
  <plugin plugin="mujoco.sensor.touch_grid"/>
  <plugin plugin="mujoco.elasticity.cable"/>
</extension>
"""
CABLE = """
<composite type="cable" curve="s" count="5 1 1" size="1" offset="-2 -2 1" initial="none">
  <plugin plugin="mujoco.elasticity.cable"><config key="bend" value="1e6"/></plugin>
  <joint kind="main" damping=".1"/>
  <geom type="capsule" size=".02"/>
</composite>
"""
GRID = """
<sensor>
  <plugin name="skin" plugin="mujoco.sensor.touch_grid" objtype="site" objname="tip">
    <config key="size" value="4 4"/> <config key="fov" value="40 40"/>
    <config key="gamma" value="0"/> <config key="nchannel" value="1"/>
  </plugin>
</sensor>
"""
FLAG = """
<flexcomp name="flag" type="grid" count="3 3 1" spacing=".2 .2 .2" pos="-2 0 2" radius=".01"
    dim="2" mass=".5"><edge equality="true"/></flexcomp>
"""
JELLY = """
<flexcomp name="jelly" type="grid" count="3 3 3" spacing=".2 .2 .2" pos="-2 3 1" radius=".01"
    dim="3" dof="trilinear" mass=".5"><edge damping="1"/><elasticity young="1e4"/></flexcomp>
"""
EQUALITIES = """
<equality>
  <connect body1="arm" body2="world" anchor="0 0 0" active="false"/>
  <weld body1="hand" body2="world"/> <joint joint1="swing"/> <tendon tendon1="rope"/>
</equality>
"""
SKIN = """
<deformable>
  <skin name="sleeve" vertex="0 0 0 1 0 0 0 1 0" face="0 1 2">
    <bone body="arm" bindpos="0 0 0" bindquat="1 0 0 0" vertid="0 1 2" vertweight="1 1 1"/>
  </skin>
</deformable>
"""
SHAPES = """
<body name="can" pos="-2 2 .5"><freejoint/><geom name="can" type="cylinder" size=".2 .3"/></body>
<body name="egg" pos="0 2 .5"><freejoint/><geom name="egg" type="ellipsoid" size=".2 .3 .1"/></body>
<body name="gem" pos="2 2 .5"><geom name="gem" type="mesh" mesh="gem" margin=".1" gap=".05"/></body>
<body name="log" pos="3 0 .5" euler="90 0 0">
  <joint type="slide"/><geom name="log" type="capsule" size=".1 .4" condim="1"/>
</body>
<geom name="wall" type="box" pos="-3 0 1" size=".1 2 1"/>
<geom name="post" type="cylinder" pos="0 -3 1" size=".1 1"/>
"""
GEM = '<asset><mesh name="gem" vertex="0 0 0  .5 0 0  0 .5 0  0 0 .5"/></asset>'
RULES = """
<contact>
  <exclude body1="arm" body2="hand"/>
  <pair geom1="post" geom2="box"/> <pair geom1="fist" geom2="gem" margin=".1"/>
</contact>
"""


def world(parts: str = "", tail: str = "", head: str = "") -> str:
    floor = '<geom name="floor" type="plane" size="9 9 .1"/><camera name="above" pos="0 -1 3"/>'
    return f"<mujoco>{head}<worldbody>{floor}{ARM}{parts}</worldbody>{tail}</mujoco>"


EVERYTHING = world(
    SHAPES,
    TENDON + SENSORS + ACTUATORS + EQUALITIES + SKIN + RULES,
    PID + GEM + '<option integrator="implicit" solver="PGS" cone="elliptic" density="1.2"/>',
)
OPTIONS = [
    '<option integrator="implicit" solver="PGS" jacobian="sparse" noslip_iterations="4"/>',
    '<option integrator="implicitfast" solver="CG" density="1.2" viscosity="1e-5" wind="1 0 0"/>',
    '<option integrator="RK4" cone="elliptic" jacobian="dense" impratio="3"/>',
    '<option integrator="Euler"><flag energy="enable" fwdinv="enable" override="enable"/></option>',
    '<option><flag multiccd="enable" island="enable" invdiscrete="enable"/></option>',
    '<option><flag contact="disable" constraint="disable" sensor="disable"/></option>',
]
WORLDS = {
    "sensors": world(tail=TENDON + SENSORS),
    "actuators": world(tail=TENDON + ACTUATORS, head=PID),
    "plugins": world(CABLE, GRID, PLUGINS),
    "flexes": world(FLAG + JELLY),
    "skin": world(tail=SKIN),
    "equalities": world(tail=TENDON + EQUALITIES),
    "shapes": world(SHAPES, RULES, GEM),
    "everything": EVERYTHING,
    **{f"option {i}": world(head=option) for i, option in enumerate(OPTIONS)},
}


@pytest.mark.filterwarnings("ignore:MJX", "ignore:flex")
@pytest.mark.parametrize("name", WORLDS)
def test_mjx_takes_the_world_with_the_same_geometry(tmp_path: Path, name: str) -> None:
    (tmp_path / "world.xml").write_text(WORLDS[name])
    spec = build_spec("cf2x_L250", ["0", "1"], scene=tmp_path / "world.xml", mocap=True)
    model = spec.compile()
    before = model.opt.integrator, model.sensor_type.copy(), model.geom_contype.copy()
    fitted, start = fitted_to_mjx(spec, model, ["0", "1"])
    assert model.opt.integrator == before[0]
    np.testing.assert_array_equal(model.sensor_type, before[1])
    np.testing.assert_array_equal(model.geom_contype, before[2])
    taken, data = mjx.put_model(fitted), mjx.put_data(fitted, start)
    fields = "geom_type geom_size geom_pos geom_quat geom_bodyid geom_dataid body_pos body_quat"
    for field in (*fields.split(), "body_mocapid", "cam_pos", "site_pos", "jnt_qposadr"):
        ours = np.asarray(getattr(taken, field), getattr(model, field).dtype)
        np.testing.assert_allclose(ours, getattr(model, field), rtol=1e-6, atol=1e-6)
    assert data.qpos.shape == (model.nq,) and data.sensordata.shape == (model.nsensordata,)


def test_what_is_left_out_is_said(tmp_path: Path) -> None:
    def said(content: str) -> list[str]:
        (tmp_path / "world.xml").write_text(content)
        spec = build_spec("cf2x_L250", ["0"], scene=tmp_path / "world.xml", mocap=True)
        model = spec.compile()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fitted_to_mjx(spec, model, ["0"])
        return [str(warning.message) for warning in caught if "MJX" in str(warning.message)]

    assert said(world(tail=TENDON + SENSORS)) == []
    assert said(world(FLAG + JELLY)) == [
        "MJX has no flexes: contacts and depth leave out flag, jelly"
    ]
    left_out, rough = said(world(SHAPES, RULES, GEM))
    for pair in ("box and cylinder", "box and ellipsoid", "cylinder and mesh"):
        assert pair in left_out and pair not in rough
    for pair in ("capsule and cylinder", "box and mesh"):
        assert pair in rough
    assert not any(shape in left_out + rough for shape in ("plane", "sphere"))


FEW_PAIRS = """
<default>
  <geom contype="0"/>
  <default class="both"><geom contype="2" conaffinity="3"/></default>
</default>
"""
"""Scenery does not touch scenery, except for two shapes that MJX cannot let touch."""
CROWD = world(
    """
    <body name="can" pos="-2 2 .5">
      <freejoint/>
      <geom name="can" class="both" conaffinity="2" type="cylinder" size=".2 .3" group="3"/>
    </body>
    <geom name="wall" class="both" type="box" pos="-3 0 1" size=".1 2 1"/>
    <geom name="post" conaffinity="0" type="cylinder" pos="0 -3 1" size=".1 1" group="3"/>
    <body name="globe" mocap="true" pos="3 0 2"><geom name="globe" size=".3"/></body>
    <body name="tilted" mocap="true" pos="0 4 1" euler="30 0 0">
      <geom name="tilted" type="cylinder" size=".2 .3"/>
    </body>
    """
    + FLAG,
    TENDON
    + SENSORS
    + ACTUATORS
    + EQUALITIES
    + SKIN
    + '<contact><exclude body1="arm" body2="hand"/><pair geom1="post" geom2="box"/></contact>',
    FEW_PAIRS + PID + '<option integrator="implicit" solver="PGS" density="1.2"/>',
)


def touched(content: str, centre: np.ndarray, radius: float) -> dict[str, float]:
    """What a ball touches in C MuJoCo, and how deeply, [m]."""
    spec = mujoco.MjSpec.from_string(content)
    ball = spec.worldbody.add_body(name="ball", pos=centre)
    ball.add_freejoint()
    ball.add_geom(name="ball", size=[radius, 0, 0], contype=1)
    model = spec.compile()
    mujoco.mj_forward(model, data := mujoco.MjData(model))
    found: dict[str, float] = {}
    for contact in data.contact:
        if (contact.geom < 0).any():  # of a flex
            continue
        names = {model.geom(g).name for g in contact.geom}
        if "ball" in names and contact.dist < 0:
            (other,) = names - {"ball"}
            found[other] = min(contact.dist, found.get(other, 0.0))
    return found


PLACES = np.array(
    [
        *([0, 0, 3], [1.0, 0.0, 0.62], [1.5, 0.02, 0.59], [0, 2, 1.0]),
        *([-2.88, 1.0, 1.0], [5, 5, 0.02], [3, 0, 2.35]),
        # 3 cm out of the side of the tilted one, and 4 cm out of its top.
        frames.rotation_matrix(frames.quat_from_rpy(np.array([np.pi / 6, 0, 0])))
        @ [0.0, -0.23, 0.34]
        + [0, 4, 1],
    ]
)


@pytest.mark.filterwarnings("ignore:MJX", "ignore:flex")
def test_drones_touch_what_a_ball_touches_in_c(tmp_path: Path) -> None:
    """Also bodies that the world can move; after a reset, and in a function of one's own, too."""
    (tmp_path / "world.xml").write_text(CROWD)
    sim = Sim(n_worlds=len(PLACES), n_drones=1, scene=str(tmp_path / "world.xml"))
    shape = sim.mj_model.geom("col_sphere:0")
    wanted = [touched(CROWD, centre, shape.size[0]) for centre in PLACES]
    assert sum(map(len, wanted)) >= 6 and [*wanted[-1]] == ["tilted"]
    for _ in range(2):
        states = sim.data.states
        pos = jnp.asarray(PLACES - shape.pos, states.pos.dtype)[:, None]
        sim.data = sim.data.replace(states=states.replace(pos=pos))
        for place in range(len(PLACES)):
            found = {
                (set(contact.geoms) - {"col_sphere:0"}).pop(): contact.distance
                for contact in reversed(sim.contact_list(place, "drone:0"))
            }
            assert found == pytest.approx(wanted[place], abs=1e-4)
        _, posed = sync_sim2mjx(sim.data, sim.mjx_data, sim.mjx_model)
        distance = sim.contact_slots().distance
        np.testing.assert_allclose(contacts(posed).dist, distance, atol=1e-6)
        moved = posed.mocap_pos[:, :2]
        np.testing.assert_allclose(moved, [[[3, 0, 2], [0, 4, 1]]] * len(PLACES))
        sim.reset()


@pytest.mark.filterwarnings("ignore:MJX")
def test_depth_sees_the_world_as_it_is(tmp_path: Path) -> None:
    head = PID + '<default><geom contype="0" conaffinity="0"/></default>'
    (tmp_path / "world.xml").write_text(world(tail=TENDON + SENSORS + ACTUATORS, head=head))
    sim = Sim(scene=str(tmp_path / "world.xml"))
    depth = render_depth(sim, "above", (8, 8))
    assert 2.399 < np.asarray(depth[0]).min() < 2.7  # the box
    assert depth[0, 7, 0] == pytest.approx(3.0, abs=1e-3)  # the floor


def test_sensors_that_mjx_lacks_are_refused() -> None:
    spec = mujoco.MjSpec.from_string(world(tail=TENDON + SENSORS))
    model = spec.compile()
    fitted, start = fitted_to_mjx(spec, model, [])
    backend = MjxBackend(model, mjx.put_model(fitted), mjx.put_data(fitted, start))
    backend.check_sensor(model.sensor("place").id)
    with pytest.raises(ValueError, match=r"MJX has no sensor like 'own' \(mjSENS_USER\)"):
        backend.check_sensor(model.sensor("own").id)
