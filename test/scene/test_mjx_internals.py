"""The parts of MJX that it does not export: what breaks with another version of it."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from mujoco import mjx

from crazyflow_ros.scene import mjx_internals

CYLINDER, FIELD, SPHERE = (
    int(getattr(mujoco.mjtGeom, f"mjGEOM_{shape}")) for shape in ("CYLINDER", "HFIELD", "SPHERE")
)
BALLS = """<mujoco><worldbody>
  <geom name="a" size="0.1"/>
  <body pos="0.1 0 0"><freejoint/><geom name="b" size="0.1"/></body>
</worldbody></mujoco>"""


@pytest.fixture(scope="module")
def model() -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(BALLS)


def test_contacts_of_mjx_are_those_of_mujoco(model: mujoco.MjModel) -> None:
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    found, expected = mjx_internals.contacts(mjx.put_data(model, data)), data.contact
    assert len(expected.dist) == 1
    for field in ("dist", "geom", "pos", "includemargin", "dim"):
        np.testing.assert_allclose(getattr(found, field), getattr(expected, field), atol=1e-6)
    np.testing.assert_allclose(found.frame.reshape(1, 9), expected.frame, atol=1e-6)


def test_mjx_says_which_geoms_can_meet_and_which_shapes_it_knows(model: mujoco.MjModel) -> None:
    assert list(mjx_internals.geom_pairs(model)) == [(0, 1, -1)]
    assert mjx_internals.has_collision_fn(SPHERE, SPHERE)
    assert not mjx_internals.has_collision_fn(FIELD, CYLINDER)


def test_forces_that_another_mjx_does_not_report_are_refused_by_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr("mujoco.mjx._src.support.contact_force_dim")
    with pytest.raises(NotImplementedError, match=f"MJX {mujoco.__version__} does not report"):
        mjx_internals.contact_forces(None, None)
