"""Wind by parameters, and the services that let motors fail and batteries run down."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Odometry
from rcl_interfaces.srv import GetParameters
from ros_client import Client, SimulatorProcess, numbers, own_domain, tick_of
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

services = pytest.importorskip("crazyflow_ros_interfaces.srv", reason="not installed")

DOMAIN = own_domain("test_ros_disturbances")
MOTOR, BATTERY = "cf0/set_motor_efficiency", "cf0/set_battery"


@pytest.fixture(scope="module")
def arguments(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("checkpoints")
    given = ["drones:=[cf0,cf1]", "max_drones:=3", "battery:=true", "start_paused:=true"]
    return [*given, f"checkpoint_folder:={folder}"]


@pytest.fixture(autouse=True)
def as_at_the_start(client: Client) -> None:
    client.reset()
    assert client.set_parameter("wind", [0.0, 0.0, 0.0]).successful


def fly_up(client: Client) -> None:
    for drone, x in (("cf0", 0.0), ("cf1", 1.0)):
        target = PoseStamped()
        target.pose.position.x, target.pose.position.z = x, 1.0
        client.publish(f"{drone}/cmd_pose", target)


def parameters(client: Client, *names: str) -> list[Any]:
    values = client.call(GetParameters, "crazyflow/get_parameters", names=names).values
    return [list(v.double_array_value) or v.double_value for v in values]


def test_wind_is_set_while_it_runs_and_goes_with_a_checkpoint(client: Client) -> None:
    assert client.set_parameter("checkpoint", "flight").successful
    odometry = client.collect(Odometry, "cf0/odom")
    fly_up(client)
    client.advance(500)
    assert client.set_parameter("wind", [2.0, 1.0, 0.0]).successful
    assert client.set_parameter("gust_altitude", 10.0).successful
    client.advance(100)
    saved = tick_of(client.call(Trigger, "crazyflow/save_checkpoint"))
    flights = []
    for _ in range(2):
        odometry.clear()
        flights.append(client.newest(odometry, client.advance(400)))
        client.advance(5)
        client.reset()
        assert client.set_parameter("wind", [0.0, 0.0, 0.0]).successful
        assert client.set_parameter("gust_altitude", 5.0).successful
        assert tick_of(client.call(Trigger, "crazyflow/load_checkpoint")) == saved
        assert parameters(client, "wind", "gust_altitude") == [[2.0, 1.0, 0.0], 10.0]
    np.testing.assert_array_equal(*(numbers(m.pose.pose.position) for m in flights))
    np.testing.assert_array_equal(*(numbers(m.twist.twist.angular) for m in flights))


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("wind", [31.0, 0.0, 0.0], "wind must be within 30 m/s, got [31.0, 0.0, 0.0]"),
        ("wind", [25.0, 25.0, 0.0], "wind speed must be within 30 m/s, got 35.3553"),
        ("wind", [float("nan"), 0.0, 0.0], "wind must be 3 finite numbers, got [nan, 0.0, 0.0]"),
        ("wind", [1.0, 0.0], "wind must be 3 finite numbers, got [1.0, 0.0]"),
        ("gust_intensity", 11.0, "expected a number from 0 to 10, got 11"),
        ("gust_altitude", 1.0, "expected a number from 3 to 300, got 1.0"),
        ("ground_effect", False, "ground_effect can only be set at the start, got False"),
    ],
)
def test_what_cannot_be_set_changes_nothing(
    client: Client, name: str, value: Any, reason: str
) -> None:
    before = parameters(client, "wind", "gust_intensity", "gust_altitude")
    result = client.set_parameter(name, value)
    assert not result.successful and reason in result.reason
    assert parameters(client, "wind", "gust_intensity", "gust_altitude") == before


def test_a_drone_falls_when_a_motor_fails_and_a_reset_repairs_it(client: Client) -> None:
    odometry = {name: client.collect(Odometry, f"{name}/odom") for name in ("cf0", "cf1")}
    joints = client.collect(JointState, "cf0/joint_states")

    def heights(tick: int) -> list[float]:
        return [client.newest(list_, tick).pose.pose.position.z for list_ in odometry.values()]

    fly_up(client)
    assert min(heights(client.advance(2000))) > 0.9
    response = client.call(services.SetMotorEfficiency, MOTOR, motor=2, efficiency=0.0)
    assert "motor 2 of cf0 has an efficiency of 0, from tick " in response.message
    tick = client.advance(1000)
    fallen, flying = heights(tick)
    assert fallen < 0.5 and flying > 0.9
    assert client.newest(joints, tick).velocity[2] < 300  # rad/s, it runs down; 1,700 carry it
    assert client.call(Trigger, "cf0/reset").success
    fly_up(client)
    assert min(heights(client.advance(2000))) > 0.9


def test_a_drone_with_an_empty_battery_falls(client: Client) -> None:
    odometry = client.collect(Odometry, "cf0/odom")
    fly_up(client)
    client.advance(2000)
    response = client.call(services.SetBattery, BATTERY, charge=0.0)
    assert response.success and "battery of cf0 is at 0%" in response.message
    assert client.newest(odometry, client.advance(1000)).pose.pose.position.z < 0.3


def test_bad_requests_are_refused_with_what_is_expected(client: Client) -> None:
    for kind, name, request, message in (
        (services.SetMotorEfficiency, MOTOR, {"motor": 4}, "one of 0 to 3, got 4"),
        (services.SetMotorEfficiency, MOTOR, {"efficiency": -0.1}, "from 0 to 1, got -0.1"),
        (services.SetBattery, BATTERY, {"charge": float("nan")}, "from 0 to 1, got nan"),
        (services.SetBattery, BATTERY, {"charge": 1.1}, "from 0 to 1, got 1.1"),
    ):
        response = client.call(kind, name, **request)
        assert not response.success and message in response.message


def test_the_start_says_what_it_does(simulator: SimulatorProcess) -> None:
    said = simulator.log
    assert said.index("importing") < said.index("compil") < said.index("ready: ")


def test_the_status_has_state_and_battery_of_each_drone(client: Client) -> None:
    assert client.call(services.SetBattery, BATTERY, charge=0.25).success
    messages = client.collect(DiagnosticArray, "crazyflow/status")

    def batteries() -> list[str]:
        values = {pair.key: pair.value for pair in messages[-1].status[0].values}
        assert (values["state of cf0"], values["state of cf1"]) == ("idle", "idle")
        return [values[f"battery of {drone}"] for drone in ("cf0", "cf1")]

    client.until(lambda: messages and batteries()[0].endswith("V, 25%"), "the battery of cf0")
    assert batteries()[1].endswith("V, 100%")
