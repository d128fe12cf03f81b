"""Each line of `doctor` is true: what is hidden from a process is missing there."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from command_processes import command
from packaging.requirements import Requirement
from paths import ROOT

from crazyflow_ros.client.command_line import doctor
from crazyflow_ros.client.command_line.doctor import PORTS, ROS_WHEELS, Finding, fits
from crazyflow_ros.crazyflie.link_config import FIRST_PORT
from crazyflow_ros.extras import EXTRAS, NEEDED


def examined(*hidden: str, **variables: str) -> tuple[int, dict[str, Finding]]:
    """Run it in a process that cannot import some modules."""
    hide = "".join(f"sys.modules[{name!r}] = None; " for name in hidden)
    code = f"import sys; {hide}from crazyflow_ros.__main__ import main; main(['doctor', '--json'])"
    env = {**os.environ, **variables}
    done = subprocess.run([sys.executable, "-c", code], env=env, text=True, capture_output=True)
    found = [Finding(**one) for one in json.loads(done.stdout)]
    return done.returncode, {one.name: one for one in found}


def test_what_is_installed_is_found_with_its_version_and_what_is_hidden_is_missing(
    tmp_path: Path,
) -> None:
    cache = tmp_path / "crazyflow_ros"
    cache.mkdir()
    (cache / "code").write_bytes(bytes(3_000_000))
    code, found = examined("mujoco", "viser", "simulation_interfaces", XDG_CACHE_HOME=str(tmp_path))
    assert code == 1
    for name in ("jax", "numpy", "scipy", "pyyaml"):
        assert found[name].found == metadata.version(name) and found[name].is_there
    lacking = found["mujoco"]
    assert not lacking.is_there and lacking.is_needed
    assert lacking.mend == f"{sys.executable} -m pip install 'mujoco>=3.17,<3.18'"
    assert "OpenGL" not in found
    assert not found["extra view"].is_there and not found["extra view"].is_needed
    assert found["extra view"].mend.endswith("-m pip install viser==1.1.1")
    assert found["extra record"].found == metadata.version("mcap")
    assert found["compiled code"].found == f"3 MB in {cache}"
    if "ROS domain" in found:
        assert found["messages"].found == "missing: simulation_interfaces"
        assert found["messages"].mend.endswith(("build-messages", "colcon build"))


@pytest.mark.parametrize("module", ["jax", "numpy", "yaml", "scipy", "rclpy"])
def test_without_what_everything_needs_it_still_says_so(module: str) -> None:
    code, found = examined(module)
    name = {"yaml": "pyyaml", "rclpy": "ROS"}.get(module, module)
    assert code == 1 and not found[name].is_there and found[name].mend
    assert "cannot be imported" in found[name].found


def test_bounds_of_versions() -> None:
    for requirement in NEEDED.values():
        parsed = Requirement(requirement)
        for version in ("0.8.9", "0.9", "0.10.2", "0.11.0", "1.12.1", "2.4.6", "3", "3.17.0", "6"):
            assert fits(version, requirement) == parsed.specifier.contains(version), requirement
    assert fits("of unknown version", "numpy>=2,<3")


def test_a_version_out_of_bounds_and_a_port_in_use_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(doctor.NEEDED, "numpy", "numpy>=99")
    (numpy,) = (one for one in doctor._packages() if one.name == "numpy")
    assert not numpy.is_there and numpy.found == f"{metadata.version('numpy')}, expected numpy>=99"
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setitem(doctor.PORTS, "page", server.getsockname()[1])
        page = next(doctor._ports())
    assert not page.is_there and page.found == "page: Address already in use"


def test_ros2_control_is_what_the_sourced_prefixes_have(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ROS_DISTRO", "kilted")
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path))
    index = tmp_path / "share" / "ament_index" / "resource_index"
    (index / "packages").mkdir(parents=True)
    assert next(doctor._ros2_control()).mend.startswith("rosdep install")
    for name in ("controller_manager", "hardware_interface", "joint_state_broadcaster"):
        (index / "packages" / name).touch()
    assert next(doctor._ros2_control()).mend.startswith("colcon build")
    plugin = index / "hardware_interface__pluginlib__plugin" / "crazyflow_ros"
    plugin.parent.mkdir()
    plugin.touch()
    assert next(doctor._ros2_control()).is_there


def test_a_machine_that_draws_no_pictures_gets_the_command_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_egl(*_: Any, **__: Any) -> subprocess.CompletedProcess[str]:
        from crazyflow_ros.opengl import advice

        return subprocess.CompletedProcess([], 1, "", f"no pictures: no EGL. {advice()}\n")

    monkeypatch.setenv("MUJOCO_GL", "egl")
    monkeypatch.setattr(subprocess, "run", no_egl)
    opengl = next(doctor._pictures())
    assert not opengl.is_there and opengl.mend == "sudo apt install libegl1 libgl1-mesa-dri"


def test_a_reader_sees_what_is_wrong_and_the_commands_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = [Finding("a", "1.0"), Finding("b", "no b", False, "get b"), Finding("c", "no c", False)]
    monkeypatch.setattr(doctor, "CHECKS", (lambda: iter(found),))
    done = command("doctor")
    assert done.returncode == 0 and done.stdout == (
        "ok  a  1.0\n--  b  no b\n--  c  no c\n\nb:\n    get b\n\n"
        "The simulator can run. What is marked -- is optional.\n"
    )
    found.append(Finding("d", "no d", False, "get d", is_needed=True))
    done = command("doctor")
    assert done.returncode == 1 and "\nNO  d  no d\n" in done.stdout
    assert "The simulator cannot run, for want of: d." in done.stdout


def test_its_ports_and_wheels_are_those_of_the_programs() -> None:
    viewer = (ROOT / "crazyflow_ros" / "view" / "viewer.py").read_text()
    foxglove = (ROOT / "crazyflow_ros" / "view" / "foxglove" / "server.py").read_text()
    assert f'PORT = "127.0.0.1", {PORTS["page"]}\n' in viewer
    assert f"= {PORTS['Foxglove']}\n" in foxglove
    assert PORTS["Crazyflies"] == FIRST_PORT
    setup = (ROOT / "setup.py").read_text()
    assert all(f'"{wheel}",' in setup for wheel in ROS_WHEELS)


def test_all_extras_have_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [one.name for one in doctor._extras()] == [f"extra {name}" for name in EXTRAS]
