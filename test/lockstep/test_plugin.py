"""The plugin for ros2_control, as far as it can be seen without: its names, and some parts."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import xml.etree.ElementTree as ET

import pytest
from paths import ROOT

from crazyflow_ros.description.interfaces import AXES, BODY, GOAL, SENSORS, rotors
from crazyflow_ros.drones.rotors import MOST
from crazyflow_ros.lockstep import layout, robots
from crazyflow_ros.runtime import Level

HEADER = (ROOT / "hardware" / "include" / "crazyflow_ros" / "shared_memory.hpp").read_text()
SOURCE = (ROOT / "hardware" / "src" / "interfaces.hpp").read_text()


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """Runs test/lockstep/plugin_parts.cpp, and returns the lines that it prints."""
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None:
        pytest.skip("needs a C++ compiler")
    program = tmp_path_factory.mktemp("parts") / "plugin_parts"
    options = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-pthread"]
    folders = [f"-I{ROOT / 'hardware' / folder}" for folder in ("include", "src")]
    source = str(ROOT / "test" / "lockstep" / "plugin_parts.cpp")
    subprocess.run([compiler, *options, *folders, source, "-o", str(program)], check=True)

    def run(*arguments):
        command = [str(program), *arguments]
        return subprocess.run(
            command, check=True, timeout=60, capture_output=True, text=True
        ).stdout.splitlines()

    return run


def listed(array):
    (body,) = re.findall(rf"{array} = {{(.*?)}};", SOURCE, re.DOTALL)
    return re.findall(r'"([^"]+)"', body)


def test_the_plugin_has_the_interfaces_that_the_description_declares():
    components = (*rotors(MOST), *SENSORS, *AXES, BODY, GOAL)
    states = [f"{c.suffix}/{name}" for c in components for name in c.states]
    commands = [f"{c.suffix}/{name}" for c in components for name in c.commands]
    assert sorted(listed("kStates")) == sorted(states)
    assert sorted(listed("kCommands")) == sorted(commands)


def test_the_plugin_is_exported_under_the_name_that_the_description_asks_for():
    library = ET.parse(ROOT / "hardware" / "crazyflow_system.xml").getroot()
    (plugin,) = library.findall("class")
    assert plugin.get("name") == "crazyflow_ros/CrazyflowSystem"
    assert (
        f"PLUGINLIB_EXPORT_CLASS({plugin.get('type')}, {plugin.get('base_class_type')})"
        in (ROOT / "hardware" / "src" / "crazyflow_system.cpp").read_text()
    )
    cmake = (ROOT / "CMakeLists.txt").read_text()
    assert f"add_library({library.get('path')} SHARED" in cmake


def test_both_sides_agree_on_the_names_of_a_shared_memory(parts):
    names = ["crazyflow", "a.b-c_9", "x" * 200, "", "x" * 201, "/a/b", "a b", "..\n", "ä"]
    expected = [True] * 3 + [False] * 6
    assert [layout.is_name(name) for name in names] == expected
    assert parts("names", *names) == [str(int(valid)) for valid in expected]
    assert f'kNameRule = "{layout.NAME_RULE}"' in HEADER


def test_both_sides_agree_on_the_layout(parts):
    hashes = [layout.layout_hash(), layout.layout_hash(robots=True)]
    assert parts("layout") == [f"{value:08x}" for value in hashes]


def test_both_sides_agree_on_a_command_that_is_none_yet():
    assert f" waiting = {layout.WAITING}," in HEADER
    assert f" goal = {Level.goal}," in HEADER
    assert f"kCarried = {layout.CARRIED};" in HEADER
    assert f"kVersion = {layout.VERSION};" in HEADER
    assert f"kVersionWithRobots = {layout.VERSION_WITH_ROBOTS};" in HEADER
    assert f"kJointWaiting = {robots.WAITING};" in HEADER


def test_the_simulators_end_is_watched_for_as_long_as_is_asked_for(parts):
    assert parts("watch") == ["looked 3 times"] * 2


def test_nothing_of_the_plugin_is_left_with_the_managers_executor():
    """It would be used once the plugin's library is unloaded: a crash at the manager's end."""
    for source in (ROOT / "hardware" / "src").glob("crazyflow_system.*"):
        assert not re.search(r"\bcreate_\w+", source.read_text())


def test_parameters_of_the_hardware_are_read(parts):
    assert parts("parameters") == ["crazyflow 1000 30000 "]
    given = {"shared_memory": "two", "timeout_ms": "20", "connect_timeout_ms": "7"}
    given |= {"lock_step": "false", "status_publish_rate": "5.0"}  # the last is ros2_control's
    words = [word for pair in given.items() for word in pair]
    assert parts("parameters", *words) == ["two 20 7 false"]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("time_out_ms", "20", "'time_out_ms' is no parameter of this hardware, which has shared_"),
        ("lockstep", "true", "'lockstep' is no parameter .*, connect_timeout_ms, lock_step, "),
        ("connect_timeout_ms", "1.5", "connect_timeout_ms: expected milliseconds, got '1.5'"),
        ("timeout_ms", "0", "timeout_ms: expected milliseconds, got '0'"),
        ("lock_step", "yes", "lock_step: expected true or false, got 'yes'"),
        ("shared_memory", "a/b", "shared_memory: expected 1 to 200 letters, .* got 'a/b'"),
    ],
)
def test_a_parameter_that_is_not_understood_is_refused(parts, name, value, message):
    (line,) = parts("parameters", name, value)
    assert re.match(message, line)


def test_parameters_of_mujoco_ros2_control_are_taken_or_named(parts):
    given = {"headless": "true", "mujoco_model": "/a.xml", "force_mjcf_suffix": "_f"}
    said, *unused = parts("parameters", *[word for pair in given.items() for word in pair])
    assert said == "crazyflow 1000 30000 "
    assert sorted(line.partition(": ")[0] for line in unused) == [
        "the parameter headless has no effect",
        "the parameter mujoco_model has no effect",
    ]


def test_readings_of_sensors_are_found_as_in_mujoco_ros2_control(parts):
    interfaces = ["orientation.w", "orientation.x", "angular_velocity.y", "linear_acceleration.z"]
    interfaces += ["force.x", "torque.z", "position.y", "magnetic_field.z", "range"]
    interfaces += ["orientation_covariance.3"]
    assert parts("reading", "a", *interfaces) == [
        *("a_quat 0 1", "a_quat 1 1", "a_gyro 1 1", "a_accel 2 1"),
        *("a_force 0 -1", "a_torque 2 -1", "a_pos 1 1", "a 2 1", "a 0 1", " 0 1"),
    ]


def test_a_motor_follows_positions_by_its_gains(parts):
    (why,) = parts("pid")
    assert why.startswith("its actuators take effort; gains of a PID controller")
    # 8 before the first command: the joint goes on as before.
    assert parts("pid", "p=10", "d=1") == ["", "8 0", "4 8", "4 8"]
    assert parts("pid", "p=10", "i=2", "i_clamp_max=1.5") == ["", "8 0", "4 11", "4 11.5"]
    assert parts("pid", "p=10", "u_clamp_max=3") == ["", "8 0", "4 3", "4 3"]
    assert parts("pid", "q=1")[0].startswith("'pid_gains.position.joint.q' is no gain")


def test_a_build_finds_ros2_control_that_was_installed_after_the_one_before(tmp_path):
    prefix, later, build = sysconfig.get_path("data"), tmp_path / "later", tmp_path / "build"
    if shutil.which("cmake") is None or not os.path.isdir(f"{prefix}/share/ament_cmake_python"):
        pytest.skip("needs CMake and ament_cmake in this environment")
    index = later / "share" / "ament_index" / "resource_index" / "packages"
    index.mkdir(parents=True)
    given = f"{prefix}:{later}"
    environment = os.environ | {"AMENT_PREFIX_PATH": given, "LD_LIBRARY_PATH": f"{prefix}/lib"}

    def run(*arguments):
        command = ["cmake", *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        return done.stdout + done.stderr

    python = f"-DPython3_EXECUTABLE={sys.executable}"
    paths = f"-DCMAKE_PREFIX_PATH={prefix};{later}"
    said = run("-S", str(ROOT), "-B", str(build), paths, python, "-DBUILD_TESTING=OFF")
    assert "There is no ros2_control" in said, said
    assert "crazyflow_system" not in run("--build", str(build))
    for package in ("hardware_interface", "pluginlib"):
        folder = later / "share" / package / "cmake"
        folder.mkdir(parents=True)
        version = 'set(PACKAGE_VERSION "99.0")\nset(PACKAGE_VERSION_COMPATIBLE TRUE)\n'
        (folder / f"{package}Config-version.cmake").write_text(version)
        (folder / f"{package}Config.cmake").write_text(
            f"add_library({package}::{package} INTERFACE IMPORTED)\n"
            "macro(pluginlib_export_plugin_description_file)\nendmacro()\n"
        )
    (index / "hardware_interface").touch()
    assert "crazyflow_system.cpp" in run("--build", str(build))  # which lacks headers here
