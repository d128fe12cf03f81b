"""Shows a recorded flight in Rerun: the scene, the drones with their trails, and plots.

    python -m pip install "rerun-sdk==0.41.*"
    python examples/08_rerun_layout.py flight.mcap

Rerun reads drones, frames and sensors from the file, but neither the scene nor the odometry; this
program adds them, and a layout. With `--save flight.rrd` it writes a file for `rerun flight.rrd`
instead of opening the viewer.
"""

from __future__ import annotations

import argparse
import colorsys
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import rerun as rr
import rerun.blueprint as rrb
from rerun.chunk import Chunk, McapReader

TIME = "message_log_time"
YEAR = 365 * 24 * 3600  # s: earlier times are simulated ones, which begin at 0
ODOMETRY = "nav_msgs.msg.Odometry:message"
MARKERS = "visualization_msgs.msg.MarkerArray:message"
ADD, BOX, ELLIPSOID, CYLINDER, TRIANGLES = 0, 1, 2, 3, 11  # of visualization_msgs/msg/Marker
WALL_SIZE, WALL_OPACITY = (2.0, 0.1), 0.15  # m: wider and higher shapes do not hide the flight
TRAIL, TRAIL_RATE = 3.0, 25  # s, Hz
EYE = np.array([0.15, -0.72, 0.36])  # from the middle of the flight, in sizes of the flight
SMALLEST = 2.0  # m, size of a flight
NEAR_EYE = (-0.12, -0.08, 0.08)  # m, from the drone
SKY = (178, 196, 214)


class Recording:
    """A recording as Rerun reads it."""

    def __init__(self, file: Path) -> None:
        simulated = McapReader(file, recover=True).time_bounds()[0] * 1e-9 < YEAR
        self.kind: Literal["duration", "timestamp"] = "duration" if simulated else "timestamp"
        reader = McapReader(file, timeline_type=self.kind, recover=True)
        self.chunks: list[Chunk] = reader.stream().to_chunks()

    def owners(self, topic: str) -> list[str]:
        """Return the paths that have a topic of this name, such as /cf0."""
        paths = {chunk.entity_path for chunk in self.chunks}
        owners = [path.removesuffix(topic) for path in paths if path.endswith(topic)]
        return sorted(owners, key=lambda path: (len(path), path))

    def messages(self, topic: str, kind: str) -> list[tuple[np.ndarray, Any]]:
        """Return times (K,) [s] and K messages as an Arrow array, for each part of the file."""
        chunks = (chunk for chunk in self.chunks if chunk.entity_path == topic)
        batches = (chunk.to_record_batch() for chunk in chunks)
        parts = [
            (np.asarray(batch.column(TIME).cast("int64")) * 1e-9, batch.column(kind).flatten())
            for batch in batches
            if kind in batch.schema.names
        ]
        return sorted(parts, key=lambda part: part[0][0])

    def log(self, time: float, path: str, *shapes: Any) -> None:
        """Add shapes that are there from a time [s]."""
        rr.set_time(TIME, **{self.kind: time})
        rr.log(path, *shapes)

    def add(self, path: str, times: np.ndarray, columns: Any, look: Any) -> None:
        """Add columns of data with times [s], and how they look."""
        rr.log(path, *look, static=True)
        rr.send_columns(path, [rr.TimeColumn(TIME, **{self.kind: times})], columns)


class Motion(NamedTuple):
    """Motion of a drone at K times."""

    times: np.ndarray
    """(K,) [s]."""
    positions: np.ndarray
    """(K, 3) [m]."""
    velocities: np.ndarray
    """(K, 3) [m/s]."""


def motion_of(recording: Recording, drone: str) -> Motion:
    """Read the odometry of a drone."""
    parts = [Motion(np.empty(0), np.empty((0, 3)), np.empty((0, 3)))]
    for times, messages in recording.messages(f"{drone}/odom", ODOMETRY):
        place = messages.field("pose").field("pose").field("position")
        speed = messages.field("twist").field("twist").field("linear")
        vectors = (
            np.stack([part.field(axis) for axis in "xyz"], axis=-1) for part in (place, speed)
        )
        parts.append(Motion(times, *vectors))
    return Motion(*map(np.concatenate, zip(*parts)))


def color_of(number: int) -> list[int]:
    """Return the colour that a drone has on the page in the browser."""
    return [round(255 * part) for part in colorsys.hsv_to_rgb(0.58 + number * 0.381966, 0.75, 0.95)]


def add_motion(recording: Recording, drone: str, motion: Motion, color: list[int]) -> None:
    """Add the trail of a drone, its height and its speed."""
    times, name = motion.times, drone.rpartition("/")[2]
    look: list[Any] = [rr.SeriesLines(colors=color, names=name, widths=1.5)]
    speeds = np.linalg.norm(motion.velocities, axis=-1)
    for topic, numbers in (("height", motion.positions[:, 2]), ("speed", speeds)):
        recording.add(f"{drone}/{topic}", times, rr.Scalars.columns(scalars=numbers), look)
    _, kept = np.unique(np.floor(times * TRAIL_RATE), return_index=True)
    places = motion.positions[kept]
    lines = rr.LineStrips3D.columns(strips=np.stack([places[:-1], places[1:]], axis=1))
    style = rr.LineStrips3D.from_fields(colors=color, radii=rr.Radius.ui_points(1.5))
    look = [style, rr.CoordinateFrame(f"{name}/odom")]
    recording.add(f"{drone}/trail", times[kept][1:], lines, look)


