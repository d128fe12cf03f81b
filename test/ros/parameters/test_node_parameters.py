"""Parameters of the node: what is declared, what is refused and how that is said."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rclpy
import yaml
from paths import ROOT
from rclpy.context import Context
from rclpy.parameter import Parameter

from crazyflow_ros.checks.entry_points import load, names
from crazyflow_ros.checks.plain_values import ParameterError, declarations, from_values, values_of
from crazyflow_ros.drones import Drone
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
NAMES = [declaration.name for declaration in declarations(Parameters)]


@pytest.fixture(scope="module")
def context() -> Iterator[Context]:
    context = Context()
    rclpy.init(context=context)
    yield context
    rclpy.shutdown(context=context)


class Declared:
    """A node with its parameters."""

    def __init__(self, node: ParameterNode) -> None:
        self.node, self.values = node, declare(node, Parameters)


@pytest.fixture
def declared(context: Context) -> Iterator[Any]:
    nodes = []

    def make(**overrides: Any) -> Declared:
        parameters = [Parameter(name.replace("__", "."), value=v) for name, v in overrides.items()]
        node = ParameterNode(
            "parameters_test",
            context=context,
            parameter_overrides=parameters,
            start_parameter_services=False,
            enable_rosout=False,
        )
        nodes.append(node)
        return Declared(node)

    yield make
    for node in nodes:
        node.destroy_node()


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


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("drones", "cf0", "drones: expected a list of names such as [cf0, cf1], got 'cf0'"),
        ("drones", [1, 2], "drones: expected a list of names such as [cf0, cf1], got "),
        ("drones", ["2b"], "start with a letter, got '2b'"),
        ("drones", ["a/b"], "got 'a/b'"),
        ("drones", ["a__b"], "got 'a__b'"),
        ("drones", ["a" * 101], "drones: a name must have at most 100 characters, got 'aaaa"),
        (
            "drones",
            ["all"],
            "drones: 'all' is reserved; ",
        ),
        ("drones", ["a", "a"], "drones: names must differ, got ['a', 'a']"),
        ("drone_model", "x", f"drone_model: expected one of {', '.join(Drone)}, got 'x'"),
        ("control", "fly", "control: expected one of state, attitude, "),
        (
            "controller",
            "lee",
            "controller: expected one of pid, mellinger, indi, brescianini, got 'lee'",
        ),
        ("integrator", "rk5", "integrator: expected one of euler, symplectic_euler, rk4"),
        ("dynamics", "none", "dynamics: expected one of first_principles, so_rpy, "),
        ("freq", 0, "freq: expected a whole number from 1 to 100000, got 0"),
        ("freq", 500.5, "freq: expected a whole number from 1 to 100000, got 500.5"),
        ("freq", True, "freq: expected a whole number"),
        ("real_time_factor", -1.0, "real_time_factor: expected 0, or a number from 1e-06 to "),
        ("real_time_factor", math.nan, "got nan"),
        ("real_time_factor", "2", "real_time_factor: expected 0, or a number from 1e-06 to "),
        (
            "real_time_factor",
            1e-7,
            "real_time_factor: expected 0, or a number from 1e-06 to 1000000, got 1e-07",
        ),
        (
            "flight__speed",
            0.001,
            "flight.speed: expected 0, or a number from 0.05 to 50, got 0.001",
        ),
        ("start_paused", 1, "start_paused: expected true or false, got 1"),
        ("step_ticks", -1, "step_ticks: expected a whole number from 0 to "),
        ("seed", -1, "seed: expected a whole number from 0 to "),
        ("wind", [1.0, 2.0], "wind must be 3 finite numbers, got [1.0, 2.0]"),
        ("wind", [0.0, 31.0, 0.0], "wind must be within 30 m/s, got [0.0, 31.0, 0.0]"),
        ("wind", [math.inf, 0.0, 0.0], "wind must be 3 finite numbers, got [inf, 0.0, 0.0]"),
        ("gust_intensity", -0.1, "gust_intensity: expected a number from 0 to 10, got -0.1"),
        ("gust_altitude", 1.0, "gust_altitude: expected a number from 3 to 300, got 1.0"),
        ("initial_poses", ["a"], "initial_poses: expected a list of numbers, got "),
        ("publish_rates__clock", 0, "publish_rates.clock: expected a whole number from 1 to "),
        ("publish_rates__tf", -1, "publish_rates.tf: expected a whole number from 0 to "),
        (
            "publish_rates__odom",
            130,
            "publish_rates.odom must divide the physics rate of 500 Hz, got 130; try 125 or 250",
        ),
        (
            "ros2_control__shared_memory",
            "/a/b",
            "ros2_control.shared_memory: expected 1 to 200 letters, digits, '_', '.' or '-', "
            "got '/a/b'",
        ),
    ],
)
def test_what_cannot_be_used_is_named(declared: Any, name: str, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        declared(**{name: value})
    assert "\n" not in str(caught.value)


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
    ("parameter", "reason"),
    [
        (
            Parameter("real_time_factor", value="2"),
            "real_time_factor: expected 0, or a number from 1e-06 to",
        ),
        (Parameter("real_time_factor", value=True), "1000000, got True"),
        (Parameter("real_time_factor"), "1000000, got None"),
        (Parameter("step_ticks", value=2.0), "step_ticks: expected a whole number from 0 to"),
        (Parameter("wind", value="[1, 0.5, 0]"), "expected a list of numbers, got '[1, 0.5, 0]'"),
        (Parameter("drones", value=["a"]), "drones can only be set at the start, got ['a'] later"),
        (
            Parameter("real_time_factr", value=2.0),
            "there is no parameter 'real_time_factr'; did you mean 'real_time_factor'?",
        ),
    ],
)
def test_a_refused_change_says_what_was_expected(
    declared: Any, parameter: Parameter[Any], reason: str
) -> None:
    node = declared().node
    before = {name: node.get_parameter(name).value for name in SETTABLE}
    changes = [Parameter("checkpoint", value="x"), parameter]  # all of them, or none
    result = node.set_parameters_atomically(changes)
    assert not result.successful and reason in result.reason
    assert {name: node.get_parameter(name).value for name in SETTABLE} == before


def test_unknown_parameter_is_reported(declared: Any, capfd: pytest.CaptureFixture[str]) -> None:
    declared(real_time_factr=1.0)
    said = "there is no parameter 'real_time_factr', it is ignored"
    assert f"{said}; did you mean 'real_time_factor'?" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"dynamics": "so_rpy"},
            "dynamics: a battery needs first_principles, got 'so_rpy'",
        ),
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


@pytest.mark.parametrize("values", [{"wind": (1.0, 0.0, 0.0)}, {"gust_intensity": 0.1}])
def test_wind_needs_dynamics_with_drag(values: dict[str, Any]) -> None:
    message = "dynamics: wind needs first_principles or so_rpy_rotor_drag, got 'so_rpy'"
    with pytest.raises(ParameterError, match=message):
        Parameters(dynamics="so_rpy", **values)
    assert Parameters(dynamics="so_rpy_rotor_drag", **values)


def test_ros2_control_needs_dynamics_with_rotors() -> None:
    message = "dynamics: ros2_control.mode topic needs first_principles, got 'so_rpy_rotor'"
    with pytest.raises(ParameterError, match=message):
        Parameters(dynamics="so_rpy_rotor", ros2_control=Ros2Control(mode="topic"))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"control": "body_rate"},
            "control: controller pid with dynamics first_principles needs state or attitude, "
            "got 'body_rate'",
        ),
        (
            {"control": "attitude", "dynamics": "so_rpy"},
            "control: controller pid with dynamics so_rpy needs state, got 'attitude'",
        ),
        (
            {"ros2_control": Ros2Control(mode="lock_step")},
            "controller: ros2_control.mode lock_step needs mellinger, got 'pid'",
        ),
    ],
)
def test_controllers_that_commands_do_not_pass_are_refused(
    values: dict[str, Any], message: str
) -> None:
    with pytest.raises(ParameterError, match=re.escape(message)):
        Parameters(controller="pid", **values)
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
    ("values", "message"),
    [
        (
            {"crazyflie": Decks(decks=("bcDWM1000",))},
            "the deck bcDWM1000 needs anchors, got none",
        ),
        (
            {"crazyflie": Decks(decks=("bcDWM1000",), anchors=(1.0, 2.0))},
            "anchors have 3 coordinates each, got 2 numbers",
        ),
        (
            {"crazyflie": Decks(decks=("bcDWM1000",), anchors=(1.0, 2.0, math.inf))},
            "crazyflie.anchors: ",
        ),
        (
            {"ros2_control": Ros2Control(mode="topic")},
            "estimator: ros2_control.mode topic needs none, got 'kalman'",
        ),
    ],
)
def test_estimators_without_what_they_need_are_refused(
    values: dict[str, Any], message: str
) -> None:
    with pytest.raises(ParameterError, match=re.escape(message)):
        Parameters(estimator="kalman", **values)


def test_no_initial_poses_leave_it_to_the_simulation() -> None:
    assert Parameters().simulation_config().initial_poses is None


def test_initial_poses_with_a_quaternion_are_taken_as_they_are() -> None:
    given = (1.0, 2.0, 3.0, 0.1, 0.2, 0.3, 0.9)
    poses = Parameters(initial_poses=given).simulation_config().initial_poses
    assert np.array_equal(poses, [given])


def test_initial_poses_without_a_yaw_look_ahead() -> None:
    parameters = Parameters(drones=("a", "b"), initial_poses=(0, 1, 2, 3, 4, 5))
    expected = [[0, 1, 2, 0, 0, 0, 1], [3, 4, 5, 0, 0, 0, 1]]
    assert np.array_equal(parameters.simulation_config().initial_poses, expected)


def test_initial_poses_with_a_yaw_turn_left() -> None:
    parameters = Parameters(drones=("a", "b"), initial_poses=(0, 0, 1, 0, 4, 5, 6, math.pi / 2))
    half = math.sqrt(0.5)
    expected = [[0, 0, 1, 0, 0, 0, 1], [4, 5, 6, 0, 0, half, half]]
    assert np.allclose(parameters.simulation_config().initial_poses, expected)


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
        if declaration.name != "decks":
            assert line, declaration.name
            is_example = declaration.default == ()
            assert is_example or yaml.safe_load(line[1]) == declaration.default
