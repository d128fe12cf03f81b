"""The flight through the room, and the pictures of it."""

from __future__ import annotations

import signal
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mujoco
import numpy as np
import PIL.Image
import pytest
import room
from matplotlib.figure import Figure
from room import REST, RISE, ROUND, plan, trajectory
from room_pictures import save_cloud, save_pictures, save_scan
from sensor_msgs.msg import Image, LaserScan

from crazyflow_ros import client
from crazyflow_ros.ros.sensors.lidar_and_camera_messages import XYZ, image, laser_scan, point_cloud
from crazyflow_ros.scene import scene_path


def test_the_round_keeps_clear_of_everything_and_looks_ahead() -> None:
    spec = mujoco.MjSpec.from_file(str(scene_path("room")))
    ball = spec.worldbody.add_body(name="ball", mocap=True)
    ball.add_geom(name="ball", type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[0.01, 0, 0])
    model = spec.compile()
    data, geom = mujoco.MjData(model), model.geom("ball").id
    times, pos, yaw = plan()
    nearest = []
    for place in pos[times > RISE]:
        data.mocap_pos[0] = place
        mujoco.mj_kinematics(model, data)
        others = (other for other in range(model.ngeom) if other != geom)
        nearest.append(min(mujoco.mj_geomDistance(model, data, geom, o, 9.0, None) for o in others))
    assert 0.3 < min(nearest) < 1.0
    steps = np.diff(pos, axis=0)[(times > RISE + 1)[1:] & (times < RISE + ROUND - 1)[1:]]
    ahead = np.stack([np.cos(yaw), np.sin(yaw)], axis=-1)
    ahead = ahead[1:][(times > RISE + 1)[1:] & (times < RISE + ROUND - 1)[1:]]
    level = steps[:, :2] / np.linalg.norm(steps[:, :2], axis=1)[:, None]
    assert ((level * ahead).sum(axis=1) > 0.99).all()
    message = trajectory(7_900_000_000)
    last = message.points[-1].time_from_start
    assert last.sec + 1e-9 * last.nanosec == pytest.approx(RISE + ROUND + REST - 0.1)
    assert all(point.time_from_start.nanosec < 10**9 for point in message.points)


def flown() -> Any:
    """What a flight has kept."""
    stamps = [int(t * 1e9) for t in np.linspace(1, 30, 40)]
    pose = np.array([1.0, 0.5, 1.0, 0.0, 0.0, 0.0, 1.0])
    scan: LaserScan = laser_scan(np.linspace(-3, 3, 60), np.full(60, 1.5), (0.0, 8.0), 10)
    points = np.random.default_rng(0).random((2, 30, 3))
    picture: Image = image("rgb", np.full((8, 8, 3), [200, 10, 10], np.uint8))
    return SimpleNamespace(
        poses=dict.fromkeys(stamps, pose),
        start_ns=0,
        messages={
            "scan": dict.fromkeys(stamps, scan),
            "cloud": dict.fromkeys(stamps, point_cloud(points.astype("<f4").view(XYZ)[..., 0])),
            "camera/image_raw": dict.fromkeys(stamps, picture),
            "camera/depth/image_raw": dict.fromkeys(stamps, image("depth", np.ones((8, 8)))),
        },
        fly=lambda: None,
    )


def test_pictures_are_drawn(tmp_path: Path) -> None:
    seen = flown()
    names = [tmp_path / f"{name}.png" for name in ("scan", "cloud", "camera", "depth")]
    save_scan(seen, names[0])
    save_cloud(seen, names[1])
    save_pictures(seen, np.linspace(1e9, 3e10, 6), names[2], names[3])
    red = np.asarray(PIL.Image.open(names[2]).convert("RGB")).reshape(-1, 3)
    assert (red == [200, 10, 10]).all(axis=1).mean() > 0.3
    assert all(PIL.Image.open(name).width > 1000 for name in names)


def test_the_flight_is_interrupted_where_poses_were_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, _: figures.append(figure))
    seen = flown()
    save_cloud(seen, tmp_path / "cloud.png")
    for stamp in sorted(seen.poses)[10:13]:
        del seen.poses[stamp]
    save_cloud(seen, tmp_path / "cloud.png")
    whole, interrupted = (
        next(line for line in figure.axes[0].lines if line.get_label() == "flight").get_xdata()
        for figure in figures
    )
    assert not np.isnan(whole).any()
    assert np.flatnonzero(np.isnan(interrupted)).tolist() == [10]


def test_the_demonstration_saves_what_its_sensors_saw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = SimpleNamespace(check=lambda: None, has_complained=lambda: False)
    monkeypatch.setattr(room, "choose_domain", lambda: None)
    monkeypatch.setattr(room, "SimulatorProcess", lambda *_: nullcontext(process))
    monkeypatch.setattr(room, "RoomFlight", lambda *_: flown())
    monkeypatch.setattr(client, "SimulatorClient", lambda **_: nullcontext())
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()  # which the process of the simulator would have made
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    assert room.main() == 0
    assert handlers == (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM))
    written = {"scan.png", "cloud.png", "camera.png", "depth.png"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == written
