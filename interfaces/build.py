"""Build the ROS message packages of this folder that the machine does not have.

    .venv/bin/python interfaces/build.py [--check]
    python interfaces/build.py --prefix install/crazyflow_ros --build build/crazyflow_ros/interfaces

The ROS wheels on PyPI contain a complete prefix (headers, CMake exports, generators), but not every
message package. Each package here is configured, compiled and installed into the running virtual
environment itself, so it needs no environment variables afterwards. Only the code for C and Python
is built, see less_to_compile.cmake. `--check` only checks for the required tools.

With `--prefix`, as `colcon build` calls it, the packages that the sourced distribution lacks are
installed beside crazyflow_ros, with the code for C++. What has been installed there earlier, and
has come with the distribution since, is removed: it would hide the distribution's.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib.machinery import PathFinder
from pathlib import Path

INTERFACES = Path(__file__).resolve().parent
RECIPE = INTERFACES / "less_to_compile.cmake"
VENV = Path(sys.prefix)
CMAKE_VERSION = (3, 20)


@dataclass(frozen=True)
class Target:
    """Where packages are installed."""

    prefix: Path
    build: Path

    @property
    def is_venv(self) -> bool:
        """Whether it is the running virtual environment, and not a prefix of colcon."""
        return self.prefix == VENV

    def folder(self, package: Path) -> Path:
        """Return the folder in which a package is built."""
        return self.build / package.name

    def marker(self, package: Path) -> Path:
        """Return the file that records the installed definitions of a package."""
        return self.prefix / "share" / package.name / "built_from_interfaces"


class SetupError(Exception):
    """A missing requirement of the build; the message names it."""


def check_tools() -> None:
    """Check that this machine can compile a Python extension.

    Raises:
        SetupError: C compiler, C++ compiler, make or Python headers are missing.
    """
    for what, variable, names in (
        ("C compiler", "CC", ("cc", "gcc", "clang")),
        ("C++ compiler", "CXX", ("c++", "g++", "clang++")),
        ("make", "MAKE", ("make", "gmake")),
    ):
        wanted = os.environ.get(variable, "").split()[:1] or names
        if not any(shutil.which(name) for name in wanted):
            hint = "on Debian and Ubuntu: apt install build-essential"
            raise SetupError(f"no {what} found (looked for {', '.join(wanted)}; {hint})")
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    if not header.is_file():
        hint = "on Debian and Ubuntu: apt install python3-dev"
        raise SetupError(f"the headers of Python are missing ({header}; {hint})")


def find_cmake() -> str:
    """Find a recent cmake: the machine's, or else the one from PyPI.

    Raises:
        SetupError: There is neither.
    """
    for cmake in (shutil.which("cmake"), str(VENV / "bin" / "cmake")):
        if cmake and (version := _cmake_version(cmake)) and version >= CMAKE_VERSION:
            return cmake
    need = ".".join(map(str, CMAKE_VERSION))
    raise SetupError(f"cmake {need} or later is missing: {sys.executable} -m pip install cmake")


def _cmake_version(cmake: str) -> tuple[int, ...] | None:
    try:
        text = subprocess.run([cmake, "--version"], capture_output=True, text=True).stdout
    except OSError:
        return None
    found = re.search(r"version (\d+)\.(\d+)", text)
    return tuple(map(int, found.groups())) if found else None


def repair_exports() -> None:
    """Point the wheels' CMake exports at this machine's Python and NumPy headers.

    They contain folders of the build machine, which CMake refuses.
    """
    import numpy

    here = {
        re.compile(r"/opt/python/cp\w+-cp\w+/include/python3\.\d+t?"): (
            sysconfig.get_paths()["include"]
        ),
        re.compile(r"/opt/python/cp\w+-cp\w+/lib/python3\.\d+t?/site-packages/numpy/[\w/]+"): (
            numpy.get_include()
        ),
    }
    for export in (VENV / "share").rglob("*.cmake"):
        text = repaired = export.read_text()
        for elsewhere, folder in here.items():
            repaired = elsewhere.sub(folder.replace("\\", r"\\"), repaired)
        if repaired != text:
            export.write_text(repaired)


def digest(package: Path) -> str:
    """Return a digest of the present definitions of a package, and of what is compiled for them."""
    files = sorted(path for path in package.rglob("*") if path.is_file())
    content = b"".join(str(f.relative_to(package)).encode() + f.read_bytes() for f in files)
    return hashlib.sha256(RECIPE.read_bytes() + content).hexdigest()


def is_installed(package: Path, target: Target) -> bool:
    """Return whether a package is installed, from elsewhere or from these definitions."""
    marker = target.marker(package)
    if not marker.exists():
        return _has(package, sys.path)
    elsewhere = [entry for entry in sys.path if target.prefix not in Path(entry).parents]
    if _has(package, elsewhere):
        print(f"setup: {package.name} has come with the distribution, ours is removed", flush=True)
        for file in _installed_files(package, target):
            file.unlink(missing_ok=True)
        marker.unlink()
        return True
    return marker.read_text() == digest(package)


def _has(package: Path, path: list[str]) -> bool:
    module = PathFinder.find_spec(package.name, path)
    return module is not None and module.origin is not None  # otherwise this folder itself


def _installed_files(package: Path, target: Target) -> list[Path]:
    manifest = target.folder(package) / "install_manifest.txt"
    return [Path(line) for line in manifest.read_text().splitlines()] if manifest.exists() else []


def build(package: Path, cmake: str, target: Target) -> None:
    """Configure, compile, install and import one message package."""
    print(f"setup: building {package.name}", flush=True)
    folder, marker = target.folder(package), target.marker(package)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    options = [
        f"-DCMAKE_INSTALL_PREFIX={target.prefix}",
        f"-DPython3_EXECUTABLE={sys.executable}",
        "-DCMAKE_BUILD_TYPE=Release",
        # The code copies fields; -O3 takes a quarter longer to compile and has little to improve.
        "-DCMAKE_C_FLAGS_RELEASE=-O1 -DNDEBUG",
        "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG",
        "-DBUILD_TESTING=OFF",
    ]
    if target.is_venv:
        options += [f"-DCMAKE_PREFIX_PATH={VENV}", f"-DCMAKE_PROJECT_INCLUDE={RECIPE}"]
    _run(folder, cmake, "-S", package, "-B", folder, "-G", "Unix Makefiles", *options)
    _run(folder, cmake, "--build", folder, "--parallel", str(os.cpu_count() or 1))
    marker.parent.mkdir(parents=True, exist_ok=True)
    marker.write_text("incomplete")
    _run(folder, cmake, "--install", folder)
    kinds = [kind for kind in ("msg", "srv", "action") if (package / kind).is_dir()]
    module = next(
        f
        for f in _installed_files(package, target)
        if f.name == "__init__.py" and f.parent.name == package.name
    )
    _run(
        folder,
        *(sys.executable, "-c", _TRY, package.name, *kinds),
        PYTHONPATH=module.parents[1],
        LD_LIBRARY_PATH=target.prefix / "lib",
    )
    marker.write_text(digest(package))


_TRY = """
import importlib, inspect, sys
from rclpy.type_support import check_for_type_support
package, *kinds = sys.argv[1:]
for kind in kinds:
    module = importlib.import_module(f"{package}.{kind}")
    for _, interface in inspect.getmembers(module, inspect.isclass):
        check_for_type_support(interface)
