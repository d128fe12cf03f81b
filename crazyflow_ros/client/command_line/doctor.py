"""`doctor`: what this machine has, what the simulator lacks on it, and what mends that."""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib import import_module, metadata
from importlib.machinery import PathFinder
from pathlib import Path
from typing import NamedTuple

from crazyflow_ros.client.command_line.command import OK, REFUSED, CommandParser, program_name
from crazyflow_ros.client.command_line.text import table
from crazyflow_ros.extras import EXTRAS, NEEDED, require
from crazyflow_ros.opengl import has_display
from crazyflow_ros.resources import package_version, resource

ROS_WHEELS = ("ros-kilted-rclpy", "ros-kilted-common-interfaces", "ros-rclpy[fastrtps]")
"""ROS for machines without it."""

PORTS = {"page": 8080, "Foxglove": 8765, "Crazyflies": 19850}
"""The ports that programs listen on, if they are not told otherwise; that of Crazyflies is UDP."""

_CONTROLLERS = ("controller_manager", "hardware_interface", "joint_state_broadcaster")
_PLUGIN = "hardware_interface__pluginlib__plugin/crazyflow_ros"
_INDEX = "share/ament_index/resource_index"


class Finding(NamedTuple):
    """What was found about one thing."""

    name: str
    found: str
    is_there: bool = True
    mend: str = ""
    """Command that brings what is missing, if there is one."""
    is_needed: bool = False
    """Whether there is no simulator without it."""


def main(words: Sequence[str], text: str) -> int:
    """Examine this machine, and return the exit code: whether the simulator can run.

    Args:
        words: What follows the name of the command.
        text: What the command does.
    """
    more = "Exit codes: 0 the simulator can run, 1 it cannot."
    parser = CommandParser("doctor", text, ("doctor", "doctor --json"), more)
    parser.add_argument("--json", action="store_true", help="print a list of objects")
    is_json = parser.parse_args(words).json
    findings = [finding for check in CHECKS for finding in check()]
    lacking = [one.name for one in findings if one.is_needed and not one.is_there]
    if is_json:
        print(json.dumps([one._asdict() for one in findings], indent=2))
        return REFUSED if lacking else OK
    marks = {one: "ok" if one.is_there else "NO" if one.is_needed else "--" for one in findings}
    print(table([(mark, one.name, one.found) for one, mark in marks.items()]))
    mends = {one.mend: one.name for one in findings if one.mend}
    for mend, name in mends.items():
        print(f"\n{name}:\n    {mend}")
    can = f"cannot run, for want of: {', '.join(lacking)}" if lacking else "can run"
    print(f"\nThe simulator {can}. What is marked -- is optional.")
    return REFUSED if lacking else OK


def _machine() -> Iterator[Finding]:
    name = platform.system()
    with suppress(OSError):
        name = platform.freedesktop_os_release()["PRETTY_NAME"]
    yield Finding("crazyflow_ros", f"{package_version()}, {resource('package.xml').parent}")
    yield Finding("Python", f"{platform.python_version()}, {sys.executable}")
    yield Finding("system", f"{name}, {platform.machine()}, {os.cpu_count()} processors")


def _packages() -> Iterator[Finding]:
    """Find out whether what everything needs can be imported, in the right versions."""
    for module, requirement in NEEDED.items():
        try:
            import_module(module)
        except Exception as error:  # whatever a broken installation raises
            found = f"cannot be imported: {error}, expected {requirement}"
            yield Finding(_name(requirement), found, False, _pip(requirement), is_needed=True)
        else:
            yield _versioned(_name(requirement), requirement)._replace(is_needed=True)


def _versioned(name: str, *requirements: str) -> Finding:
    """Compare the version of the first of some packages with its bounds."""
    try:
        found = metadata.version(_name(requirements[0]))
    except metadata.PackageNotFoundError:  # neither pip nor apt has installed it
        found = "of unknown version"
    if fits(found, requirements[0]):
        return Finding(name, found)
    return Finding(name, f"{found}, expected {requirements[0]}", False, _pip(*requirements))


def _name(requirement: str) -> str:
    return re.findall(r"^[\w-]+", requirement)[0]


def fits(version: str, requirement: str) -> bool:
    """Return whether a version is within bounds, such as those of `numpy>=2,<3`, or unknown."""
    have = _numbers(version)
    return not have or all(
        have >= _numbers(bound) if operator == ">=" else have < _numbers(bound)
        for operator, bound in re.findall(r"(>=|<)([\d.]+)", requirement)
    )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version.partition("+")[0])[:3]))


def _devices() -> Iterator[Finding]:
    with suppress(Exception):  # the packages say why
        import jax

        found = ", ".join(f"{device.platform} ({device.device_kind})" for device in jax.devices())
        yield Finding("JAX's devices", found)


