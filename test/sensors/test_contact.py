"""Contacts: forces against weights, geometry against MuJoCo's contacts, times against free fall."""

from __future__ import annotations

import logging
import math
from typing import Any

import mujoco
import numpy as np
import pytest

from crazyflow_ros.sensors import (
    ContactMatch,
    ContactSensor,
    ContactSensorCfg,
    MujocoBackend,
    ShapeRecorder,
)

G = 9.81
EVERY = ("found", "force", "torque", "dist", "pos", "normal", "tangent")
FLOOR = ContactMatch("geom", "floor")

TABLE = """
<mujoco>
  <option gravity="0 0 -9.81"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1" euler="{tilt} 0 0" friction="1 .005 .0001"/>
    <geom name="wall:w" type="box" size=".1 1 1" pos="2 0 1"/>
    <body name="cube:a" pos="0 0 {height}"><freejoint/>
      <geom name="cube:a" type="box" size=".1 .1 .1" mass="2" {more}/>
      <body name="lid:a" pos="0 0 .15"><geom name="lid:a" type="sphere" size=".05" mass="1"/></body>
    </body>
    <body name="ball:b" pos="1 0 {height}"><freejoint/>
      <geom name="ball:b" type="sphere" size=".1" mass="0.5" {more}/>
    </body>
  </worldbody>
</mujoco>"""


class Table:
    """A cube with a lid and a ball, 3 kg and 0.5 kg, in one or more worlds."""

    def __init__(
        self, primary: ContactMatch, height: float = 0.1, tilt: float = 0.0, more: str = "",
        worlds: int = 1, **options: Any,
    ) -> None:  # fmt: skip
        cfg = ContactSensorCfg(name="touch", primary=primary, **options)
        self.sensor: ContactSensor = cfg.build()
        spec = mujoco.MjSpec.from_string(TABLE.format(height=height, tilt=tilt, more=more))
        self.sensor.edit_spec(spec)
        self.model = spec.compile()
        self.worlds = [mujoco.MjData(self.model) for _ in range(worlds)]
        self.data = self.worlds[0]
        self.sensor.initialize(MujocoBackend(self.model, self.worlds))

    def run(self, steps: int) -> Table:
        """Simulate, and update after each step."""
        for _ in range(steps):
            for data in self.worlds:
                mujoco.mj_step(self.model, data)
                mujoco.mj_forward(self.model, data)
            self.sensor.update(self.model.opt.timestep)
        return self


def cube(**options: Any) -> ContactMatch:
    return ContactMatch("body", "cube:a", **options)


# Forces


def test_what_rests_presses_down_with_its_weight() -> None:
    table = Table(
        ContactMatch("subtree", (".*",), entity="a", exclude=("lid",)),
        secondary=FLOOR, reduce="netforce", fields=("found", "force", "torque", "pos"),
    ).run(1500)  # fmt: skip
    data = table.sensor.data
    np.testing.assert_allclose(data.force, [[[0, 0, -3 * G]]], atol=1e-3)
    np.testing.assert_array_equal(data.found, [[4]])  # its corners
    np.testing.assert_allclose(data.torque, np.zeros((1, 1, 3)), atol=1e-3)
    np.testing.assert_allclose(data.pos, [[[0, 0, 0]]], atol=1e-3)


def test_slots_share_the_weight_and_are_those_of_the_greatest_force() -> None:
    table = Table(cube(), num_slots=5, fields=EVERY, global_frame=True).run(1500)
    data = table.sensor.data
    np.testing.assert_array_equal(data.found, [[4, 4, 4, 4, 0]])
    np.testing.assert_allclose(data.force.sum(axis=1), [[0, 0, -3 * G]], atol=1e-3)
    assert (np.diff(np.linalg.norm(data.force[0], axis=1)) <= 1e-12).all()
    for field in EVERY:
        assert not getattr(data, field)[0, 4].any()
    single = Table(cube()).run(1500).sensor.data
    np.testing.assert_allclose(single.force[0, 0], np.abs(data.force[0, 0]).max() * np.eye(3)[0],
                               atol=1e-2)  # fmt: skip


