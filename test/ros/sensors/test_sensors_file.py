"""The file of the parameter `sensors`: what it means, and what is refused when the node starts."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from anchor_sensor import AnchorSensorCfg
from paths import ROOT
from sensor_msgs.msg import Range

from crazyflow_ros.checks.plain_values import ParameterError
from crazyflow_ros.ros.parameters.node_parameters import Parameters
from crazyflow_ros.ros.sensors import sensor_threads
from crazyflow_ros.ros.sensors.kinds import KINDS
from crazyflow_ros.ros.sensors.sensors_file import SensorFile, load
from crazyflow_ros.scene.frames import body_to_world
from crazyflow_ros.sensors import CameraSensorCfg, ImuSensorCfg, NoiseCfg, RayCastSensorCfg
from crazyflow_ros.sensors.ranger import MULTI_RANGER
from crazyflow_ros.sensors.raycast import RaysCfg

written = import_module("docs.sensors_file")
MATRIX = "intrinsic_matrix: [20, 0, 31, 0, 20, 31, 0, 0, 1]"


def read(folder: Path, text: str) -> SensorFile:
    (file := folder / "s.yaml").write_text(text)
    return load(str(file), ["cf0", "cf1"], "cf2x_L250")


def test_what_the_drones_carry(tmp_path: Path) -> None:
    carried = read(
        tmp_path,
        """
all:
  scan: {type: lidar, max_distance: 6.0}
  imu: {type: imu, gyro: {density: 1e-3}, accelerometer: {density: [0.01, 0.01, 0.02]}}
cf1: {touch: {type: contact}}
cf0:
  eye: {type: camera, data_types: [rgb, depth, segmentation]}
  scan: {type: lidar, samples: 4}
