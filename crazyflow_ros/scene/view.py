"""The views from which pictures are taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np

from crazyflow_ros.checks.limits import unknown

_FREE = ("distance", "azimuth", "elevation", "lookat", "trackbodyid")
_PLAIN = ("type", "fixedcamid", "trackbodyid", "distance", "azimuth", "elevation", "orthographic")


def view_of(
    model: mujoco.MjModel, camera: int | str, config: Mapping[str, Any] | None
) -> mujoco.MjvCamera:
    """Return the view of a camera of the model, or of the free camera.

    Args:
        model: The model.
        camera: Name or id, -1 for the free camera.
        config: Where the free camera is: `distance` [m], `azimuth` and `elevation` [degrees],
            `lookat` (3,) [m], and `trackbodyid`, a body to follow. Other cameras ignore it.

    Raises:
        ValueError: There is no such camera, or the configuration has an unknown name or a number
            that is not finite.
    """
    view = mujoco.MjvCamera()
    mujoco.mjv_defaultFreeCamera(model, view)
    number = camera_id(model, camera)
    _configure(view, {} if config is None else config, model.nbody)
    if number >= 0:
        view.type, view.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED, number
    return view


def camera_id(model: mujoco.MjModel, camera: int | str) -> int:
    """Return the id of a camera, -1 for the free camera.

    Raises:
        ValueError: There is no such camera.
    """
    names = [model.camera(number).name for number in range(model.ncam)]
    if isinstance(camera, str):
        if camera not in names:
            raise ValueError(unknown("camera", camera, names))
        return names.index(camera)
    if not -1 <= camera < model.ncam:
        raise ValueError(f"camera must be -1 to {model.ncam - 1}, got {camera}")
    return int(camera)


def move(view: mujoco.MjvCamera, there: mujoco.MjvCamera) -> None:
    """Change `view` in place to the view `there`."""
    for name in _PLAIN:
        setattr(view, name, getattr(there, name))
    view.lookat[:] = there.lookat


def _configure(view: mujoco.MjvCamera, config: Mapping[str, Any], n_bodies: int) -> None:
    for name, value in config.items():
        if name not in _FREE:
            raise ValueError(f"cam_config: {unknown('field', name, _FREE)}")
        numbers = np.asarray(value, float)
        if numbers.shape != ((3,) if name == "lookat" else ()) or not np.isfinite(numbers).all():
            kind = "three finite numbers" if name == "lookat" else "a finite number"
            raise ValueError(f"{name} in cam_config must be {kind}, got {value!r}")
        if name == "lookat":
            view.lookat[:] = numbers
        elif name == "trackbodyid":
            if not 0 <= numbers < n_bodies:
                raise ValueError(f"trackbodyid must be 0 to {n_bodies - 1}, got {value!r}")
            view.type, view.trackbodyid = mujoco.mjtCamera.mjCAMERA_TRACKING, int(numbers)
        else:
            setattr(view, name, float(numbers))