def add_scene(recording: Recording) -> None:
    """Add the world and what was spawned; each message replaces the shapes of the one before."""
    for simulator in recording.owners("/scene"):
        topic, version = f"{simulator}/scene", 0
        for times, messages in recording.messages(topic, MARKERS):
            for time, message in zip(times, messages.to_pylist()):
                recording.log(time, f"{topic}/{version}", rr.Clear(recursive=True))
                version += 1
                for number, marker in enumerate(message["markers"]):
                    if marker["action"] == ADD:
                        path = f"{topic}/{version}/{number}"
                        rr.log(path, rr.CoordinateFrame("map"), static=True)
                        recording.log(time, path, *shape_of(marker))


def shape_of(marker: dict[str, Any]) -> list[Any]:
    """Return what draws a marker."""
    kind, pose = marker["type"], marker["pose"]
    color, (x, y, z) = list(marker["color"].values()), marker["scale"].values()
    if max(x, y) > WALL_SIZE[0] and z > WALL_SIZE[1]:
        color[3] *= WALL_OPACITY
    place = rr.InstancePoses3D(
        translations=[list(pose["position"].values())],
        quaternions=[list(pose["orientation"].values())],
    )
    shape: Any
    if kind == BOX:
        shape = rr.Boxes3D(sizes=[(x, y, z)], colors=[color])
    elif kind == ELLIPSOID:
        shape = rr.Ellipsoids3D(half_sizes=[(x / 2, y / 2, z / 2)], colors=[color])
    elif kind == CYLINDER:
        shape = rr.Cylinders3D(lengths=[z], radii=[x / 2], colors=[color])
    elif kind == TRIANGLES:
        corners = np.array([list(point.values()) for point in marker["points"]])
        one, two, three = corners.reshape(-1, 3, 3).swapaxes(0, 1)
        normals = np.repeat(np.cross(two - one, three - one), 3, axis=0)
        shape = rr.Mesh3D(vertex_positions=corners, vertex_normals=normals, albedo_factor=color)
    else:
        return []
    return [place, shape]


def layout(motions: dict[str, Motion]) -> rrb.Blueprint:
    """Arrange the views: the flight, beside it the first drone from near and plots."""
    flown = np.concatenate([motion.positions for motion in motions.values()])
    low, high = flown.min(axis=0), flown.max(axis=0)
    middle, size = (low + high) / 2, max(np.linalg.norm(high - low), SMALLEST)
    first = next(iter(motions))
    name = first.rpartition("/")[2]
    contents = ["/**", *(f"- {drone}/collision_geometries/**" for drone in motions)]
    trails = [f"{drone}/trail" for drone in motions]
    recent = rrb.VisibleTimeRanges(
        rrb.VisibleTimeRange(
            TIME,
            start=rrb.TimeRangeBoundary.cursor_relative(seconds=-TRAIL),
            end=rrb.TimeRangeBoundary.cursor_relative(),
        )
    )
    kinds = (rr.Boxes3D, rr.Cylinders3D, rr.Ellipsoids3D)
    solid = [kind.from_fields(fill_mode="solid") for kind in kinds]
    flight = rrb.Spatial3DView(
        name="Flight",
        contents=contents,
        overrides=dict.fromkeys(trails, recent),
        spatial_information=rrb.SpatialInformation("map"),
        eye_controls=rrb.EyeControls3D(
            position=middle + size * EYE, look_target=middle, eye_up=(0, 0, 1)
        ),
        line_grid=False,
        background=SKY,
        defaults=solid,
    )
    near = rrb.Spatial3DView(
        name=name,
        contents=[*contents, *(f"- {trail}" for trail in trails)],
        spatial_information=rrb.SpatialInformation(f"{name}/base_link"),
        eye_controls=rrb.EyeControls3D(position=NEAR_EYE, look_target=(0, 0, 0), eye_up=(0, 0, 1)),
        line_grid=False,
        background=SKY,
        defaults=solid,
    )
    height = rrb.TimeSeriesView(
        name="Height [m]", contents=[f"{drone}/height" for drone in motions]
    )
    speed = rrb.TimeSeriesView(
        name="Speed [m/s]",
        contents=[f"{drone}/speed" for drone in motions],
        plot_legend=rrb.PlotLegend(visible=False),
    )
    imu = rrb.TimeSeriesView(name=f"IMU of {name}", contents=f"{first}/imu")
    rotors = rrb.TimeSeriesView(
        name=f"Rotors of {name} [rad/s]", contents=f"{first}/joint_states/velocity"
    )
    beside = rrb.Vertical(near, height, rrb.Tabs(speed, imu, rotors), row_shares=[4, 3, 3])
    return rrb.Blueprint(
        rrb.Horizontal(flight, beside, column_shares=[3, 2]),
        rrb.TimePanel(timeline=TIME, state="collapsed"),
        collapse_panels=True,
    )


def main() -> None:
    """Show the recording that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("recording", type=Path)
    parser.add_argument("--save", type=Path, help="file to write instead of opening the viewer")
    arguments = parser.parse_args()
    recording = Recording(arguments.recording)
    found = {drone: motion_of(recording, drone) for drone in recording.owners("/robot_description")}
    motions = {drone: motion for drone, motion in found.items() if len(motion.times)}
    if not motions:
        parser.error(f"expected a recording with the odometry of drones, got {arguments.recording}")
    rr.init("crazyflow_ros")
    if arguments.save:
        rr.save(arguments.save, default_blueprint=layout(motions))
    else:
        rr.spawn(default_blueprint=layout(motions))
    rr.send_chunks(recording.chunks)
    add_scene(recording)
    for number, (drone, motion) in enumerate(motions.items()):
        add_motion(recording, drone, motion, color_of(number))


if __name__ == "__main__":
    main()