""",
    )
    names = {
        drone: [(d.owner, d.name) for d in carried.devices if carried.carries(drone, d)]
        for drone in ("cf0", "cf1")
    }
    assert names["cf1"] == [("all", "scan"), ("all", "imu"), ("cf1", "touch")]
    assert names["cf0"] == [("all", "imu"), ("cf0", "eye"), ("cf0", "scan")]
    cfgs = {(d.owner, d.name): d.cfg for d in carried.devices}
    scan, imu, eye = cfgs["all", "scan"], cfgs["all", "imu"], cfgs["cf0", "eye"]
    assert isinstance(scan, RayCastSensorCfg) and scan.max_distance == 6.0
    assert isinstance(imu, ImuSensorCfg) and imu.accelerometer.density == (0.01, 0.01, 0.02)
    assert isinstance(eye, CameraSensorCfg) and eye.data_types == ("rgb", "depth", "segmentation")


@pytest.mark.parametrize("page", ["sensors.md", "cameras.md"])
def test_the_examples_of_the_docs_can_be_used(page: str, tmp_path: Path) -> None:
    text = (ROOT / "docs" / "guides" / page).read_text()
    examples = re.findall(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert examples
    for example in examples:
        carried = read(tmp_path, example)
        assert carried.devices and carried.model.nsite


def test_the_page_of_the_file_is_not_outdated() -> None:
    assert written.PAGE.read_text() == written.page(), "run python -m docs.sensors_file again"
    topics = {(name, one[0] or one[1]) for name in KINDS for one in written.topics(name)}
    assert written.REMARKS.keys() <= topics


def test_a_type_can_be_imported(tmp_path: Path) -> None:
    (device,) = read(
        tmp_path, "all: {uwb: {type: anchor_sensor.ANCHOR, anchor: [1, 2, 3]}}"
    ).devices
    assert isinstance(device.cfg, AnchorSensorCfg) and device.cfg.anchor == (1.0, 2.0, 3.0)
    assert device.rate == 20
    ((kind, suffix, display, qos),) = device.topics
    assert (kind, suffix, display, qos.depth) == (Range, "", "Range", 100)


def test_frames_of_beams_look_along_them(tmp_path: Path) -> None:
    frames = read(tmp_path, "all: {ring: {type: multiranger}}").frames("cf0")
    ahead = [body_to_world(frame.quat, np.array([1.0, 0.0, 0.0])) for frame in frames]
    np.testing.assert_allclose(ahead, MULTI_RANGER, atol=1e-12)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "s.yaml, line 1, column 5"),
        ("3", "no drones, but 3"),
        ("cf7: {s: {type: lidar}}", "no drone 'cf7', only cf0, cf1, all"),
        ("cf0: {s: {type: sonar}}", "cf0/s: there is no type 'sonar', only imu, .*camera"),
        ("cf0: {s: {type: no.such.KIND}}", "cf0/s: the type 'no.such.KIND' cannot be imp.*'no'"),
        ("cf0: {s: {type: magnetometr}}", "'magnetometr', .*did you mean 'magnetometer'?"),
        ("cf0: {s: {type: imu, gyros: {}}}", "cf0/s: .* 'gyros', .*did you mean 'gyro'?"),
        ("cf0: {s: {type: camera, witdh: 9}}", "cf0/s: .* 'witdh', .*did you mean 'width'?"),
        ("cf0: {s: {rate: 5}}", "cf0/s has no type; there are imu"),
        ("cf0: {s: {type: math.pi}}", "cf0/s: there is no type 'math.pi', only imu"),
        ("cf0: {s: {type: anchor_sensor.ANCHOR, far: 1}}", "cf0/s: .* 'far', only anchor"),
        ("cf0: {s: {type: lidar, range: 3}}", "cf0/s: there is no field 'range', only .*samples"),
        ("cf0: {s: {type: imu, quat: [1, 0, 0, 0]}}", "cf0/s: .* 'quat', only .*rpy"),
        ("cf0: {s: {type: imu, pos: [0, 0]}}", r"cf0/s: pos must be three numbers.*, got \[0, 0\]"),
        ("cf0: {s: {type: imu, gyro: {noise: 3}}}", "cf0/s: .*'noise'"),
        ("cf0: {s: {type: imu, gyro: {std: -3}}}", "cf0/s: .*from 0 to 1e\\+09, got"),
        ("cf0: {s: {type: lidar, samples: many}}", "samples: .*whole number, got 'many'"),
        ("cf0: {s: {type: camera, rate: fast}}", "cf0/s: rate must be in whole Hz, got fast"),
        ("cf0: {s: {type: camera, rate: 0}}", "cf0/s: rate must be in whole Hz, got 0"),
        ("cf0: {a b: {type: lidar}}", "cf0 has a sensor 'a b'; names are"),
        ("cf0: {a: lidar}", "cf0/a has no fields, but lidar"),
        ("cf0: {été: {type: lidar}}", "sensor 'été'; names are"),
        ("cf0: {rotor0: {type: imu, pos: [0, 0, 0]}}", "a frame called 'rotor0' already"),
        ("cf0: {imu_link: {type: imu, pos: [0, 0, 0]}}", "a frame called 'imu_link' already"),
        ("cf0: 3", "cf0 has no sensors by name, but 3"),
        ("all: {a: {type: imu}, a: {type: lidar}}", "a occurs twice"),
        ("all: {a: {type: imu}}\nall: {b: {type: imu}}", "line 2, column 1: all occurs twice"),
        ("all: {a: {type: imu, rate: 5, rate: 5}}", "rate occurs twice"),
    ],
)
def test_files_that_cannot_be_used_are_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=rf"^sensors: .*{message}"):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("type: [imu]", r"no type \['imu'\], only imu"),
        ("type: {a: 1}", r"no type \{'a': 1\}, only imu"),
        ("type: imu, 3: 4, a: 5", "no field 3, only"),
        # What is not finite would be published
        ("type: imu, gyro: {density: .inf}", "gyro.density: .* inf"),
        ("type: imu, gyro: {saturation: .nan}", "gyro.saturation: .* finite"),
        ("type: imu, delay: .inf", "delay: .* finite"),
        ("type: magnetometer, field: [.nan, 0, 0]", "field: .* nan"),
        ("type: range, max_range: -.inf", "max_range: .* finite"),
        ("type: imu, attitude: {std: 1.0e+300}", r": noise: std .* from 0 to 1e\+09, got 1e"),
        ("type: camera, baseline: 1.0e+300", r": baseline .* 100 m, got 1e\+300"),
        ("type: vlp16, first_azimuth: 1.0e+300", "first_azimuth .* 360 degrees, got 1e"),
        ("type: camera, data_types: rgb", "expected a list of any of rgb, depth, .*'rgb'"),
        # Lengths
        ("type: imu, gyro: {density: [1, 2]}", r"gyro: density .* 3, got \(1.0, 2.0\)"),
        ("type: imu, accelerometer: {std: [1, 2]}", "accelerometer: std .* or 3"),
        ("type: magnetometer, noise: {std: [1, 2]}", "noise: std .* or 3"),
        ("type: gnss, latitude: 4, longitude: 5, noise: {std: [1, 2]}", "noise: std .* or 3"),
        ("type: motion_capture, attitude: {bias: [1, 2]}", "attitude: bias .* or 3"),
        ("type: barometer, noise: {std: [1, 2]}", "noise: std must be one number, got"),
        ("type: range, noise: {bias: [1, 2, 3]}", "noise: bias must be one number, got"),
        ("type: multiranger, noise: {std: [1, 2, 3, 4, 5]}", "noise: std must be one number, got"),
        ("type: optical_flow, noise: {std: [1, 2]}", "noise: std must be one number, got"),
        ("type: battery, voltage: {std: [1, 2]}", "voltage: std must be one number, got"),
        # Ranges
        ("type: barometer, altitude: 60000", "altitude .* 60000"),
        ("type: gnss, latitude: 91, longitude: 5", "latitude .* 91"),
        ("type: gnss, latitude: 4, longitude: 900", "longitude .* 900"),
        ("type: lidar, elevations: [100]", r"elevations .*\(100.0,\)"),
        ("type: lidar, samples: 1000000000", "1000000000"),
        ("type: lidar, include_geom_groups: [9]", r"include_geom_groups .*\(9,\)"),
        ("type: range, include_geom_groups: [9]", r"include_geom_groups .*\(9,\)"),
        ("type: optical_flow, include_geom_groups: [9]", "include_geom_groups .* 5"),
        ("type: camera, width: 100000", "100000 x 240"),
        ("type: camera, data_types: [rgb, rgb]", r"data_types .* \('rgb', 'rgb'\)"),
        # Rays and lenses
        ("type: grid, resolution: 0", "resolution .* 0.0"),
        ("type: grid, size: [10000, 10000]", "rays .* 100"),
        ("type: ring, rings: [[0.1, 0]]", "radius 0.1 with 0 rays"),
        ("type: pinhole, camera_name: eye", "'camera_name'"),
        ("type: pinhole, width: 5000, height: 5000", "rays .* 25000000"),
        ("type: lidar, noise: {bias: 1}", "noise of rays .* std"),
        ("type: ring, noise: {std: [1, 2]}", "noise: std must be one number, got"),
        ("type: lidar, min_distance: 20", "min_distance .* 20"),
        ("type: height, reduction: meam", "reduction: .* 'meam'; did you mean 'mean'"),
        ("type: lidar, azimuth_range: 90", "azimuth_range: .* 90"),
        ("type: contact, secondary: {mode: leg, pattern: a}", "secondary.mode: .* 'leg'"),
        ("type: contact, secondary: {mode: geom, name: a}", "secondary: .* 'name'"),
        ("type: camera, fovy: 200", "fovy .* 200"),
        ("type: camera, intrinsic_matrix: [1, 2]", "must have 9 numbers, got 2"),
        (f"type: camera, fovy: 60, {MATRIX}", "intrinsic_matrix or fovy, not both"),
        (f"type: camera, renderer: opengl, {MATRIX}", "'opengl' .* intrinsic_matrix"),
        # What has no default
        ("type: gnss, longitude: 7", "latitude missing"),
        ("type: gnss, rate: 10", "latitude and longitude missing"),
        # Delays, which are kept in whole samples
        ("type: imu, delay: 1e9", "delay must be 0, or more than 0.005 s and at most 100 s"),
        ("type: imu, delay: 0.004", "got 0.004 s: .* whole samples of 100 Hz"),
        ("type: imu, delay: 0.005", "got 0.005 s: .* whole samples of 100 Hz"),
    ],
)
def test_values_that_cannot_be_are_refused(entry: str, message: str, tmp_path: Path) -> None:
    """At the start, and naming the sensor."""
    with pytest.raises(ParameterError, match=rf"^sensors: (the .*)?cf0/s(?!.*cf0/s).*{message}"):
        read(tmp_path, f"cf0: {{s: {{{entry}}}}}")


def test_rays_err_the_same_at_the_same_time(tmp_path: Path) -> None:
    text = "all: {a: {type: lidar, min_distance: 1, max_distance: 5, noise: {std: 0.1}, seed: 3}}"
    cfg = read(tmp_path, text).devices[0].cfg
    assert isinstance(cfg, RaysCfg)
    far = np.full(1000, 3.0)
    told = cfg.ranges(far, "cf0", 10)
    assert np.std(told) == pytest.approx(0.1, rel=0.1) and np.mean(told) == pytest.approx(
        3, abs=0.02
    )
    np.testing.assert_array_equal(cfg.ranges(far, "cf0", 10), told)
    for other in (
        cfg.ranges(far, "cf1", 10),
        cfg.ranges(far, "cf0", 11),
        replace(cfg, seed=4).ranges(far, "cf0", 10),
        replace(cfg, name="all/b").ranges(far, "cf0", 10),
    ):
        assert abs(np.corrcoef(told, other)[0, 1]) < 0.2
    exact = replace(cfg, noise=NoiseCfg())
    distances = np.array([-1.0, 0.5, 1.0, 5.0, 5.1])
    assert exact.ranges(distances, "cf0", 0).tolist() == [np.inf, -np.inf, 1.0, 5.0, np.inf]


def test_what_is_just_possible(tmp_path: Path) -> None:
    """No limit where infinity means that, a delay of a sample, and names that topics can have."""
    carried = read(
        tmp_path,
        """
