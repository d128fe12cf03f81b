"""Readings of lidars and cameras as messages."""

from __future__ import annotations

import array
import io
from typing import Any

import numpy as np
from sensor_msgs.msg import CameraInfo, CompressedImage, Image, LaserScan, PointCloud2, PointField

from crazyflow_ros.sensors import Intrinsics
from crazyflow_ros.sensors.camera_model import Distortion

_JPEG_QUALITY = 80  # percent, as in image_transport's plugin
_ENCODINGS = {"rgb": ("rgb8", np.uint8), "depth": ("32FC1", np.float32)}
_ENCODINGS |= {"segmentation": ("32SC1", np.int32), "normals": ("32FC3", np.float32)}
_ENCODINGS |= {"flow": ("32FC2", np.float32)}
XYZ = np.dtype([("x", "<f4"), ("y", "<f4"), ("z", "<f4")])
"""A point without other fields."""
_DATATYPES = {
    "|u1": PointField.UINT8,
    "<u2": PointField.UINT16,
    "<u4": PointField.UINT32,
    "<f4": PointField.FLOAT32,
    "<f8": PointField.FLOAT64,
}


def laser_scan(
    angles: np.ndarray, ranges: np.ndarray, limits: tuple[float, float], rate: int
) -> LaserScan:
    """Return a planar scan.

    Args:
        angles: Angles of the rays about z, from x, in equal steps [rad], shape (n,).
        ranges: Distances along the rays as in REP 117 [m], shape (n,): infinite where nothing is
            hit, negative infinite where something is too near.
        limits: Shortest and longest distance that is measured [m].
        rate: Scans per second.
    """
    step = float(angles[1] - angles[0]) if len(angles) > 1 else 0.0
    return LaserScan(
        angle_min=float(angles[0]),
        angle_max=float(angles[-1]),
        angle_increment=step,
        scan_time=1.0 / rate,
        range_min=limits[0],
        range_max=limits[1],
        ranges=_array("f", ranges.astype(np.float32)),
    )


def point_cloud(points: np.ndarray) -> PointCloud2:
    """Return a cloud of points (height, width), whose fields are those of their dtype.

    x, y and z [m] are NaN for missing points.
    """
    (height, width), dtype = points.shape, points.dtype
    return PointCloud2(
        height=height,
        width=width,
        fields=[
            PointField(name=name, offset=offset, datatype=_DATATYPES[kind.str], count=1)
            for name, (kind, offset, *_) in (dtype.fields or {}).items()
        ],
        point_step=dtype.itemsize,
        row_step=dtype.itemsize * width,
        is_dense=bool(np.isfinite(points["x"]).all()),
        data=_array("B", points),
    )


def _array(kind: str, numbers: np.ndarray) -> array.array[Any]:
    """Convert to the type that a message accepts without checking each number."""
    content = array.array(kind)
    content.frombytes(numbers.tobytes())
    return content


def image(kind: str, pixels: np.ndarray) -> Image:
    """Return a picture: rgb, depth [m], ids of geoms, normals, or flow [pixels/s]."""
    encoding, dtype = _ENCODINGS[kind]
    if kind == "segmentation":
        pixels = pixels[..., 0]
    pixels = np.ascontiguousarray(pixels, dtype)
    height, width = pixels.shape[:2]
    return Image(
        height=height,
        width=width,
        encoding=encoding,
        step=pixels.nbytes // height,
        data=_array("B", pixels),
    )


def compressed(pixels: np.ndarray) -> CompressedImage:
    """Return an rgb picture as JPEG, in the format of `image_transport`."""
    import PIL.Image

    file = io.BytesIO()
    PIL.Image.fromarray(pixels).save(file, "JPEG", quality=_JPEG_QUALITY)
    return CompressedImage(format="rgb8; jpeg compressed bgr8", data=file.getvalue())


def depth_cloud(depth: np.ndarray, rgb: np.ndarray | None, lens: Intrinsics) -> PointCloud2:
    """Return the points of a depth image in the optical frame, as depth_image_proc lays them out.

    Args:
        depth: Distances along the optical axis [m], (height, width), infinite where nothing is.
        rgb: Their colours (height, width, 3) uint8; None for points without.
        lens: Intrinsics of the camera, which must have no distortion.
    """
    fields = ["x", "y", "z", *([] if rgb is None else ["rgb"])]
    offsets, size = ([0, 4, 8], 16) if rgb is None else ([0, 4, 8, 16], 32)
    formats = ["<f4"] * len(fields)
    points = np.zeros(
        depth.shape,
        {"names": fields, "formats": formats, "offsets": offsets, "itemsize": size},
    )
    row, column = np.indices(depth.shape)
    points["z"] = z = np.where(np.isfinite(depth), depth, np.nan)
    points["x"] = (column - lens.cx) / lens.fx * z
    points["y"] = (row - lens.cy) / lens.fy * z
    if rgb is not None:
        red, green, blue = np.moveaxis(rgb.astype("<u4"), -1, 0)
        points["rgb"] = (red << 16 | green << 8 | blue).view("<f4")
    return point_cloud(points)


def camera_info(lens: Intrinsics, distortion: Distortion, baseline: float = 0.0) -> CameraInfo:
    """Return the intrinsics and the distortion of a camera.

    Args:
        lens: Intrinsics.
        distortion: Of the lens.
        baseline: Distance of a right camera from the left one, in whose frame it is described [m].
    """
    k: list[Any] = [lens.fx, 0.0, lens.cx, 0.0, lens.fy, lens.cy, 0.0, 0.0, 1.0]
    p = [
        lens.fx,
        0.0,
        lens.cx,
        0.0 - lens.fx * baseline,
        0.0,
        lens.fy,
        lens.cy,
        0.0,
        0.0,
        0.0,
        1.0,
        0.0,
    ]
    return CameraInfo(
        width=lens.width,
        height=lens.height,
        distortion_model=distortion.model,
        d=list(distortion.padded),
        k=k,
        r=np.eye(3).ravel().tolist(),
        p=p,
    )