def test_in_the_axes_of_the_contact_or_of_the_world() -> None:
    """A ball held on a slope by a wall of friction: its weight is along -z in the world."""
    options: dict[str, Any] = {"tilt": 10.0, "more": 'condim="6" friction="1 .5 .5"'}
    ball = ContactMatch("geom", "ball:b")
    local = Table(ball, fields=("force", "normal", "tangent"), **options).run(1500).sensor.data
    world = Table(ball, fields=("force",), global_frame=True, **options).run(1500).sensor.data
    assert world.normal is None  # read, but not asked for
    n, t = local.normal[0, 0], local.tangent[0, 0]
    np.testing.assert_allclose(
        world.force[0, 0], np.column_stack([n, t, np.cross(n, t)]) @ local.force[0, 0], atol=1e-9
    )
    np.testing.assert_allclose(world.force[0, 0], [0, 0, -0.5 * G], atol=0.05)
    assert local.force[0, 0, 0] == pytest.approx(0.5 * G * math.cos(math.radians(10)), abs=0.05)


STACK = """
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1" condim="6" friction="1 .02 .02"/>
    <body name="a" pos="0 0 .1"><freejoint/><geom name="a" type="box" size=".1 .1 .1" mass="2"/>
      <body name="ear" pos="0 .25 0"><geom type="sphere" size=".1" mass=".3"/></body></body>
    <body name="b" pos=".05 .02 .29"><freejoint/>
      <geom name="b" type="box" size=".1 .1 .1" mass="1" euler="0 0 20"/></body>
  </worldbody>
</mujoco>"""


def test_all_fields_and_reductions_are_those_of_mujocos_contact_sensors() -> None:
    """Sliding on the floor and on each other, seen from either side."""
    spec, objects = mujoco.MjSpec.from_string(STACK), mujoco.mjtObj
    modes = {"geom": objects.mjOBJ_GEOM, "body": objects.mjOBJ_BODY, "subtree": objects.mjOBJ_XBODY}
    reductions, cases = ("none", "mindist", "maxforce", "netforce"), {}
    for mode, primary in (("geom", "a"), ("body", "b"), ("subtree", "a"), ("geom", "floor")):
        for other in (None, "b" if primary != "b" else "a"):
            for number, reduce in enumerate(reductions):
                name = f"{mode} {primary} {other} {reduce}"
                slots = 1 if reduce == "netforce" else 3
                native = spec.add_sensor(name=name, type=mujoco.mjtSensor.mjSENS_CONTACT)
                native.objtype, native.objname = modes[mode], primary
                if other is not None:
                    native.reftype, native.refname = objects.mjOBJ_BODY, other
                native.intprm[:3] = 127, number, slots
                fields = EVERY if reduce != "netforce" else ("found", "force", "torque", "pos")
                cases[name] = ContactSensorCfg(
                    name=name, primary=ContactMatch(mode, primary), fields=fields, reduce=reduce,
                    secondary=None if other is None else ContactMatch("body", other),
                    num_slots=slots,
                )  # fmt: skip
    model = spec.compile()
    data = mujoco.MjData(model)
    data.qvel[[0, 6]] = 1, -1
    mujoco.mj_step(model, data, 5)
    mujoco.mj_forward(model, data)
    assert data.ncon > 8
    for name, cfg in cases.items():
        (sensor := cfg.build()).initialize(MujocoBackend(model, data))
        native = data.sensor(name).data.reshape(cfg.num_slots, 17)
        starts = dict(zip(EVERY, (0, 1, 4, 7, 8, 11, 14)))
        for field in cfg.fields:
            values = np.asarray(getattr(sensor.data, field)[0], float)
            columns = native[:, starts[field] :][:, : values[0].size]
            np.testing.assert_allclose(
                values.reshape(columns.shape), columns, atol=1e-9, err_msg=f"{name}: {field}"
            )


# Times