cf0:
  _a1: {type: imu, rate: 200, delay: 0.003, gyro: {saturation: .inf, density: [1, 2, 3]}}
  B__2: {type: range, max_range: .inf}
  c: {type: lidar, max_distance: .inf, elevations: [-90, 90], samples: 500000}
  prop0: {type: barometer, altitude: -2000, pos: [0, 0, 0]}
""",
    )
    assert [device.name for device in carried.devices] == ["_a1", "B__2", "c", "prop0"]
    assert carried.model.nsite == load("", [], "cf2x_L250").model.nsite + 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_refused_number_is_named_with_sensor_field_and_value(tmp_path: Path, kind: str) -> None:
    needed = {"latitude": 1.0, "longitude": 2.0} if kind == "gnss" else {}
    numbers = {name for name, hint in KINDS[kind].fields.items() if hint in (int, float)}
    refused = set()
    for name in sorted(numbers):
        values = {"type": kind, **needed, name: -7654}
        entry = ", ".join(f"{key}: {value}" for key, value in values.items())
        try:
            read(tmp_path, f"cf1: {{nose: {{{entry}}}}}")
        except ParameterError as error:
            refused.add(name)
            said = str(error)
            assert said.startswith("sensors: cf1/nose: "), said
            assert name in said and "-7654" in said and (" must " in said or "expected" in said)
    assert refused >= numbers & {"seed", "delay", "max_range", "max_distance", "width", "fovy"}


def test_a_sensor_of_batteries_that_are_not_there_is_refused(tmp_path: Path) -> None:
    carried = read(tmp_path, "all: {cell: {type: battery}}")
    inner = SimpleNamespace(publishers=[])
    node: Any = SimpleNamespace(node=inner, parameters=Parameters())
    with pytest.raises(ParameterError, match="battery: the sensor cell needs true, got False"):
        sensor_threads.declare(node, carried)


def test_a_secondary_that_is_not_there_is_refused(tmp_path: Path) -> None:
    text = "all: {wall: {type: contact, secondary: {mode: geom, pattern: wall}}}"
    carried = read(tmp_path, text)
    physics = SimpleNamespace(mirror=SimpleNamespace(model=carried.model))
    node: Any = SimpleNamespace(node=SimpleNamespace(publishers=[]), physics=physics)
    with pytest.raises(ParameterError, match="secondary of all/wall: no geom matches 'wall'"):
        sensor_threads.declare(node, carried)


def test_a_missing_file_is_refused() -> None:
    with pytest.raises(ParameterError, match="No such file"):
        load("/nowhere.yaml", ["cf0"], "cf2x_L250")
