"""Pictures of the sensor messages from a flight through the room."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import mujoco
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse, Polygon

from crazyflow_ros.scene import scene_path
from crazyflow_ros.scene.frames import body_to_world, heading_to_world, yaw

if TYPE_CHECKING:
    from room import RoomFlight

_BEAM, _HIT, _PATH = "#f5b041", "#c0392b", "#1f77b4"
_FARTHEST = 5.0  # m, end of the colour scale of depths
_GAP = 1.5  # median periods; a longer interval means lost messages
_STYLE: dict[Any, Any] = {
    "axes.titlelocation": "left",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "savefig.dpi": 150,
}
_ROOM = {"xlim": (-3.4, 3.4), "ylim": (-2.9, 2.9)}  # m


def save_scan(flight: RoomFlight, path: Path) -> None:
    """Draw the scan in the middle of the flight, in a plan of the room and over the angle."""
    scans = flight.messages["scan"]
    placed = sorted(stamp for stamp in scans if stamp in flight.poses)
    stamp = placed[len(placed) // 2]
    scan, pose = scans[stamp], flight.poses[stamp]
    angles = scan.angle_min + scan.angle_increment * np.arange(len(scan.ranges))
    ranges = np.array(scan.ranges, float)
    level = np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=-1)
    seen = np.isfinite(ranges)
    hits = pose[:3] + body_to_world(pose[3:], level[seen] * ranges[seen, None])
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(11, 4.8), layout="constrained")
        above, around = figure.subplots(1, 2, width_ratios=[3, 2])
        _draw_room(above, f"Scan of {len(ranges)} rays at {stamp * 1e-9:.1f} s, from above")
        beams = [(pose[:2], hit) for hit in hits[:, :2]]
        above.add_collection(LineCollection(beams, colors=_BEAM, linewidths=0.3, zorder=2))
        above.plot(*hits[:, :2].T, ".", color=_HIT, markersize=3, zorder=4)
        _draw_drone(above, pose)
        around.plot(np.degrees(angles[seen]), ranges[seen], ".", color=_HIT, markersize=3)
        around.set(
            title="Ranges", xlabel="angle, positive to the left [degrees]", ylabel="range [m]",
            xlim=(-180, 180), xticks=range(-180, 181, 90), ylim=(0, None),
        )  # fmt: skip
        figure.savefig(path)


def save_cloud(flight: RoomFlight, path: Path) -> None:
    """Draw the points of all clouds from above, coloured by their height, and the flight.

    Its line has gaps where poses were lost.
    """
    points = []
    for stamp, cloud in flight.messages["cloud"].items():
        if stamp in flight.poses:
            pose = flight.poses[stamp]
            own = np.frombuffer(cloud.data, "<f4").reshape(-1, 3).astype(float)
            own = own[np.isfinite(own).all(axis=1)]
            points.append(pose[:3] + body_to_world(pose[3:], own))
    together = np.concatenate(points)
    together = together[np.argsort(together[:, 2])]  # higher points are drawn on top
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(9, 7), layout="constrained")
        axes = figure.subplots()
        _draw_room(axes, f"{len(together)} points of {len(points)} clouds, from above")
        x, y, height = together.T
        dots = axes.scatter(
            x, y, 1.5, height, cmap="viridis", vmin=0, vmax=2.5, linewidths=0, zorder=3
        )
        stamps = np.array(sorted(flight.poses))
        track = np.array([flight.poses[stamp] for stamp in stamps.tolist()])
        steps = np.diff(stamps)
        gaps = np.flatnonzero(steps > _GAP * np.median(steps)) + 1
        track = np.insert(track, gaps, np.nan, axis=0)
        axes.plot(*track[:, :2].T, color="white", linewidth=3, zorder=4)
        axes.plot(*track[:, :2].T, color=_HIT, linewidth=1.5, zorder=5, label="flight")
        axes.legend(loc="upper right")
        figure.colorbar(dots, label="height [m]", shrink=0.7)
        figure.savefig(path)


def save_pictures(flight: RoomFlight, moments: np.ndarray, camera: Path, depth: Path) -> None:
    """Draw camera and depth pictures of the same moments, the nearest to given times (K,) [ns]."""
    pictures, depths = (flight.messages[f"camera/{k}image_raw"] for k in ("", "depth/"))
    stamps = np.array(sorted(pictures.keys() & depths.keys()))
    picked = stamps[np.abs(stamps - moments[:, None]).argmin(axis=1)].tolist()
    for path, kept, title in ((camera, pictures, "Camera"), (depth, depths, "Depth")):
        with mpl.rc_context(_STYLE | {"axes.grid": False}):
            figure = Figure(figsize=(11, 5.9), layout="constrained")
            for axes, stamp in zip(figure.subplots(2, len(picked) // 2).flat, picked):
                drawn = axes.imshow(_pixels(kept[stamp]), cmap="magma_r", vmin=0, vmax=_FARTHEST)
                axes.set(xticks=[], yticks=[])
                axes.set_title(f"{stamp * 1e-9:.1f} s")
            if kept is depths:
                label = "distance along the optical axis [m]"
                figure.colorbar(drawn, ax=figure.axes, label=label, extend="max", shrink=0.8)
            figure.suptitle(title, x=0.01, ha="left", fontsize=13)
            figure.savefig(path)


def _pixels(message: Any) -> np.ndarray:
    if message.encoding == "rgb8":
        return np.frombuffer(message.data, np.uint8).reshape(message.height, message.width, 3)
    return np.frombuffer(message.data, "<f4").reshape(message.height, message.width)


def _draw_drone(axes: Axes, pose: np.ndarray) -> None:
    ahead = heading_to_world(yaw(pose[3:]), np.array([0.45, 0.0, 0.0]))
    x, y, *_ = pose.tolist()
    axes.annotate(
        "", (x + ahead[0], y + ahead[1]), (x, y), zorder=6,
        arrowprops={"arrowstyle": "-|>", "color": _PATH, "linewidth": 2},
    )  # fmt: skip
    axes.plot(x, y, "o", color=_PATH, markersize=7, zorder=6)


def _draw_room(axes: Axes, title: str) -> None:
    """Draw the plan of the room: all objects from above."""
    model = mujoco.MjModel.from_xml_path(str(scene_path("room")))
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    style: dict[str, Any] = {"facecolor": "#e2e4e7", "edgecolor": "#9aa0a6", "linewidth": 0.8}
    for geom in range(model.ngeom):
        pos, size = data.geom_xpos[geom], model.geom_size[geom]
        kind = mujoco.mjtGeom(model.geom_type[geom])
        if kind == mujoco.mjtGeom.mjGEOM_BOX:
            corners = np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]]) * size[:2]
            turned = np.column_stack([corners, np.zeros(4)]) @ data.geom_xmat[geom].reshape(3, 3).T
            axes.add_patch(Polygon((pos + turned)[:, :2], **style))
        elif kind != mujoco.mjtGeom.mjGEOM_PLANE:
            axes.add_patch(Ellipse(pos[:2], 2 * size[0], 2 * size[0], **style))
    axes.set(title=title, xlabel="x [m]", ylabel="y [m]", aspect="equal", **_ROOM)