def test_air_time_of_a_fall_and_a_bounce() -> None:
    drop = 0.3
    table = Table(
        ContactMatch("geom", "ball:b"), height=0.1 + drop, more='solref="-5000 -10"',
        track_air_time=True, fields=("found",),
    )  # fmt: skip
    dt, sensor = table.model.opt.timestep, table.sensor
    began, ended = [], []
    for step in range(1, 500):
        table.run(1)
        if sensor.compute_first_contact(dt)[0, 0]:
            began.append(step * dt)
            assert sensor.data.last_air_time[0, 0] == pytest.approx(began[-1] - (ended or [dt])[-1]
                                                                    + dt)  # fmt: skip
        if sensor.compute_first_air(dt)[0, 0] and step > 1:
            ended.append(step * dt)
            touched = ended[-1] - began[-1] + dt
            assert sensor.data.last_contact_time[0, 0] == pytest.approx(touched)
        in_contact = bool(sensor.data.found[0, 0])
        assert (sensor.data.current_air_time[0, 0] == 0) == in_contact
        assert (sensor.data.current_contact_time[0, 0] > 0) == in_contact
    assert began[0] == pytest.approx(math.sqrt(2 * drop / G), abs=2 * dt)
    assert len(began) > 1  # it has bounced
    # A flight between two contacts: twice the time of falling at the speed of leaving.
    assert 0.5 * drop < G / 8 * (began[1] - ended[0]) ** 2 < drop


def test_the_tolerance_of_a_first_contact() -> None:
    table = Table(ContactMatch("geom", "ball:b"), height=0.0999, track_air_time=True).run(1)
    sensor, dt = table.sensor, table.model.opt.timestep
    assert sensor.compute_first_contact(dt) and not sensor.compute_first_contact(dt, abs_tol=0.0)
    assert not sensor.compute_first_contact(0.5 * dt)
    assert sensor.compute_first_contact(0.5 * dt, abs_tol=0.6 * dt)
    table.run(1)  # it lasts for two steps now
    assert not sensor.compute_first_contact(dt)
    assert sensor.compute_first_contact(dt, abs_tol=1.1 * dt)
    assert not sensor.compute_first_air(dt, abs_tol=10 * dt)


def test_a_reset_is_of_the_given_worlds() -> None:
    table = Table(
        ContactMatch("geom", "ball:b"), worlds=3, track_air_time=True, history_length=2,
        height=0.0999,
    ).run(5)  # fmt: skip
    before = table.sensor.data
    assert (before.current_contact_time > 0).all() and before.force_history.any(
        axis=(1, 2, 3)
    ).all()
    table.sensor.reset([1])
    after = table.sensor.data
    np.testing.assert_array_equal(after.current_contact_time[:, 0] > 0, [True, False, True])
    np.testing.assert_array_equal(after.force_history.any(axis=(1, 2, 3)), [True, False, True])
    assert (before.current_contact_time > 0).all()  # what was read stays
    table.sensor.reset()
    assert not table.sensor.data.current_contact_time.any()


def test_history_has_the_newest_first() -> None:
    fields = ("force", "torque", "dist")
    table = Table(cube(), height=0.0995, fields=fields, history_length=3, num_slots=2)
    seen: dict[str, list[np.ndarray]] = {field: [] for field in fields}
    for _ in range(4):
        table.run(1)
        for field in fields:
            seen[field].insert(0, getattr(table.sensor.data, field)[0])
    assert table.sensor.data.force_history.shape == (1, 2, 3, 3)
    assert table.sensor.data.dist_history.shape == (1, 2, 3)
    for field in fields:
        past = getattr(table.sensor.data, f"{field}_history")[0]
        np.testing.assert_array_equal(past, np.stack(seen[field][:3], axis=1))
    plain = Table(cube()).run(1).sensor.data
    assert plain.force_history is None and plain.current_air_time is None


# Drawing


@pytest.mark.parametrize("reduce", ["netforce", "maxforce"])
def test_forces_on_the_primary_are_drawn_where_they_act(reduce: Any) -> None:
    table = Table(cube(), reduce=reduce, fields=("found",), debug_vis=True).run(1500)
    table.sensor.debug_vis(recorder := ShapeRecorder(table.model))
    (sphere,), (arrow,) = recorder.spheres, recorder.arrows
    assert abs(sphere.center[2]) < 1e-2
    push = arrow.end - arrow.start
    share = 1.0 if reduce == "netforce" else 0.25  # of four corners
    length = table.model.vis.map.force / table.model.stat.meanmass * 3 * G * share
    np.testing.assert_allclose(push, [0, 0, length], rtol=0.1, atol=1e-3 * length)
    assert table.sensor.data.force is None  # read, but not asked for


