"""The examples of docs/guides/extend.md run, and docs/guides/extend.md shows them as they are."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from pathlib import Path
from types import ModuleType

import jax
import numpy as np
import pytest
from geometry_msgs.msg import PointStamped, PoseStamped
from nav_msgs.msg import Odometry
from other_packages import EXAMPLES, installed, metadata
from paths import ROOT
from ros_client import (
    FREQ,
    Client,
    RosProcess,
    SimulatorProcess,
    numbers,
    own_domain,
    stamp_ns,
    time_ns,
)
from std_srvs.srv import Trigger

from crazyflow_ros.sim import Sim
from crazyflow_ros.sim.functional import state_control

PAGE = ROOT / "docs" / "guides" / "extend.md"
DOMAIN = own_domain("test_docs_extend")
PACKAGES = ("09_service", "10_topic", "13_door")
PORT = 9100  # of the door, by default


def test_pages_name_every_example() -> None:
    text = "".join(page.read_text() for page in PAGE.parent.glob("*.md"))
    files = [str(file.relative_to(EXAMPLES)) for file in EXAMPLES.rglob("*.py")]
    missing = [file for file in files if f"examples/{file}" not in text]
    assert not missing


def test_blocks_of_the_page_are_parts_of_the_examples() -> None:
    """Line by line, so that a change of an example does not leave the page behind."""
    lines = {
        line.strip() for file in EXAMPLES.rglob("*.py") for line in file.read_text().splitlines()
    }
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 6
    shown = [line.strip() for block in blocks for line in block.splitlines()]
    assert [line for line in shown if line not in lines | {"..."}] == []


@pytest.mark.parametrize(
    "name", ["01_force", "02_pipeline_stage", "03_dynamics_model", "04_environment"]
)
def test_example_runs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    import_module(name).main()
    assert capsys.readouterr().out


def test_the_model_adds_its_drag_and_keeps_it_through_a_reset() -> None:
    model = import_module("03_dynamics_model")
    sim = model.make_sim(0.02, control="rotor_vel")
    state = sim.data.states.replace(vel=sim.data.states.vel + np.array([3.0, 0.0, 4.0]))
    command = sim.data.controls.actuators
    plain = model.first_principles.Params.derivative

    def acceleration(derivative) -> np.ndarray:
        zero = (np.zeros((1, 1)),) * 3
        external = model.Wrench(zero, zero)
        parts = tuple(command[..., i] for i in range(4))
        return np.array(derivative(sim.data.params, state.components, parts, external).acc)

    gained = acceleration(model.Params.derivative) - acceleration(plain)
    expected = -0.02 * 5.0 * np.array([3.0, 0.0, 4.0]) / float(sim.data.params.mass[0])
    np.testing.assert_allclose(gained[:, 0, 0], expected, rtol=1e-4)
    sim.reset()
    assert isinstance(sim.data.params, model.Params)


def test_the_stage_counts_turns_and_forgets_them_in_a_reset() -> None:
    sim = import_module("02_pipeline_stage").make_sim()
    sim.data = sim.data.replace(
        states=sim.data.states.replace(rotor_vel=sim.data.states.rotor_vel + 6000.0)
    )
    sim.step()
    np.testing.assert_allclose(sim.data.plugins["turns"], 6000 / 60 / sim.freq, rtol=1e-5)
    sim.reset()
    assert not np.any(sim.data.plugins["turns"])


def test_the_force_is_largest_above_the_fan_and_has_a_gradient() -> None:
    fan = import_module("01_force")

    def lift(x: float) -> jax.Array:
        state = fan.Sim(drone=fan.DRONE).data.states.components
        return fan.fan(state._replace(pos=(x, 0.0 * x, 0.0 * x)), None).force[2]

    assert float(lift(0.0)) == pytest.approx(fan.FORCE)
    assert float(jax.grad(lift)(0.3)) < 0


def stretched(module: ModuleType) -> tuple[float, float, float]:
    """Where a drone is that the breeze pushes from (0, 0, 1) until its spring holds it."""
    return module.PUSH / module.STIFFNESS, 0.0, 1.0


def test_a_force_and_a_controller_of_a_package_fly_in_sim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in installed("20_physics", tmp_path):
        monkeypatch.syspath_prepend(path)
    forces = ("breeze", "floor_contact")
    sim = Sim(control="state", controller="spring", forces=forces, true_mass=True)
    sim.data = state_control(sim.data, np.array([[[0.0, 0, 1] + 10 * [0]]], np.float32))
    sim.step(8 * sim.freq)
    place = stretched(import_module("20_physics.spring_in_a_breeze"))
    np.testing.assert_allclose(sim.data.states.pos[0, 0], place, atol=1e-4)


def test_a_force_and_a_controller_of_a_package_fly_in_the_node(tmp_path: Path) -> None:
    domain = own_domain("test_docs_extend_physics")
    prelude = f"import sys; sys.path[:0] = {installed('20_physics', tmp_path)!r}"
    values = ("controller:=spring", "forces:=[breeze]", "start_paused:=true")
    arguments = [word for value in values for word in ("-p", value)]
    goal = PoseStamped()
    goal.pose.position.z = 1.0
    with (
        SimulatorProcess(domain, arguments, prelude=prelude) as simulator,
        closing(Client(domain)) as client,
    ):
        odometry = client.collect(Odometry, "cf0/odom")
        client.publish("cf0/cmd_pose", goal)
        reached = client.newest(odometry, client.advance(10 * FREQ)).pose.pose.position
        place = stretched(import_module("20_physics.spring_in_a_breeze"))
        np.testing.assert_allclose(numbers(reached), place, atol=1e-3)
        assert "[WARN]" not in simulator.log and "[ERROR]" not in simulator.log


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatorProcess]:
    """A simulator beside which the packages are installed, and one that is broken."""
    paths = [
        path for name in PACKAGES for path in installed(name, tmp_path_factory.mktemp("packages"))
    ]
    broken = {"crazyflow_ros.features": {"broken": "no_such_module:declare"}}
    paths.append(str(metadata(tmp_path_factory.mktemp("broken"), "some-package", broken)))
    arguments = ["-p", "drones:=[cf0,cf1]", "-p", "door:=udp_autopilot"]
    arguments += ["-p", f"udp_autopilot.port:={PORT}", "-p", "udp_autopilot.timeout:=60.0"]
    prelude = f"import sys; sys.path[:0] = {paths!r}"
    with SimulatorProcess(DOMAIN, arguments, prelude=prelude) as simulator:
        yield simulator


@pytest.fixture(scope="module")
def client(simulator: SimulatorProcess) -> Iterator[Client]:
    client = Client(DOMAIN)
    yield client
    client.close()


def test_a_broken_feature_is_named_and_the_simulator_flies(simulator: SimulatorProcess) -> None:
    (line,) = [line for line in simulator.log.splitlines() if "some-package" in line]
    assert "broken" in line and "no_such_module" in line and "Traceback" not in line


def test_the_service_answers(client: Client) -> None:
    response = client.call(Trigger, "crazyflow/count_flying")
    assert response.success
    assert response.message.startswith("0 of 2 drones fly, at tick ")


def test_autopilots_of_other_processes_fly_the_drones_of_the_node(
    simulator: SimulatorProcess, client: Client
) -> None:
    """Their rotors turn, time runs in lock-step with them, and the topic comes on exact ticks."""
    program = EXAMPLES / "13_door" / "udp_pilot.py"
    words = [[sys.executable, str(program), str(i), "0.6", str(PORT)] for i in (0, 1)]
    messages = client.collect(PointStamped, "crazyflow/highest")
    with RosProcess(words[0], DOMAIN), RosProcess(words[1], DOMAIN):
        client.until(lambda: messages and messages[-1].point.z > 0.5, "the height")
    times = np.array([time_ns(message.header.stamp) for message in messages])
    assert (times % stamp_ns(50) == 0).all() and (np.diff(times) == stamp_ns(50)).all()
    assert "udp_autopilot: cf1 has an autopilot" in simulator.log
