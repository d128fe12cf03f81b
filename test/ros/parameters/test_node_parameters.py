"""Parameters of the node: what is declared, what is refused and how that is said."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from paths import ROOT
from rclpy.parameter import Parameter

from crazyflow_ros.checks.entry_points import load, names
from crazyflow_ros.checks.plain_values import ParameterError, declarations, from_values, values_of
from crazyflow_ros.drones.folders import FIGURES, folder_of
from crazyflow_ros.estimation import Positioning
from crazyflow_ros.flight import FlightConfig
from crazyflow_ros.resources import resource
from crazyflow_ros.ros.parameters.declaration import ParameterNode, declare
from crazyflow_ros.ros.parameters.node_parameters import Parameters
from crazyflow_ros.ros.parameters.parameter_groups import Decks, Ros2Control
from crazyflow_ros.runtime.extension import GROUP

SETTABLE = (
    *("real_time_factor", "step_ticks", "checkpoint", "interfaces", "with_interfaces"),
    *("wind", "gust_intensity", "gust_altitude"),
)
EMPTY = (
    "forces",
    *("initial_poses", "with_interfaces", "world_folders", "door_drones", "crazyflie.anchors"),
)


class Declared:
    """A node with its parameters."""

    def __init__(self, node: ParameterNode) -> None:
        self.node, self.values = node, declare(node, Parameters)


@pytest.fixture
def declared(parameter_node: Any) -> Callable[..., Declared]:
    def make(**overrides: Any) -> Declared:
        return Declared(parameter_node({n.replace("__", "."): v for n, v in overrides.items()}))

    return make


def test_defaults_are_declared_with_description_and_range(declared: Any) -> None:
    node, values = declared().node, declared().values
    assert values == Parameters()
    for declaration in declarations(Parameters):
        descriptor = node.describe_parameter(declaration.name)
        assert len(descriptor.description) > 10
        assert descriptor.read_only is (declaration.name not in SETTABLE)
        if declaration.kind in (int, float):
            assert descriptor.integer_range or descriptor.floating_point_range
        assert not descriptor.dynamic_typing
        value = node.get_parameter(declaration.name).value
        assert value == declaration.default or tuple(value) == declaration.default


def test_values_of_the_user_win(declared: Any) -> None:
    values = declared(
        drones=["a", "b"],
        real_time_factor=2,  # a whole number does for a number
        control="attitude",
        initial_poses=[0, 0, 1, 0, 1, 0, 1, 2],
        publish_rates__odom=50,
    ).values
    assert values.drones == ("a", "b")
    assert values.real_time_factor == 2.0
    assert isinstance(values.real_time_factor, float)
    assert values.control == "attitude"
    assert values.initial_poses == (0, 0, 1, 0, 1, 0, 1, 2)
    assert values.publish_rates.odom == 50
    assert values.publish_rates.pose == 100


BAD_VALUES = {
    "drones": ("cf0", [1, 2], ["2b"], ["a/b"], ["a__b"], ["a" * 101], ["all"], ["a", "a"]),
    "drone_model": ("x",),
    "control": ("fly",),
    "controller": ("lee",),
    "integrator": ("rk5",),
    "dynamics": ("none",),
    "freq": (0, 500.5, True),
    "real_time_factor": (-1.0, math.nan, "2", 1e-7),
    "flight.speed": (0.001,),
    "start_paused": (1,),
    "step_ticks": (-1,),
    "seed": (-1,),
    "wind": ([1.0, 2.0], [0.0, 31.0, 0.0], [math.inf, 0.0, 0.0]),
    "gust_intensity": (-0.1,),
    "gust_altitude": (1.0,),
    "initial_poses": (["a"],),
    "publish_rates.clock": (0,),
    "publish_rates.tf": (-1,),
    "publish_rates.odom": (130,),
    "ros2_control.shared_memory": ("/a/b",),
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in BAD_VALUES.items() for value in values]
)
def test_what_cannot_be_used_is_named(declared: Any, name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=re.escape(name)) as caught:
        declared(**{name: value})
    said = str(caught.value)
    *_, last = value if isinstance(value, list) else [value]
    assert said.startswith(name) and str(last)[:4] in said and "\n" not in said


@pytest.mark.parametrize("mode", ["lock_step", "free_running", "topic"])
def test_the_rate_that_a_launch_file_was_given_is_named(declared: Any, mode: str) -> None:
    """ros2_control.launch.py sets the rate of the clock to that of the controllers."""
    message = "ros2_control.rate must divide the physics rate of 500 Hz, got 300; try 250 or 500"
    with pytest.raises(ValueError, match=re.escape(message)):
        declared(ros2_control__mode=mode, ros2_control__rate=300, publish_rates__clock=300)


def test_a_drone_of_the_users_own_is_named_by_its_path(
    declared: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    given = declared(drone_model="examples/12_drone")
    path = str(ROOT / "examples" / "12_drone")
    assert given.values.drone_model == given.node.get_parameter("drone_model").value == path
    assert from_values(Parameters, values_of(given.values)) == given.values
    message = f"drone_model: drone './nothing': there is no file {ROOT}/nothing/drone.toml"
    with pytest.raises(ValueError, match=re.escape(message)):
        declared(drone_model="./nothing")


def test_a_list_without_elements_is_one(declared: Any) -> None:
    """From `-p name:=[]` comes a parameter without type and value."""
    given = declared(crazyflie__decks=None, initial_poses=None)
    assert given.values.crazyflie.decks == given.values.initial_poses == ()
    described = given.node.describe_parameter("crazyflie.decks")
    assert (described.type, described.dynamic_typing) == (Parameter.Type.STRING_ARRAY.value, False)
    with pytest.raises(ValueError, match=re.escape("drones: expected at least one name, got []")):
        declared(drones=None)
    with pytest.raises(ValueError, match=r"freq: expected a whole number from 1 to \d+, got None"):
        declared(freq=None)


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [("real_time_factor", 2, 2.0), ("wind", [1, 0, 2], [1.0, 0.0, 2.0]), ("step_ticks", 3, 3)],
)
def test_whole_numbers_do_for_numbers_while_it_runs(
    declared: Any, name: str, given: Any, value: Any
) -> None:
    """As `ros2 param set /crazyflow real_time_factor 2` sends them."""
    node = declared().node
    before = node.get_parameter(name).type_
    assert node.set_parameters_atomically([Parameter(name, value=given)]).successful
    now = node.get_parameter(name)
    assert (np.array(now.value).tolist(), now.type_) == (value, before)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        *(("real_time_factor", value, "1000000, got ") for value in ("2", True, None)),
        ("step_ticks", 2.0, "a whole number"),
        ("wind", "[1, 0.5, 0]", "a list of numbers, got '[1, 0.5, 0]'"),
        ("drones", ["a"], "only be set at the start, got ['a'] later"),
        ("real_time_factr", 2.0, "did you mean 'real_time_factor'?"),
    ],
)
def test_a_refused_change_says_what_was_expected(
    declared: Any, name: str, value: Any, said: str
) -> None:
    node = declared().node
    before = {name: node.get_parameter(name).value for name in SETTABLE}
    change = Parameter(name) if value is None else Parameter(name, value=value)
    # All of them, or none.
    result = node.set_parameters_atomically([Parameter("checkpoint", value="x"), change])
    assert not result.successful and name in result.reason and said in result.reason
    assert {name: node.get_parameter(name).value for name in SETTABLE} == before


def test_unknown_parameter_is_reported(declared: Any, capfd: pytest.CaptureFixture[str]) -> None:
    declared(real_time_factr=1.0)
    said = "there is no parameter 'real_time_factr', it is ignored"
    assert f"{said}; did you mean 'real_time_factor'?" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"dynamics": "so_rpy"}, "dynamics: a battery needs first_principles, got 'so_rpy'"),
        ({"drone_model": "{}"}, r"drone_model: a battery needs a table \[battery\]"),
    ],
)
def test_batteries_that_are_not_known_are_refused(
    values: dict[str, str], message: str, tmp_path: Path
) -> None:
    without = (folder_of("cf2x_P250") / FIGURES).read_text().split("[battery]")
    (tmp_path / FIGURES).write_text(without[0] + without[1][without[1].index("[drawing]") :])
    values = {name: value.format(tmp_path) for name, value in values.items()}
    with pytest.raises(ParameterError, match=message):
        Parameters(battery=True, **values)


def driven(mode: str, **values: str) -> dict[str, Any]:
    return {**values, "ros2_control": Ros2Control(mode=mode)}


def located(*anchors: float) -> dict[str, Any]:
    return {"estimator": "kalman", "crazyflie": Decks(decks=("bcDWM1000",), anchors=anchors)}


@pytest.mark.parametrize(
    ("values", "name", "got"),
    [
        ({"wind": (1.0, 0.0, 0.0), "dynamics": "so_rpy"}, "dynamics", "so_rpy"),
        ({"gust_intensity": 0.1, "dynamics": "so_rpy"}, "dynamics", "so_rpy"),
        ({"controller": "pid", "control": "body_rate"}, "control", "body_rate"),
        ({"controller": "pid", "control": "attitude", "dynamics": "so_rpy"}, "control", "attitude"),
        (driven("topic", dynamics="so_rpy_rotor"), "dynamics", "so_rpy_rotor"),
        (driven("topic", controller="pid"), "controller", "pid"),
        (driven("topic", estimator="kalman"), "estimator", "kalman"),
        (located(), "crazyflie", "none"),
        (located(1.0, 2.0), "crazyflie", "2 numbers"),
        (located(1.0, 2.0, math.inf), "crazyflie.anchors", "inf"),
    ],
)
def test_values_that_do_not_fit_one_another_are_refused(
    values: dict[str, Any], name: str, got: str
) -> None:
    with pytest.raises(ParameterError, match=rf"^{name}.*\b{got}\b"):
        Parameters(**values)


def test_what_fits_is_taken() -> None:
    assert Parameters(dynamics="so_rpy_rotor_drag", wind=(1.0, 0.0, 0.0), gust_intensity=0.1)
    assert Parameters(controller="pid").simulation_config().controller == "pid"


def test_the_estimator_measures_what_the_decks_do() -> None:
    anchors = (0.0, 0.0, 2.0, 3.0, 0.0, 2.0)
    decks = Decks(decks=("bcDWM1000", "bcZRanger2"), anchors=anchors)
    parameters = Parameters(estimator="kalman", mocap=True, crazyflie=decks)
    assert parameters.simulation_config().positioning == Positioning(
        flow=False, range=True, motion_capture=True, anchors=((0, 0, 2), (3, 0, 2))
    )
    # Without an estimator nothing depends on the decks.
    assert Parameters(crazyflie=decks).simulation_config().positioning == Positioning()


@pytest.mark.parametrize(
    ("drones", "given", "expected"),
    [
        ("a", (), None),
        ("a", (1, 2, 3, 0.1, 0.2, 0.3, 0.9), [[1, 2, 3, 0.1, 0.2, 0.3, 0.9]]),
        ("ab", (0, 1, 2, 3, 4, 5), [[0, 1, 2, 0, 0, 0, 1], [3, 4, 5, 0, 0, 0, 1]]),
        (
            "ab",
            (0, 0, 1, 0, 4, 5, 6, math.pi / 2),
            [[0, 0, 1, 0, 0, 0, 1], [4, 5, 6, 0, 0, math.sqrt(0.5), math.sqrt(0.5)]],
        ),
    ],
)
def test_initial_poses_have_a_quaternion_a_yaw_or_look_ahead(
    drones: str, given: tuple[float, ...], expected: Any
) -> None:
    parameters = Parameters(drones=tuple(drones), initial_poses=given)
    poses = parameters.simulation_config().initial_poses
    assert poses is None if expected is None else np.allclose(poses, expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ((1.0, 2.0), "expected 6, 8 or 14 numbers for 2 drones, got [1.0, 2.0]"),
        ((math.nan,) * 8, "expected finite numbers"),
        ((0.0,) * 14, "quaternions must not be zero, got [0.0"),
    ],
)
def test_wrong_initial_poses_are_refused(numbers: tuple[float, ...], message: str) -> None:
    parameters = Parameters(drones=("a", "b"), initial_poses=numbers)
    with pytest.raises(ParameterError, match=r"^initial_poses: ") as caught:
        parameters.simulation_config()
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("values", "compiles"),
    [
        ({"wind": (1.0, 0.0, 0.0), "watchdog_timeout": 1.0, "start_paused": True}, False),
        ({"flight": FlightConfig(speed=1.0), "initial_poses": (0.0, 0.0, 1.0, 0.0)}, False),
        ({"gust_intensity": 1.0}, True),
        ({"drones": ("cf0", "cf1")}, True),
        ({"max_drones": 2}, True),
        ({"drone_model": "cf2x_P250"}, True),
        ({"door": "px4"}, True),
    ],
)
def test_code_is_compiled_for_what_it_depends_on(values: dict[str, Any], compiles: bool) -> None:
    """The log of the start says accordingly whether it compiles or loads."""

    def compiled_for(parameters: Parameters) -> tuple[object, ...]:
        return parameters.compiled_for(parameters.simulation_config())

    assert (compiled_for(Parameters(**values)) != compiled_for(Parameters())) is compiles


def flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in tree.items():
        name = f"{prefix}{key}"
        values |= flat(value, f"{name}.") if isinstance(value, dict) else {name: value}
    return values


def test_the_file_has_all_parameters_with_their_defaults() -> None:
    file: Path = resource("config", "simulator.yaml")
    given = flat(yaml.safe_load(file.read_text())["/**"]["ros__parameters"])
    defaults = {declaration.name: declaration.default for declaration in declarations(Parameters)}
    assert given.pop("drones") == ["cf0", "cf1", "cf2", "cf3"]
    del defaults["drones"]
    for name in EMPTY:
        assert f"# {name.split('.')[-1]}:" in file.read_text()  # an empty list cannot be written
        del defaults[name]
    for name in ("wind", "crazyflie.decks"):
        given[name] = tuple(given[name])
    assert given == defaults


@pytest.mark.parametrize("name", names(GROUP))
def test_the_file_has_the_parameters_of_extensions_as_comments(name: str) -> None:
    _, _, text = resource("config", "simulator.yaml").read_text().partition(f"{name}:\n")
    for declaration in declarations(load(GROUP, name, "extension")):
        line = re.search(rf"^ +# {declaration.name}: (.*)$", text, re.MULTILINE)
        if declaration.name not in ("decks", "ranging", "lighthouse"):  # of the node, too
            assert line, declaration.name
            is_example = declaration.default == ()
            written = yaml.safe_load(line[1])
            written = tuple(written) if isinstance(written, list) else written
            assert is_example or written == declaration.default
