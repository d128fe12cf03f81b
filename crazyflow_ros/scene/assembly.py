"""Assembly of the scene: any number of drones in a world, as a MuJoCo specification.

The drawing in a drone's folder holds shapes, frames and sensors; masses, inertias and limits come
from the figures there. Every element of the drone called cf0 has the suffix ":cf0". Drones share
their materials, which carry the drone model's name as a prefix; only LEDs have their own materials.
"""

from __future__ import annotations

import math
import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from crazyflow_ros.checks.limits import shown_path, unknown
from crazyflow_ros.drones import AnyDrone, drawing_of, load_drone, model_name, resolve
from crazyflow_ros.resources import resource
from crazyflow_ros.scene.description import Description, NotADescription, read
from crazyflow_ros.scene.drone_mjcf import LED, DroneMjcf, load_drawing, numbers
from crazyflow_ros.scene.frames import xyzw_to_wxyz

_PER_DRONE = {"worldbody", "sensor", "actuator"}  # drones share the other sections of the drawing
_NEEDED_TO_READ = {"compiler", "default"}
_GROUP = 64  # drones in a specification; see `_swarms`
_REFERENCES = {"name", "site", "objname", "joint"}  # attributes that get the drone's suffix
_MANY_DRONES = 64  # number of drones from which MJX collides only the nearest pairs of geoms


def build_spec(
    drone_model: AnyDrone | Sequence[AnyDrone],
    names: Sequence[str],
    *,
    scene: str | Path | Description = "floor",
    mocap: bool = False,
    fused: bool = False,
    poses: ArrayLike | None = None,
) -> mujoco.MjSpec:
    """Assemble a scene with one drone per name.

    With `mocap`, only poses drive the drones, as the batched MJX scene requires: no joints, no
    sensors, and a sphere as collision shape (see also `unweld`). Otherwise, drone cf0 has the free
    joint "free:cf0", rotor joints "rotor0:cf0"..., velocity actuators of the same names (ctrl:
    rotor speed [rad/s]), the sensors "gyro:cf0", "accelerometer:cf0" and "orientation:cf0", and a
    box as collision shape.

    Args:
        drone_model: Name of the drone model, as in `crazyflow_ros.drones.Drone`, or path of a
            drone's folder; or one for each drone.
        names: Names of the drones: letters, digits and underscores.
        scene: Name of a scene in `urdf_mjcf/`, or path of an MJCF or URDF file; or a description
            that was read before.
        mocap: See above.
        fused: Draw a drone as one box, which saves memory in MJX; only with `mocap`.
        poses: Initial position [m] and attitude (xyzw) in the world, shape (len(names), 7), as
            body poses and keyframe "home". Default: upright on the floor, on a 1 m grid.

    Returns:
        The specification, to be extended by the caller and compiled.

    Raises:
        ValueError: Unknown drone model or scene, invalid names or poses, or the scene refers to a
            drone that is not there.
    """
    _check_names(names)
    description = read_scene(scene)
    _check_references(description, names)
    try:
        spec = description.spec()
        _confine_settings(spec)
    except ValueError as error:
        where = "" if description.path is None else f" {str(description.path)!r}"
        raise ValueError(f"scene{where}: {error}") from None
    if isinstance(drone_model, str | os.PathLike):
        models = [resolve(drone_model)] * len(names)
    else:
        models = [resolve(model) for model in drone_model]
    if len(models) != len(names):
        raise ValueError(
            f"give one drone model, or one for each of {len(names)} drones, got {len(models)}"
        )
    heights = np.array([-load_drone(model)["geometry"]["foot_z"] for model in models])
    resolved = _grid(heights) if poses is None else _checked_poses(poses, len(names))
    start = 0
    for model, group in groupby(models):  # only neighbours of the same model, to keep the order
        part = slice(start, start := start + len(list(group)))
        drawing = load_drawing(model, mocap=mocap, fused=fused)
        try:
            swarms = _swarms(drawing, names[part], resolved[part])
            if "/" in model:  # a user's drawing, whose errors are found only now
                swarms[0].copy().compile()
        except ValueError as error:
            reason = " ".join(str(error).split())
            raise ValueError(f"{drawing_of(model)[0]}: {reason}") from None
        prefix = f"{model_name(model)}{part.start or ''}/"
        for swarm in swarms:
            spec.attach(swarm, prefix=prefix, frame=spec.worldbody.add_frame())
        _drop_prefix(spec, prefix)
    # The caller may attach the same body several times, as in Crazyflow's documentation.
    spec.copy_during_attach = True
    if mocap:
        _fit_to_mjx(spec, len(names))
    elif spec.key("home") is None:
        spec.add_key(name="home")  # without values it holds the initial poses
    return spec


