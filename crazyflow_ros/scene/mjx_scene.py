"""The scene for MJX, without the parts that MJX lacks and that contacts and depth do not need."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence

import mujoco
import numpy as np

from crazyflow_ros.extras import extra
from crazyflow_ros.scene.assembly import unweld

with extra("mjx"):
    from mujoco import mjx

    from crazyflow_ros.scene.mjx_contacts import is_exact
    from crazyflow_ros.scene.mjx_internals import geom_pairs, has_collision_fn

_MOST_CLASSES = 31  # bits of contype
_NEUTRAL = {
    "actuator_biastype": (mjx.BiasType, mujoco.mjtBias.mjBIAS_NONE),
    "actuator_dyntype": (mjx.DynType, mujoco.mjtDyn.mjDYN_NONE),
    "actuator_gaintype": (mjx.GainType, mujoco.mjtGain.mjGAIN_FIXED),
    "actuator_trntype": (mjx.TrnType, mujoco.mjtTrn.mjTRN_JOINT),
}
_NET_FORCE = 3  # of contact sensors that add up several contacts
_WITHOUT_MARGIN = (mujoco.mjtGeom.mjGEOM_MESH, mujoco.mjtGeom.mjGEOM_HFIELD)


def fitted_to_mjx(
    spec: mujoco.MjSpec, model: mujoco.MjModel, names: Sequence[str]
) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Return a copy of a model that `mjx.put_model` takes, and data for `mjx.put_data`.

    Bodies, joints, geoms, sites, cameras and sensors keep their numbers, and readings their places.
    What MJX lacks is changed as follows:

    - Solver, integrator and flags become those that MJX has.
    - If it lacks the type of an actuator, all actuators are switched off; likewise constraints.
    - Sensors that it lacks measure nothing.
    - Flexes, and contacts between shapes for which it has no function, are left out, with a
      warning. A second warning names the shapes for which its function is approximate.

    Args:
        spec: The specification of the model, which stays as it is.
        model: The compiled model, likewise.
        names: Names of the drones, see `unweld`.
    """
    pairs = [
        pair
        for pair in range(model.npair)
        if not _collide(model.geom_type[[model.pair_geom1[pair], model.pair_geom2[pair]]])
    ]
    missing = [_pair_name(model, model.pair_geom1[i], model.pair_geom2[i]) for i in pairs]
    fitted = _compiled_without(spec, pairs) if model.nflex or pairs else copy.copy(model)
    data = mujoco.MjData(fitted)  # before plugins lose their sensors and actuators
    unweld(fitted, names)
    _fit_options(fitted.opt)
    _switch_off(fitted)
    meeting = list(geom_pairs(fitted))
    missing += _leave_out_pairs(fitted, meeting)
    _zero_margins(fitted)
    _keep_all_contacts(fitted)
    if model.nflex:
        left_out = [
            mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_FLEX, i) or f"number {i}"
            for i in range(model.nflex)
        ]
        text = f"MJX has no flexes: contacts and depth leave out {', '.join(left_out)}"
        warnings.warn(text, stacklevel=2)
    rough = [
        _pair_name(fitted, g1, g2)
        for g1, g2, _ in meeting
        if _collide(shapes := fitted.geom_type[[g1, g2]]) and not is_exact(tuple(shapes.tolist()))
    ]
    for shapes, what in (
        (missing, "no contacts between these shapes, which are left out"),
        (rough, "contacts between these shapes only roughly, and not all of them"),
    ):
        if shapes:
            text = f"MJX finds {what}: {', '.join(sorted(set(shapes)))}"
            warnings.warn(text, stacklevel=2)
    return fitted, data


def lacks_sensor(model: mujoco.MjModel) -> np.ndarray:
    """Return for each sensor whether MJX lacks it, (nsensor,) bool."""
    bodies = (mujoco.mjtObj.mjOBJ_BODY, mujoco.mjtObj.mjOBJ_XBODY)
    places = (*bodies, mujoco.mjtObj.mjOBJ_SITE)
    lacks = np.isin(model.sensor_objtype, places) | np.isin(model.sensor_reftype, bodies)
    lacks |= model.sensor_intprm[:, 1] == _NET_FORCE
    lacks &= model.sensor_type == mujoco.mjtSensor.mjSENS_CONTACT
    return np.asarray(lacks | ~np.isin(model.sensor_type, list(mjx.SensorType)))