"""


def _run(folder: Path, *command: str | Path, **first: Path) -> None:
    """Run a command in the folder of a package; `first` leads the variables of these names."""
    inherited = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")  # set by an outer make
    env = {key: value for key, value in os.environ.items() if key not in inherited}
    for name, entry in first.items():
        env[name] = f"{entry}:{env.get(name, '')}".rstrip(":")
    log = folder / "build.log"
    with log.open("a") as output:
        result = subprocess.run(command, cwd=folder, env=env, stdout=output, stderr=output)
    if result.returncode:
        print(*log.read_text().splitlines()[-30:], sep="\n", file=sys.stderr)
        raise SetupError(f"building {folder.name} failed, see above and {log}")


def main() -> None:
    """Build the missing packages of this folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="only check for the required tools")
    parser.add_argument("--prefix", type=Path, default=VENV, help="install into this folder")
    parser.add_argument("--build", type=Path, default=VENV / "build", help="build in this folder")
    given = parser.parse_args()
    check_tools()
    if given.check:
        return
    target = Target(given.prefix.absolute(), given.build.absolute())
    packages = sorted(manifest.parent for manifest in INTERFACES.glob("*/package.xml"))
    target.build.mkdir(parents=True, exist_ok=True)
    with (target.build / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another make may build the same packages
        missing = [package for package in packages if not is_installed(package, target)]
        if missing:
            cmake = find_cmake()
            if target.is_venv:
                repair_exports()
            with ThreadPoolExecutor() as pool:  # the packages are independent
                list(pool.map(partial(build, cmake=cmake, target=target), missing))


if __name__ == "__main__":
    try:
        main()
    except SetupError as error:
        sys.exit(f"setup: {error}")