def scenes() -> dict[str, Path]:
    """Return the scenes of the package, by name."""
    return {path.stem: path for path in sorted(resource("urdf_mjcf").glob("*.xml"))}


def scene_path(scene: str | Path) -> Path:
    """Return the file of a scene.

    Args:
        scene: Name of a scene in `urdf_mjcf/`, or path of an MJCF file.

    Raises:
        ValueError: The scene does not exist.
    """
    known = scenes()
    path = known.get(str(scene), Path(scene))
    if not path.is_file() and path.name != str(scene):
        raise ValueError(f"there is no scene {shown_path(path)}")
    if not path.is_file():
        raise ValueError(f"{unknown('scene', scene, known)}; nor is it a file")
    return path


def read_scene(scene: str | Path | Description) -> Description:
    """Read a scene.

    Args:
        scene: As for `build_spec`.

    Raises:
        ValueError: The scene does not exist, or is refused.
    """
    if isinstance(scene, Description):
        return scene
    path = scene_path(scene)
    try:
        return read(path)
    except NotADescription as error:
        raise ValueError(f"scene {str(path)!r} is not XML: {error}") from None
    except (OSError, ValueError) as error:
        raise ValueError(f"scene {str(path)!r}: {error}") from None


def unweld(model: mujoco.MjModel, names: Sequence[str]) -> None:
    """Make MJX report contacts of mocap drones, but none between parts of the scenery.

    MuJoCo treats mocap bodies as parts of the world, which does not collide with itself; MJX treats
    some of them as separate bodies. This function changes the model in place: each drone gets its
    own weld id, other mocap bodies get that of the world. Call it before `mjx.put_model`.
    """
    roots = np.asarray(model.body_rootid)
    model.body_weldid[model.body_mocapid[roots] >= 0] = 0
    for name in names:
        root = model.body(f"drone:{name}").id
        model.body_weldid[roots == root] = root


def _confine_settings(spec: mujoco.MjSpec) -> None:
    """Keep the world's settings for all bodies and geoms from acting on drones in it."""
    compiler = spec.compiler
    if compiler.discardvisual or compiler.fusestatic:
        spec.compile()  # applies both settings to the specification
        compiler.discardvisual = compiler.fusestatic = False
    compiler.settotalmass = -1.0  # nothing in the world moves


def _check_names(names: Sequence[str]) -> None:
    if isinstance(names, str) or not names:
        raise ValueError(f"drones must be a list with at least one name, got {names!r}")
    for name in names:
        if not re.fullmatch(r"\w+", name, re.ASCII):
            rule = "may have only letters, digits and underscores"
            raise ValueError(f"the name of a drone {rule}, got {name!r}")
    twice = sorted({name for name in names if list(names).count(name) > 1})
    if twice:
        raise ValueError(f"drone names must differ, given more than once: {', '.join(twice)}")


def _check_references(scene: Description, names: Sequence[str]) -> None:
    """Check that the drones are there to which a scene ties something."""
    missing = [name for name in scene.drones if name not in names]
    if missing:
        what = "the scene" if scene.path is None else f"scene {scene.path.stem!r}"
        needs = f"needs the drone{'s' * (len(scene.drones) > 1)} {', '.join(scene.drones)}"
        raise ValueError(f"{what} {needs}: there is no {', '.join(missing)}")


def _grid(heights: np.ndarray) -> np.ndarray:
    """Return upright poses (n_drones, 7) on a centred 1 m grid at heights (n_drones,) [m]."""
    n_drones = len(heights)
    columns = math.ceil(math.sqrt(n_drones))
    row, column = np.divmod(np.arange(n_drones), columns)
    poses = np.zeros((n_drones, 7))
    poses[:, 0] = column - column.mean()
    poses[:, 1] = row - row.mean()
    poses[:, 2] = heights
    poses[:, 6] = 1.0
    return poses


def _checked_poses(poses: ArrayLike, n_drones: int) -> np.ndarray:
    checked = np.asarray(poses, dtype=float)
    if checked.shape != (n_drones, 7):
        raise ValueError(f"poses must have shape ({n_drones}, 7), got {checked.shape}")
    if not np.isfinite(checked).all() or not np.linalg.norm(checked[:, 3:], axis=1).all():
        raise ValueError(f"poses must be finite, and quaternions not zero, got {checked}")
    return checked