# Patterns


def names(match: ContactMatch) -> tuple[str, ...]:
    return Table(match).sensor.primary_names


def test_primaries_expand_in_the_order_of_the_model() -> None:
    assert names(ContactMatch("geom", ("lid", "c.*"), entity="a")) == ("cube:a", "lid:a")
    assert names(ContactMatch("geom", ".*", entity="a", exclude=("l.d",))) == ("cube:a",)
    assert names(ContactMatch("body", ("ball:b", "cube:a"))) == ("cube:a", "ball:b")
    table = Table(ContactMatch("body", ("ball:b", "cube:a")), num_slots=3).run(200)
    assert table.sensor.data.found.shape == (1, 6)
    assert (table.sensor.data.found[0, :3] > 1).all()  # the cube's corners
    np.testing.assert_array_equal(table.sensor.data.found[0, 3:], [1, 0, 0])


def test_a_subtree_is_a_body_with_those_below_it() -> None:
    for mode, touches in (("subtree", True), ("body", False)):
        table = Table(ContactMatch(mode, "cube:a"), secondary=ContactMatch("geom", "wall:w"))
        table.data.qpos[:7] = [1.9, 0, 1, math.sqrt(0.5), 0, math.sqrt(0.5), 0]  # lid to the wall
        table.data.qpos[0] = 1.9 - 0.05 - 0.15 + 0.001
        mujoco.mj_forward(table.model, table.data)
        assert bool(table.sensor.data.found[0, 0]) == touches


def test_secondary_policies(caplog: pytest.LogCaptureFixture) -> None:
    several = ContactMatch("geom", ".*", entity="a")  # cube:a, then lid:a

    def touches(policy: Any, gap: float) -> bool:
        table = Table(ContactMatch("geom", "ball:b"), secondary=several, secondary_policy=policy)
        table.data.qpos[7:10] = [gap, 0, 0.1]
        mujoco.mj_forward(table.model, table.data)
        return bool(table.sensor.data.found[0, 0])

    assert touches("first", 0.199) and not touches("first", 0.3)
    assert touches("any", 0.3)  # the floor, too
    with pytest.raises(ValueError, match="secondary matches several: cube:a, lid:a"):
        touches("error", 0.3)
    with caplog.at_level(logging.INFO):
        Table(cube(), secondary=FLOOR, debug=True)
    assert "touch: ('cube:a',) against floor" in caplog.text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"primary": ContactMatch("geom", "cup")},
            "no geom matches 'cup'; there are floor, wall:w",
        ),
        ({"primary": ContactMatch("body", "cup", entity="a")}, "no body of 'a' matches 'cup'"),
        ({"primary": cube(exclude=("cube:a",))}, "leaves nothing of cube:a"),
        ({"secondary": ContactMatch("geom", ("floor",))}, "secondary takes one pattern"),
        ({"fields": ("found", "heat")}, "there is no field 'heat', only found"),
        ({"reduce": "sum"}, "there is no reduction 'sum'"),
        ({"secondary_policy": "last"}, "no secondary_policy 'last', only first"),
        ({"num_slots": 0}, "num_slots must be at least 1, got 0"),
        ({"reduce": "netforce", "fields": ("normal",)}, "the sum of all contacts has no normal"),
        ({"reduce": "netforce", "num_slots": 2}, "the sum of all contacts has no 2 slots"),
        ({"track_air_time": True, "fields": ("force",)}, "track_air_time needs the field 'found'"),
        ({"history_length": 2, "fields": ("found",)}, "history_length needs the field force"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Table(**{"primary": cube()} | options)


def test_bad_matches_are_refused() -> None:
    with pytest.raises(ValueError, match="there is no mode 'limb'"):
        ContactMatch("limb", "x")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"'\(' is not a regular expression"):
        ContactMatch("geom", "(", entity="a")
    with pytest.raises(RuntimeError, match="touch: needs track_air_time"):
        Table(cube()).sensor.compute_first_air(0.1)
