"""Makes docs/reference/sensors_file.md from the types of sensors and their docstrings.

python -m docs.sensors_file writes it. It needs rclpy, as the types of sensors do.
"""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from itertools import groupby, pairwise
from pathlib import Path
from textwrap import dedent
from typing import Any, Literal, get_args, get_origin

import numpy as np

from crazyflow_ros.drones.instruments import NoiseCfg
from crazyflow_ros.ros.sensors.devices import ALL, Device, Kind
from crazyflow_ros.ros.sensors.kinds import KINDS
from crazyflow_ros.sensors.contact_match import ContactMatch
from crazyflow_ros.sensors.raycast import RaysCfg
from crazyflow_ros.sensors.rendering import DataType
from docs.api import first_sentence

PAGE = Path(__file__).with_name("reference") / "sensors_file.md"

INTRODUCTION = """\
# Sensors file

All types of sensors that the file of the node's parameter `sensors` can name, with their topics and
fields. [Sensors](../guides/sensors.md) shows how to use it. [sensors_file.py](../sensors_file.py)
makes this page from the code.

Topics are in the namespace of the drone; `<name>` is the name of the entry. All are reliable.
Publishers keep their last messages for slow readers: 5 of markers, contacts, heights and rays; of
pictures, their points and the clouds of lidars by name what fits into 64 MiB, from 5 to 100; of all
others 100.

## Every type

Numbers have to be finite, except `saturation`, `max_distance` and `max_range`, where `.inf` means
no limit. Fields without a default are optional, except `latitude` and `longitude`. Errors, such as
`noise: {std: 0.01}`, have [fields of their own](#errors).
"""

COMMON = {
    "type": ["", "One of the types below, or the import path of "
    "[your own](../guides/extend.md#a-sensor-of-your-own)."],
    "rate": ["see below", "Readings per simulated second [Hz], a divisor of the parameter `freq`."],
    "pos": ["`[0, 0, 0]`", "Place on the drone [m]. With `pos` or `rpy`, readings are in the frame "
    "`<drone>/<name>`, those of cameras and pinholes in `<drone>/<name>/optical_frame`."],
    "rpy": ["`[0, 0, 0]`", "Attitude on the drone: roll, pitch, yaw [degrees]. Cameras and "
    "pinholes look along x."],
}  # fmt: skip
"""Fields of every type."""

_PICTURES = [kind for kind in get_args(DataType) if kind != "rgb"]
CASES: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "imu": [("`attitude`", {"attitude": {}})],
    "lidar": [("other `elevations`", {"elevations": [-15.0, 15.0]})],
    "camera": [
        *((f"`data_types: [{kind}]`", {"data_types": [kind]}) for kind in _PICTURES),
        ("`baseline`", {"baseline": 0.1}),
    ],
}
"""Fields that change the topics of a type: how the page names them, and values."""

REQUIRED = {"latitude": 0.0, "longitude": 0.0}
"""Fields without a default."""

REMARKS = {
    ("imu", "/data_raw"): "without orientation (REP 145)",
    ("imu", "/data"): "with the orientation in `map`",
    ("gnss", "NavSatFix"): "covariance in east, north, up",
    ("range", "Range"): "nearest target in the cone around x of its frame",
    ("multiranger", "/scan"): "the level four: back, right, front, left",
    ("optical_flow", "TwistStamped"): "`angular.x`, `angular.y`: body rates that would give the "
    "same flow [rad/s]; NaN where no texture is in view",
    ("motion_capture", "PoseStamped"): "in `map`; no message for a missing sample",
    ("motion_capture", "/with_covariance"): "the same; covariance in the axes of `map`",
    ("battery", "BatteryState"): "the current is negative",
    ("contact", "WrenchStamped"): "force and torque, about the drone's origin, of all that it "
    "touches, or of `secondary` alone, such as `{mode: geom, pattern: floor}`",
    ("contact", "/in_contact"): "whether the drone touches it",
    ("lidar", "LaserScan"): "infinite where nothing is hit, negative infinite below "
    "`min_distance` (REP 117)",
    ("lidar", "PointCloud2"): "a row for each elevation, NaN where nothing is hit",
    ("vlp16", "PointCloud2"): "as `velodyne_pointcloud` publishes it",
    ("hdl32", "PointCloud2"): "as `velodyne_pointcloud` publishes it",
    ("os0", "PointCloud2"): "as `ouster_ros` publishes it",
    ("os1", "PointCloud2"): "as `ouster_ros` publishes it",
    ("mid360", "PointCloud2"): "as `livox_ros_driver2` publishes it",
    ("grid", "PointCloud2"): "ends of the rays, rows along x",
    ("ring", "PointCloud2"): "ends of the rays in one row",
    ("pinhole", "PointCloud2"): "a point for each pixel",
    ("height", "Range"): "above what is straight below, also for a tilted drone",
    ("camera", "/image_raw"): "rgb8",
    ("camera", "/depth/image_raw"): "32FC1: metres along the optical axis, infinite where nothing "
    "is (REP 118)",
    ("camera", "/points"): "organised, NaN where nothing is; coloured if the camera takes `rgb`; "
    "not with a distorted lens",
    ("camera", "/segmentation/image_raw"): "32SC1: ids of geoms, -1 where none is",
    ("camera", "/normals/image_raw"): "32FC3: unit normals in the axes of `map`, 0 where none is",
    ("camera", "/flow/image_raw"): "32FC2: how fast what is seen moves right and down [pixels/s]",
    ("camera", "/left/image_raw"): "instead of `<name>/image_raw`",
}
"""What a topic contains, by type and suffix, or message."""