def _swarms(drawing: DroneMjcf, names: Sequence[str], poses: np.ndarray) -> list[mujoco.MjSpec]:
    """Return specifications of up to `_GROUP` drones, to be attached with the same prefix.

    MuJoCo lists all elements of a specification anew for each element that it reads, so the time
    for a single specification would grow with the square of the number of drones.

    Raises:
        ValueError: MuJoCo refuses the drawing.
    """
    shared, of_drone = _templates(drawing.mjcf)
    classes = {own.get("class", "main") for own in drawing.mjcf.iter("default")} | {"main"}
    swarms = []
    for start in range(0, len(names), _GROUP):
        part = slice(start, start + _GROUP)
        if start:  # assets are in the first group, the rest is needed to read a drone
            shared = [section for section in shared if section.tag in _NEEDED_TO_READ]
        xml = [ET.tostring(section, encoding="unicode") for section in shared]
        attitudes = xyzw_to_wxyz(poses[part, 3:])
        xml += [
            of_drone.format(name=name, position=numbers(position), attitude=numbers(attitude))
            for name, position, attitude in zip(
                names[part], poses[part, :3], attitudes, strict=True
            )
        ]
        text = f"<mujoco>{''.join(xml)}</mujoco>"
        swarms.append(swarm := mujoco.MjSpec.from_string(text, assets=dict(drawing.assets)))
        for own in classes if start else []:  # their names have to differ in the scene
            swarm.find_default(own).name += str(start)
    return swarms


def _templates(drawing: ET.Element) -> tuple[list[ET.Element], str]:
    """Return the sections that all drones share, and the MJCF of the others as a template.

    The template's fields are `name`, `position` and `attitude`. This changes the drawing.
    """
    body = drawing.find("worldbody/body")
    assert body is not None
    body.set("pos", "{position}")
    body.set("quat", "{attitude}")
    shared, per_drone = [], []
    leds = ET.Element("asset")
    for assets in drawing.findall("asset"):
        leds.extend(own := [part for part in assets if part.get("name", "").startswith(LED)])
        for part in own:
            assets.remove(part)
    for section in (*drawing, leds):
        if section.tag in _PER_DRONE or section is leds:
            for element in section.iter():
                for key in _REFERENCES & element.attrib.keys():
                    element.set(key, f"{element.get(key)}:{{name}}")
                if element.get("material", "").startswith(LED):
                    element.set("material", f"{element.get('material')}:{{name}}")
            per_drone.append(ET.tostring(section, encoding="unicode"))
        else:
            shared.append(section)
    return shared, "".join(per_drone)


def _fit_to_mjx(spec: mujoco.MjSpec, n_drones: int) -> None:
    """Satisfy the requirements of MJX: at least one degree of freedom, and not too many pairs."""
    anchor = spec.worldbody.add_body(name="anchor", mass=1.0, inertia=[1.0, 1.0, 1.0])
    anchor.explicitinertial = True
    joint = anchor.add_joint(name="anchor", type=mujoco.mjtJoint.mjJNT_SLIDE)
    joint.limited = mujoco.mjtLimited.mjLIMITED_FALSE  # whatever the world's defaults are
    if n_drones >= _MANY_DRONES:
        spec.add_numeric(name="max_geom_pairs", size=1, data=[2.0 * n_drones])


def _drop_prefix(spec: mujoco.MjSpec, prefix: str) -> None:
    """Remove the prefix from the names of the drones' elements; shared materials keep it."""
    # For each step through spec.geoms MuJoCo walks over the whole world, unlike for body.geoms.
    bodies = list(spec.bodies)
    geoms = [geom for body in bodies for geom in body.geoms]
    others = (part for body in bodies for part in (*body.joints, *body.sites, *body.cameras))
    for element in (*bodies, *geoms, *others, *spec.sensors, *spec.actuators):
        element.name = element.name.removeprefix(prefix)
    for led in (part for part in spec.materials if part.name.startswith(prefix + LED)):
        led.name = led.name.removeprefix(prefix)
    for geom in geoms:
        if geom.material.startswith(prefix + LED):
            geom.material = geom.material.removeprefix(prefix)
    for sensor in spec.sensors:
        sensor.objname = sensor.objname.removeprefix(prefix)
    for actuator in spec.actuators:
        actuator.target = actuator.target.removeprefix(prefix)
