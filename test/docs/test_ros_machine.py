"""What the pages tell the owner of a ROS machine: packages that exist, and commands that work."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from page_commands import blocks
from paths import ROOT
from ros_client import RosProcess, own_domain

DISTRIBUTIONS = ("jazzy", "kilted", "lyrical")
GUIDES = [
    ROOT / "docs" / "guides" / f"{name}.md" for name in ("fly", "install_ros", "ros2_control")
]
PAGES = [ROOT / "README.md", *GUIDES]
OURS = {path.parent.name for path in ROOT.glob("interfaces/*/package.xml")}
DOCKERFILE = ROOT / ".devcontainer" / "Dockerfile"
BUILD_TIMEOUT = 1800.0  # s, a machine may be slow and busy
TIMEOUT = 300.0  # s


def table() -> dict[str, dict[str, str]]:
    """By package or key of rosdep, what each distribution has: a version, or packages of Ubuntu."""
    text = (Path(__file__).parent / "ros_releases.csv").read_text()
    rows = [line.split(",") for line in text.splitlines() if not line.startswith("#")]
    return {name: dict(zip(rows[0][1:], cells)) for name, *cells in rows[1:]}


TABLE = table()


def is_released(name: str, distribution: str) -> bool:
    return TABLE[name][distribution] != "-"


def commands(page: Path) -> list[str]:
    return [line for block in blocks(page) for line in block]


def ros_block(page: Path) -> list[str]:
    (found,) = [block for block in blocks(page) if any("rosdep install" in line for line in block)]
    return found


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of catkin_pkg
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_rosdep_is_asked_for_what_the_distribution_has_and_the_rest_is_built(
    distribution: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    package_format = pytest.importorskip("catkin_pkg.package")
    manifest = package_format.parse_package(ROOT / "package.xml")
    manifest.evaluate_conditions({"ROS_DISTRO": distribution})
    kinds = ("buildtool", "build", "build_export", "exec", "test")
    needs = [need for kind in kinds for need in getattr(manifest, f"{kind}_depends")]
    asked = {need.name for need in needs if need.evaluated_condition}
    assert {"rclpy", "controller_manager"} <= asked
    assert {name for name in asked if not is_released(name, distribution)} == set()
    left_out = {need.name for need in needs} - asked
    assert {name for name in left_out if is_released(name, distribution)} == set()
    built = {name for name in OURS if not is_released(name, distribution)}
    assert asked | built >= OURS
    # A workspace may have them, too, and then they come first: nothing is built twice.
    first = set(json.loads((ROOT / "colcon.pkg").read_text())["dependencies"])
    assert left_out <= first <= OURS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_names_packages_that_all_distributions_have_or_that_are_built(page: Path) -> None:
    text = "\n".join(commands(page))
    named = set(re.findall(r"\bros2 (?:run|launch) (\w+)", text)) - {"crazyflow_ros"}
    for package, kind, name in re.findall(r"\b(\w+)/(msg|srv|action)/(\w+)", text):
        named.add(package)
        if package in OURS:
            assert (ROOT / "interfaces" / package / kind / f"{name}.{kind}").exists(), name
    from_apt = [word for line in re.findall(r"apt install (.*)", text) for word in line.split()]
    from_apt += re.findall(r"ros-\$ROS_DISTRO-[\w-]+", page.read_text())  # also within a sentence
    for package in from_apt:
        named.add(re.sub(r"^ros-\$ROS_DISTRO-(.*)", lambda m: m[1].replace("-", "_"), package))
    assert named
    for name in named - OURS:
        assert all(is_released(name, distribution) for distribution in DISTRIBUTIONS), name


def test_launch_files_ask_for_packages_that_all_distributions_have() -> None:
    files = [*ROOT.glob("launch/*.py"), ROOT / "crazyflow_ros" / "ros" / "launch_nodes.py"]
    calls = re.findall(r"    require\((.*)\)", "\n".join(file.read_text() for file in files))
    names = [name for call in calls for name in re.findall(r'"(\w+)"', call)]
    assert len(names) == 6
    assert all(is_released(name, d) for name in names for d in DISTRIBUTIONS)


@pytest.mark.parametrize("page", [*PAGES, DOCKERFILE], ids=lambda page: page.stem)
def test_pip_is_asked_for_packages_that_are_tested(page: Path) -> None:
    lines = re.findall(r"(?:^ {4}|&& )pip install (.*)", page.read_text(), re.MULTILINE)
    pins = set(re.findall(r"^([\w-]+)==", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    for line in lines:
        assert {Requirement(word).name for word in shlex.split(line, comments=True)} <= pins


def test_the_page_and_the_containers_do_what_the_readme_says() -> None:
    readme, page = (
        ros_block(ROOT / "README.md"),
        ros_block(ROOT / "docs" / "guides" / "install_ros.md"),
    )
    assert page[-len(readme) :] == readme
    dockerfile = DOCKERFILE.read_text()
    for line in readme[:5]:
        assert line in dockerfile
    assert "FROM machine\nCOPY . src/crazyflow_ros\n" in dockerfile
    for distribution in ("jazzy", "kilted"):
        file = ROOT / ".devcontainer" / distribution / "devcontainer.json"
        build = json.loads(file.read_text())["build"]
        assert build["args"] == {"ROS_DISTRO": distribution}
        assert (file.parent / build["dockerfile"]).resolve() == DOCKERFILE
        assert (file.parent / build["context"]).resolve() == ROOT
        assert f" AS {build['target']}\n" in dockerfile


def test_the_page_has_the_versions_of_the_table() -> None:
    text = (ROOT / "docs" / "guides" / "install_ros.md").read_text()
    assert text.index("| Jazzy | Kilted | Lyrical |") > 0
    rows = re.findall(r"^\| `(\w+)`.*?\|(.*)\|$", text, re.MULTILINE)
    for name, cells in rows:
        has = ("built here" if v == "-" else v.partition("-")[0] for v in TABLE[name].values())
        assert [cell.strip() for cell in cells.split("|")] == [*has], name
    incomplete = {n for n in OURS if not all(is_released(n, d) for d in DISTRIBUTIONS)}
    assert incomplete <= {name for name, _ in rows}


def test_plain_pytest_runs_where_ros_has_installed_its_plugins(tmp_path: Path) -> None:
    """With hooks of an old pytest, which pytest 8 and later refuse."""
    plugins = ("launch_testing", "launch_ros", "launch_pytest")
    for plugin in plugins:
        hook = "def pytest_pycollect_makemodule(path, parent): ...\n"
        (tmp_path / f"of_{plugin}.py").write_text(hook)
    metadata = tmp_path / "ros_plugin-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Name: ros_plugin\nVersion: 1.0\n")
    entries = "".join(f"{plugin} = of_{plugin}\n" for plugin in plugins)
    (metadata / "entry_points.txt").write_text(f"[pytest11]\n{entries}")
    folders = ("test/launch", "test/ros2_control")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "--collect-only",
            "-p",
            "no:cacheprovider",
            *folders,
        ],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    assert done.returncode in (0, 5), done.stdout + done.stderr  # 5: all are skipped
    assert "test_sim_launch" in done.stdout or "launch is part of ROS 2" in done.stdout


# The README's commands, in a prefix that is like /opt/ros/kilted: what our environment has of it
# from PyPI and from the Makefile, without what Kilted does not have.


def links_of(folder: Path, source: Path, without: str = "^$") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for path in source.iterdir():
        if not re.match(without, path.name):
            (folder / path.name).symlink_to(path)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a shell in which ROS is sourced."""
    colcon = shutil.which("colcon")
    if colcon is None:
        pytest.skip("there is no colcon: install colcon-common-extensions from PyPI, or with apt")
    pytest.importorskip("rclpy", reason="the prefix is made of ROS's wheels")
    if not (Path(sys.prefix) / "share" / "ament_index").exists():
        pytest.skip("this Python is not an environment with ROS's wheels")
    prefix = tmp_path_factory.mktemp("ros")
    packages = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    lacks = "|".join(name for name in OURS if not is_released(name, "kilted"))
    site = Path(sys.prefix) / packages
    links_of(prefix / packages, site, rf"crazyflow_ros|__editable__|{lacks}|.*\.pth$")
    links_of(prefix / "lib", Path(sys.prefix, "lib"), rf"python|lib({lacks})__")
    links_of(prefix / "share", Path(sys.prefix, "share"), rf"ament_index$|({lacks})$")
    (prefix / "include").symlink_to(Path(sys.prefix, "include"))
    index = Path("share", "ament_index", "resource_index")
    for kind in (sys.prefix / index).iterdir():
        links_of(prefix / index / kind.name, kind, rf"({lacks})$")
    programs = prefix / "bin"
    programs.mkdir()
    (programs / "python3").symlink_to(Path(sys.base_prefix, "bin", "python3"))
    (programs / "colcon").symlink_to(colcon)
    for name in ("cmake", "ros2"):
        if program := shutil.which(
            name, path=f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        ):
            (programs / name).symlink_to(program)
    # Its packages are the prefix itself; the tests above look at their names.
    (programs / "rosdep").write_text(f'#!/bin/sh\nprintf "%s " "$@" >{prefix / "rosdep"}\n')
    (programs / "rosdep").chmod(0o755)
    bundled = (str(folder) for folder in site.glob("ros_*.libs"))
    given = os.environ | {
        "ROS_DISTRO": "kilted",
        "AMENT_PREFIX_PATH": str(prefix),
        "CMAKE_PREFIX_PATH": str(prefix),
        "PYTHONPATH": str(prefix / packages),
        "LD_LIBRARY_PATH": ":".join((str(prefix / "lib"), *bundled)),
        "PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin",
        "PIP_NO_INDEX": "1",  # everything is there
    }
    for name in ("VIRTUAL_ENV", "PYTHONHOME", "_ROS_WHEELS_BOOTSTRAP_COMPLETE"):
        given.pop(name, None)
    return given


