"""Build the ROS message packages of this folder into the running virtual environment.

    .venv/bin/python interfaces/build.py [--check]

The ROS wheels on PyPI contain a complete prefix (headers, CMake exports, generators), but not every
message package. Each package here is configured, compiled and installed into the environment
itself, so it needs no environment variables afterwards. Only the code for C and Python is built,
see less_to_compile.cmake. Installed packages are skipped. `--check` only checks for the required
tools.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec
from pathlib import Path

INTERFACES = Path(__file__).resolve().parent
RECIPE = INTERFACES / "less_to_compile.cmake"
PREFIX = Path(sys.prefix)
BUILD = PREFIX / "build"
CMAKE_VERSION = (3, 20)


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
    """Find a recent cmake: the machine's, or else the one from PyPI."""
    for cmake in (shutil.which("cmake"), str(PREFIX / "bin" / "cmake")):
        if cmake and (version := _cmake_version(cmake)) and version >= CMAKE_VERSION:
            return cmake
    installer = INTERFACES.parent / "tools" / "pip_install.sh"
    constraints = INTERFACES.parent / "constraints.txt"
    if subprocess.run(["sh", installer, PREFIX, constraints, "cmake"]).returncode:
        raise SetupError("cmake is missing and could not be installed from PyPI")
    return str(PREFIX / "bin" / "cmake")


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
    for export in (PREFIX / "share").rglob("*.cmake"):
        text = repaired = export.read_text()
        for elsewhere, folder in here.items():
            repaired = elsewhere.sub(folder.replace("\\", r"\\"), repaired)
        if repaired != text:
            export.write_text(repaired)


def marker(package: Path) -> Path:
    """Return the file that records the installed definitions of a package."""
    return PREFIX / "share" / package.name / "built_from_interfaces"


def digest(package: Path) -> str:
    """Return a digest of the present definitions of a package, and of what is compiled for them."""
    files = sorted(path for path in package.rglob("*") if path.is_file())
    content = b"".join(str(f.relative_to(package)).encode() + f.read_bytes() for f in files)
    return hashlib.sha256(RECIPE.read_bytes() + content).hexdigest()


def is_installed(package: Path) -> bool:
    """Return whether a package is installed, from elsewhere or from these definitions."""
    if marker(package).exists():
        return marker(package).read_text() == digest(package)
    module = find_spec(package.name)
    return module is not None and module.origin is not None  # otherwise this folder itself


def build(package: Path, cmake: str) -> None:
    """Configure, compile, install and import one message package."""
    print(f"setup: building {package.name}", flush=True)
    folder = BUILD / package.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _run(
        folder,
        *(cmake, "-S", package, "-B", folder, "-G", "Unix Makefiles"),
        f"-DCMAKE_PREFIX_PATH={PREFIX}",
        f"-DCMAKE_INSTALL_PREFIX={PREFIX}",
        f"-DPython3_EXECUTABLE={sys.executable}",
        "-DCMAKE_BUILD_TYPE=Release",
        # The code copies fields; -O3 takes a quarter longer to compile and has little to improve.
        "-DCMAKE_C_FLAGS_RELEASE=-O1 -DNDEBUG",
        "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG",
        "-DBUILD_TESTING=OFF",
        f"-DCMAKE_PROJECT_INCLUDE={RECIPE}",
    )
    _run(folder, cmake, "--build", folder, "--parallel", str(os.cpu_count() or 1))
    marker(package).parent.mkdir(parents=True, exist_ok=True)
    marker(package).write_text("incomplete")
    _run(folder, cmake, "--install", folder)
    kinds = [kind for kind in ("msg", "srv", "action") if (package / kind).is_dir()]
    _run(folder, sys.executable, "-c", _TRY, package.name, *kinds)
    marker(package).write_text(digest(package))


_TRY = """
import importlib, inspect, sys
from rclpy.type_support import check_for_type_support
package, *kinds = sys.argv[1:]
for kind in kinds:
    module = importlib.import_module(f"{package}.{kind}")
    for _, interface in inspect.getmembers(module, inspect.isclass):
        check_for_type_support(interface)
"""


def _run(folder: Path, *command: str | Path) -> None:
    inherited = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")  # set by an outer make
    env = {key: value for key, value in os.environ.items() if key not in inherited}
    log = folder / "build.log"
    with log.open("a") as output:
        result = subprocess.run(command, cwd=folder, env=env, stdout=output, stderr=output)
    if result.returncode:
        print(*log.read_text().splitlines()[-30:], sep="\n", file=sys.stderr)
        raise SetupError(f"building {folder.name} failed, see above and {log}")


def main() -> None:
    """Build the missing packages of this folder."""
    check_tools()
    if "--check" in sys.argv[1:]:
        return
    packages = sorted(manifest.parent for manifest in INTERFACES.glob("*/package.xml"))
    BUILD.mkdir(exist_ok=True)
    with (BUILD / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another make may build the same packages
        missing = [package for package in packages if not is_installed(package)]
        if missing:
            cmake = find_cmake()
            repair_exports()
            with ThreadPoolExecutor() as pool:  # the packages are independent
                list(pool.map(partial(build, cmake=cmake), missing))


if __name__ == "__main__":
    try:
        main()
    except SetupError as error:
        sys.exit(f"setup: {error}")