def topics(name: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield suffix, message, condition and remark of each topic of a type."""
    kind, known = KINDS[name], set()
    for condition, values in [("", {}), *CASES.get(name, [])]:
        cfg = configuration(kind, values)
        for topic in Device(ALL, "name", kind, kind.rate, cfg, None).topics:
            one = topic.suffix, topic.message_type.__name__
            if one not in known:
                known.add(one)
                remark = REMARKS.get((name, one[0] or one[1]), "")
                if topic.suffix[1:] in kind.beams:
                    remark = f"in `<drone>/<name>{topic.suffix}`"
                yield *one, condition, remark


def configuration(kind: Kind, values: dict[str, Any]) -> Any:
    """Make the configuration of an entry with the given fields."""
    given = {key: value for key, value in REQUIRED.items() if key in kind.fields}
    return kind.configuration("name", None, given | values, "cf2x_L250")


def documented(made: Any) -> dict[str, str]:
    """The docstrings of the fields of a dataclass, in their order, those of bases first."""
    found: dict[str, str] = {}
    each: type[Any]
    for each in reversed(made.__mro__):
        body: list[ast.stmt] = []
        if is_dataclass(each):
            (tree,) = ast.parse(dedent(inspect.getsource(each))).body
            body = getattr(tree, "body", [])
        for node, below in pairwise(body):
            if isinstance(node, ast.AnnAssign) and isinstance(below, ast.Expr):
                found[ast.unparse(node.target)] = first_sentence(ast.literal_eval(below.value))
    return found


def shown(value: Any) -> str:
    """A default as in the file."""
    if isinstance(value, NoiseCfg):
        bare = NoiseCfg()
        own = {each.name: getattr(value, each.name) for each in fields(value)}
        changed = {key: one for key, one in own.items() if one != getattr(bare, key)}
        return "{" + ", ".join(f"{key}: {shown(one)}" for key, one in changed.items()) + "}"
    if isinstance(value, (tuple, list)):
        if len(value) > 9:
            return f"{len(value)} from {value[0]:g} to {value[-1]:g}"
        return "[" + ", ".join(map(shown, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float, np.number)):
        return ".inf" if value == math.inf else f"{value:g}"
    return str(value)


def default(name: str, cfg: Any) -> str:
    """The default of a field of a configuration, or of its pattern; empty if there is none."""
    value = getattr(cfg, name, None) if hasattr(cfg, name) else getattr(cfg.pattern, name)
    return "" if value is None or name in REQUIRED else f"`{shown(value)}`"


def table(rows: dict[str, list[str]]) -> list[str]:
    """Names of fields, with defaults and meanings."""
    cells = (row(f"`{name}`", *others) for name, others in rows.items())
    return ["| field | default | meaning |", "|---|---|---|", *cells]


def row(*cells: str) -> str:
    """A row of a table."""
    return "|" + "|".join(f" {cell} ".replace("  ", " ") for cell in cells) + "|"


def section(names: list[str]) -> str:
    """Heading, topics and fields of types with the same fields."""
    kind, cfgs = KINDS[names[0]], [configuration(KINDS[name], {}) for name in names]
    made = kind.pattern if isinstance(cfgs[0], RaysCfg) else type(cfgs[0])
    place = f"Without `pos` and `rpy`, its frame is `{kind.link('<drone>')}`."
    if not kind.movable:
        place = f"Its frame is `{kind.link('<drone>')}`; it has no `pos` and `rpy`."
    if kind.parameter:
        place += f" It needs the parameter `{kind.parameter}`."
    lines = [
        f"## {', '.join(names)}",
        "",
        f"{first_sentence(inspect.getdoc(made) or '')} {place}",
        "",
    ]
    lines += [row("type", "rate [Hz]", "topic", "message", "with", "contents")]
    lines += ["|---|---:|---|---|---|---|"]
    for name in names:
        first = f"`{name}`", str(KINDS[name].rate)
        for suffix, message, condition, remark in topics(name):
            lines.append(row(*first, f"`<name>{suffix}`", f"`{message}`", condition, remark))
            first = "", ""
    texts = documented(type(cfgs[0])) | (documented(kind.pattern) if kind.pattern else {})
    rows = {}
    for name in sorted(kind.fields, key=list(texts).index):
        values = [default(name, cfg) for cfg in cfgs]
        choices = get_args(kind.fields[name]) if get_origin(kind.fields[name]) is Literal else ()
        text = texts[name] + (f" One of `{'`, `'.join(choices)}`." if choices else "")
        rows[name] = [values[0] if len(set(values)) == 1 else ", ".join(values), text]
    return "\n".join([*lines, "", *table(rows)])


def part(title: str, made: type[Any], bare: Any) -> str:
    """The fields of a value that has fields itself."""
    rows = {
        name: ["" if bare is None else default(name, bare), text]
        for name, text in documented(made).items()
    }
    about = first_sentence(inspect.getdoc(made) or "")
    return "\n".join([f"## {title}", "", about, "", *table(rows)])


def page() -> str:
    """The whole page."""
    alike = groupby(KINDS, lambda name: (KINDS[name].cfg, KINDS[name].pattern, KINDS[name].link))
    parts = [section(list(names)) for _, names in alike]
    parts.append(part("Errors", NoiseCfg, NoiseCfg()))
    parts.append(part("Fields of secondary", ContactMatch, None))
    parts.insert(0, "\n".join(table(COMMON)))
    return INTRODUCTION + "".join(f"\n{text}\n" for text in parts)


if __name__ == "__main__":
    PAGE.write_text(page())