@contextmanager
def shell(lines: list[str], folder: Path, environment: dict[str, str]) -> Iterator[RosProcess]:
    """Carries out lines in a terminal of its own, and kills what is left of it at the end."""
    script = "\n".join(("set -e", f"cd {folder}", *lines))
    command = ["setsid", "bash", "-c", script]
    process = RosProcess(command, own_domain(__name__), environment)
    try:
        yield process
    finally:
        if process.process.poll() is None:
            os.killpg(process.process.pid, signal.SIGKILL)
        process.wait()


def test_readmes_commands_work_up_to_the_first_call_of_a_service(
    machine: dict[str, str], tmp_path: Path
) -> None:
    workspace = tmp_path / "ros2_ws"
    (workspace / "src").mkdir(parents=True)
    (workspace / "src" / "crazyflow_ros").symlink_to(ROOT)
    *build, launch = ros_block(ROOT / "README.md")
    (call,) = [c for c in commands(ROOT / "README.md") if c.startswith("ros2 service call /cf0")]
    if shutil.which("ros2", path=machine["PATH"]) is None:  # the wheels do not have it
        launch = "exec install/crazyflow_ros/lib/crazyflow_ros/simulator"
        launch += " --ros-args -p drones:=[cf0,cf1,cf2,cf3]"
        _, _, _, service, _, request = shlex.split(call)
        call = f".venv/bin/python -m crazyflow_ros call {service} {shlex.quote(request)}"
    with shell([*build, launch], workspace, machine) as first:
        first.wait_for("ready: ", BUILD_TIMEOUT)
        with shell(["source install/setup.bash", call], workspace, machine) as second:
            assert second.wait(TIMEOUT) == 0, second.log + first.log
        assert "is off" not in first.log and "refused" not in first.log
    asked = (Path(machine["AMENT_PREFIX_PATH"]) / "rosdep").read_text()
    assert asked == "install --from-paths src --ignore-src -y "
    simulator = workspace / "install" / "crazyflow_ros" / "lib" / "crazyflow_ros" / "simulator"
    assert simulator.read_text().startswith(f"#!{workspace}/.venv/bin/python")
    built = {path.parent.name for path in workspace.glob("install/**/built_from_interfaces")}
    assert built == {name for name in OURS if not is_released(name, "kilted")}


def test_what_the_distribution_gets_later_is_not_hidden(tmp_path: Path) -> None:
    """A copy of ours that was built before would come first, and its types may be others."""
    build = ["interfaces/build.py", "--prefix", "install", "--build", "build"]
    command = [Path(sys.base_prefix, "bin", "python3"), ROOT / build[0], *build[1:]]
    for name in OURS:
        marker = tmp_path / "install" / "share" / name / "built_from_interfaces"
        marker.parent.mkdir(parents=True)
        marker.write_text("by an earlier release")
        file = marker.with_name("package.xml")
        file.touch()
        manifest = tmp_path / "build" / name / "install_manifest.txt"
        manifest.parent.mkdir(parents=True)
        manifest.write_text(f"{file}\n")
    later = tmp_path / "later"
    for name in OURS:
        (later / name).mkdir(parents=True)
        (later / name / "__init__.py").touch()
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(later)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("has come with the distribution, ours is removed") == len(OURS)
    assert not [path for path in (tmp_path / "install").rglob("*") if path.is_file()]