def _ros() -> Iterator[Finding]:
    """Find ROS, its middleware, and who finds the simulator; then what it keeps messages in."""
    from crazyflow_ros.ros.middleware import shared_memory_problem, who_finds_it

    try:
        from rclpy.utilities import get_rmw_implementation_identifier

        middleware = str(get_rmw_implementation_identifier())
    except Exception as error:  # of libraries that are not found, too
        found = f"rclpy cannot be imported: {error}"
        yield Finding("ROS", found, is_there=False, mend=_ros_mend(), is_needed=True)
    else:
        of = os.environ.get("ROS_DISTRO") or "of Python packages"
        yield Finding("ROS", f"{of}, {middleware}, {Path(sys.modules['rclpy'].__path__[0]).parent}")
        yield Finding("ROS domain", who_finds_it(middleware))
        yield from _messages()
    problem = shared_memory_problem()
    found = problem or "has room for messages"
    yield Finding("shared memory", found, is_there=not problem, is_needed=True)


def _ros_mend() -> str:
    sourced = sorted(Path("/opt/ros").glob("*/setup.bash"))
    return f"source {sourced[-1]}" if sourced else _pip(*ROS_WHEELS)


def _messages() -> Iterator[Finding]:
    wanted = {"builtin_interfaces", "geometry_msgs", "nav_msgs", "sensor_msgs", "std_msgs"}
    with suppress(FileNotFoundError):  # where colcon has built them
        wanted |= {file.parent.name for file in resource("interfaces").glob("*/package.xml")}
    missing = sorted(name for name in wanted if not _has_module(name))
    program = program_name().replace("python", shlex.quote(sys.executable), 1)
    mend = "colcon build" if _is_sourced() else f"{program} build-messages"
    found = f"missing: {', '.join(missing)}" if missing else f"{len(wanted)} packages"
    yield Finding("messages", found, not missing, mend if missing else "")


def _has_module(name: str) -> bool:
    spec = None if sys.modules.get(name, ...) is None else PathFinder.find_spec(name)
    return spec is not None and spec.origin is not None  # otherwise a folder of that name


def _pictures() -> Iterator[Finding]:
    if not _has_module("mujoco"):  # which is named above
        return
    command = [sys.executable, "-m", "crazyflow_ros.opengl"]  # OpenGL may end its process
    done = subprocess.run(command, capture_output=True, text=True)
    problem = done.stderr.strip().rpartition("\n")[2] or f"it ended with {done.returncode}"
    found = f"draws, MUJOCO_GL={os.environ.get('MUJOCO_GL', 'not set')}"
    is_there = done.returncode == 0
    packages = re.search(r"install ([\w -]+),", problem)
    mend = f"sudo apt install {packages[1]}" if packages and not is_there else ""
    yield Finding("OpenGL", found if is_there else problem, is_there, mend)
    display = "can be opened" if has_display() else "no display: use the page instead"
    yield Finding("windows", display, has_display())


def _ros2_control() -> Iterator[Finding]:
    missing = [name for name in _CONTROLLERS if not _in_index(f"packages/{name}")]
    found, mend = "packages and plugin", ""
    if not _is_sourced():
        found = "needs a machine with ROS, docs/guides/install_ros.md"
    elif missing:
        found, mend = f"missing: {', '.join(missing)}", "rosdep install --from-paths src -y -i"
    elif not _in_index(_PLUGIN):
        found = "our plugin is not built"
        mend = "colcon build --packages-select crazyflow_ros --cmake-force-configure"
    yield Finding("ros2_control", found, _is_sourced() and not mend, mend)


def _is_sourced() -> bool:
    return bool(os.environ.get("ROS_DISTRO"))


def _in_index(entry: str) -> bool:
    prefixes = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    return any(Path(prefix, _INDEX, entry).exists() for prefix in prefixes if prefix)


def _extras() -> Iterator[Finding]:
    for name in EXTRAS:
        try:
            require(name)
        except ModuleNotFoundError as error:
            what, _, mend = str(error).removeprefix("the Python package ").partition(": ")
            yield Finding(f"extra {name}", what, is_there=False, mend=mend)
        else:
            yield _versioned(f"extra {name}", *EXTRAS[name].requirements)


def _cache() -> Iterator[Finding]:
    try:
        from crazyflow_ros.xla.compiled_files import cache_folder
    except Exception:  # of JAX, which is named above
        return
    folder = cache_folder()
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    is_there = os.access(nearest, os.W_OK)
    trouble = "" if is_there else ", not writable: every start compiles"
    yield Finding("compiled code", f"{size / 1e6:.0f} MB in {folder}{trouble}", is_there)


def _ports() -> Iterator[Finding]:
    for name, port in PORTS.items():
        kind = socket.SOCK_DGRAM if name == "Crazyflies" else socket.SOCK_STREAM
        with socket.socket(socket.AF_INET, kind) as attempt:
            try:
                attempt.bind(("127.0.0.1", port))
            except OSError as error:
                yield Finding(f"port {port}", f"{name}: {error.strerror}", is_there=False)
            else:
                yield Finding(f"port {port}", f"{name}: free")


CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    *(_machine, _packages, _devices, _ros, _pictures),
    *(_ros2_control, _extras, _cache, _ports),
)


def _pip(*requirements: str) -> str:
    return shlex.join([sys.executable, "-m", "pip", "install", *requirements])