def _compiled_without(spec: mujoco.MjSpec, pairs: list[int]) -> mujoco.MjModel:
    """Return the compiled model without flexes and some of the explicit pairs."""
    rest = spec.copy()
    of_flexes = (
        mujoco.mjtEq.mjEQ_FLEX,
        mujoco.mjtEq.mjEQ_FLEXVERT,
        mujoco.mjtEq.mjEQ_FLEXSTRAIN,
    )
    parts = [
        *(equality for equality in rest.equalities if equality.type in of_flexes),
        *(rest.pairs[i] for i in pairs),
        *rest.flexes,
    ]
    for part in parts:
        rest.delete(part)
    return rest.compile()


def _fit_options(options: mujoco.MjOption) -> None:
    is_fluid = options.density > 0 or options.viscosity > 0 or options.wind.any()
    implicit = (mujoco.mjtIntegrator.mjINT_IMPLICIT, mujoco.mjtIntegrator.mjINT_IMPLICITFAST)
    if options.integrator not in set(mjx.IntegratorType) or (
        is_fluid and options.integrator in implicit
    ):
        options.integrator = mujoco.mjtIntegrator.mjINT_EULER
    if options.solver not in set(mjx.SolverType):
        options.solver = mujoco.mjtSolver.mjSOL_NEWTON
    options.enableflags &= sum(mjx.EnableBit)


def _switch_off(model: mujoco.MjModel) -> None:
    """Switch off actuators, constraints and sensors of types that MJX lacks."""
    for field, (supported, neutral) in _NEUTRAL.items():
        lacks = ~np.isin(getattr(model, field), list(supported))
        if lacks.any():
            getattr(model, field)[lacks] = neutral
            model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ACTUATION
    lacks = ~np.isin(model.eq_type, list(mjx.EqType))
    if lacks.any():
        model.eq_type[lacks] = mujoco.mjtEq.mjEQ_CONNECT
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_EQUALITY
    lacks = lacks_sensor(model)
    model.sensor_type[lacks] = mujoco.mjtSensor.mjSENS_CLOCK
    model.sensor_needstage[lacks] = mujoco.mjtStage.mjSTAGE_NONE


def _collide(shapes: np.ndarray) -> bool:
    return bool(has_collision_fn(*sorted(map(int, shapes))))


def _leave_out_pairs(model: mujoco.MjModel, meeting: Sequence[tuple[int, int, int]]) -> list[str]:
    """Exclude contacts between geoms for which MJX has no function; return their shapes.

    Each combination of shape, contype and conaffinity gets a bit as its contype, and the bits of
    the combinations that it meets as its conaffinity.
    """
    missing = [
        (g1, g2) for g1, g2, pair in meeting if pair < 0 and not _collide(model.geom_type[[g1, g2]])
    ]
    if not missing:
        return []
    meets = np.flatnonzero(model.geom_contype | model.geom_conaffinity)
    fields = np.stack([model.geom_type, model.geom_contype, model.geom_conaffinity], axis=1)
    classes, number = np.unique(fields[meets], axis=0, return_inverse=True)
    if len(classes) > _MOST_CLASSES:
        return []  # then MJX refuses the model, and says why
    types_, contypes, affinities = classes.T
    allowed = (contypes[:, None] & affinities) | (affinities[:, None] & contypes) != 0
    for i, one in enumerate(types_):
        for j, other in enumerate(types_):
            allowed[i, j] &= _collide(np.array([one, other]))
    bits = 1 << np.arange(len(classes))
    model.geom_contype[meets] = (bits * allowed.any(axis=1))[number.ravel()]
    model.geom_conaffinity[meets] = (allowed * bits).sum(axis=1)[number.ravel()]
    return [_pair_name(model, g1, g2) for g1, g2 in missing]


def _pair_name(model: mujoco.MjModel, g1: int, g2: int) -> str:
    shapes = sorted(mujoco.mjtGeom(model.geom_type[g]).name for g in (g1, g2))
    return " and ".join(shape.removeprefix("mjGEOM_").lower() for shape in shapes)


def _keep_all_contacts(model: mujoco.MjModel) -> None:
    """Keep MJX from choosing among contacts by its own distances."""
    limit = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_NUMERIC, "max_contact_points")
    if limit >= 0:
        model.numeric_data[model.numeric_adr[limit]] = -1


def _zero_margins(model: mujoco.MjModel) -> None:
    """Zero the margins that MJX lacks: geoms touch where they overlap."""
    for g1, g2, pair in geom_pairs(model):
        if np.isin(model.geom_type[[g1, g2]], _WITHOUT_MARGIN).any():
            if pair < 0:
                model.geom_margin[[g1, g2]] = 0.0
            else:
                model.pair_margin[pair] = 0.0
