"""Install a wheel into an empty environment, and fly there.

    python tools/try_wheel.py DIST

DIST is a folder with one wheel, see `make wheel`. The environment gets the extra "ros", with the
versions of constraints.txt, and nothing from this checkout. The exit code is 0 if a drone flew.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

CONSTRAINTS = Path(__file__).resolve().parents[1] / "constraints.txt"
GLIBC = (2, 17)  # of the wheel's tag
DOMAIN = "87"
START = 180.0  # s, with the compilation of the physics
FLY = """
import numpy as np
from crazyflow_ros import Sim
from crazyflow_ros.client import SimulatorClient

sim = Sim(n_worlds=2, control="state")
sim.state_control(np.tile([0, 0, 1.0, *[0.0] * 10], (2, 1, 1)))
sim.step(1000)  # the firmware's mass leaves an error of 0.1 m
assert np.abs(sim.data.states.pos[:, 0, 2] - 1).max() < 0.2, sim.data.states.pos
with SimulatorClient() as simulation:
    cf0 = simulation.drone("cf0")
    cf0.takeoff(1.0)
    assert abs(cf0.position[2] - 1) < 0.05, cf0.position
    cf0.land()
print("a drone of the wheel flew")
"""


def needed_glibc(wheel: Path) -> tuple[int, ...]:
    """Return the version of the C library that the compiled part needs.

    Raises:
        SystemExit: There is no compiled part.
    """
    with ZipFile(wheel) as files:
        compiled = [files.read(name) for name in files.namelist() if name.endswith(".so")]
    if not compiled:
        raise SystemExit(f"{wheel.name} has no compiled part, for which it is tagged")
    found = re.findall(rb"GLIBC_(\d+)\.(\d+)", b"".join(compiled))
    return max(((int(major), int(minor)) for major, minor in found), default=(0, 0))


def main(dist: Path) -> None:
    """Install and fly."""
    (wheel,) = dist.glob("*.whl")
    if (need := needed_glibc(wheel)) > GLIBC:
        raise SystemExit(f"{wheel.name} needs glibc {need}, its tag says {GLIBC}")
    with TemporaryDirectory() as home:
        environment = Path(home, "venv")
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        python, program = environment / "bin" / "python", environment / "bin" / "crazyflow_ros"
        env = {**os.environ, "ROS_DOMAIN_ID": DOMAIN, "HOME": home}
        install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        requirement = f"crazyflow_ros[ros] @ {wheel.resolve().as_uri()}"
        subprocess.run([*install, "-c", CONSTRAINTS, requirement], check=True)  # pip's own HOME
        subprocess.run([program, "build-messages"], cwd=home, env=env, check=True)
        arguments = ["--ros-args", "-p", "drones:=[cf0]"]
        simulator = subprocess.Popen([program, *arguments], cwd=home, env=env)
        try:
            wait = ["list", "--wait", str(START)]
            subprocess.run([program, *wait], cwd=home, env=env, check=True, timeout=2 * START)
            subprocess.run([python, "-c", FLY], cwd=home, env=env, check=True, timeout=START)
            simulator.send_signal(signal.SIGINT)
            if code := simulator.wait(30.0):
                raise SystemExit(f"the simulator ended with {code}")
        finally:
            simulator.kill()
            simulator.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
