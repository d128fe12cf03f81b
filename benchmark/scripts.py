"""Scripts of cflib and crazyswarm2 in simulated time: how fast they fly, and whether they repeat.

    python -m benchmark.scripts [cflib | crazyswarm2 ...]

Prints a Markdown table. Each example flies twice, unmodified except for radio addresses that it
has no variable for. Those of cflib are in its wheel; those of crazyswarm2 fly if the variable
CRAZYSWARM2 is set to a checkout of it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import yaml

from benchmark.crazyswarm import CHECKOUT, configuration

CFLIB = (
    "autonomy/autonomous_sequence.py",
    "autonomy/autonomous_sequence_high_level.py",
    "autonomy/motion_commander_demo.py",
    "logging/basiclog.py",
    "logging/basiclog_sync.py",
    "parameters/basicparam.py",
    "parameters/persistent_params.py",
    "parameters/persistent_params_from_file.py",
    "step-by-step/sbs_connect_log_param.py",
    "step-by-step/sbs_motion_commander.py",
    "step-by-step/sbs_swarm.py",
)
CRAZYSWARM = (
    *("hello_world", "goto_unicast", "group_mask", "swap", "figure8", "multi_trajectory"),
    *("cmd_full_state", "arming", "set_param"),
)
_URIS = ("radio://0/80/2M/E7E7E7E7E7", "radio://0/80/2M/E7E7E7E705")  # by which `swap` knows them
_RADIO = r"radio://\d+(?:/\w+)*"
_PORT = 19850
_LIMIT = 600.0  # s of wall time
HEAD = (
    "| | simulated s | wall s | ratio | same end | with start-up, s |"
    "\n|---|---:|---:|---:|---|---:|"
)


class Flown(NamedTuple):
    """A flight of a script."""

    code: int
    """Exit code of the simulator, which is that of the script."""
    text: str
    """What both have written."""
    ends: list[str]
    """Where each drone was in the end, in all digits."""
    simulated: float
    """Simulated time [s]."""
    wall: float
    """Wall time while the script ran [s]."""
    whole: float
    """Wall time with the start of the simulator [s]."""


def examples() -> Path:
    """Return the folder of cflib's examples.

    Raises:
        ModuleNotFoundError: cflib is not installed.
    """
    found = find_spec("cflib")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("cflib is not installed")
    return Path(found.origin).parents[1] / "examples"


def cflib(name: str, folder: Path, *options: str, port: int = _PORT) -> Flown:
    """Fly an example of cflib from the command line, with additional options."""
    path = examples() / name
    text = path.read_text()
    radios = [] if "uri_from_env" in text else list(dict.fromkeys(re.findall(_RADIO, text)))
    for i, address in enumerate(radios):
        text = text.replace(address, f"udp://127.0.0.1:{port + i}")
    folder.mkdir(exist_ok=True)
    if radios:
        path = folder / path.name
        path.write_text(text)
    command = [sys.executable, "-m", "crazyflow_ros.crazyflie", str(max(1, len(radios)))]
    command += ["--port", str(port), *options, "--lock-step", "--", sys.executable, str(path)]
    return _flown(command, folder)


def crazyswarm(name: str, folder: Path) -> Flown:
    """Fly an example of crazyswarm2 with two drones."""
    checkout = Path(os.environ[CHECKOUT])
    content = configuration(len(_URIS))
    for robot, uri in zip(content["robots"].values(), _URIS):
        robot["uri"] = uri
    folder.mkdir(exist_ok=True)
    (folder / "crazyflies.yaml").write_text(yaml.safe_dump(content))
    command = [sys.executable, "-m", "crazyflow_ros", "crazyflie-server", "--lock-step"]
    command += ["--ros-args", "-p", f"crazyflies_yaml_file:={folder}/crazyflies.yaml", "--"]
    command += [sys.executable, "-c", f"from crazyflie_examples.{name} import main; main()"]
    paths = [str(checkout / part) for part in ("crazyflie_py", "crazyflie_examples")]
    paths += filter(None, [os.environ.get("PYTHONPATH")])
    environment = {"PYTHONPATH": os.pathsep.join(paths), "MPLBACKEND": "Agg"}
    if "ROS_DOMAIN_ID" not in os.environ:
        environment["ROS_DOMAIN_ID"] = str(1 + os.getpid() % 100)
    return _flown(command, folder, environment)


def _flown(
    command: Sequence[str], folder: Path, environment: dict[str, str] | None = None
) -> Flown:
    began = time.monotonic()
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_LIMIT,
    )
    whole = time.monotonic() - began
    took = re.search(r"([\d.]+) s of simulated time took ([\d.]+) s", done.stdout)
    times = (0.0, 0.0) if took is None else (float(took[1]), float(took[2]))
    ends = re.findall(r"(\w+ ended at .*)", done.stdout)
    return Flown(done.returncode, done.stdout, ends, *times, whole)


def rows(names: Sequence[str], fly: Callable[[str, Path], Flown]) -> Iterator[list[Flown]]:
    """Fly each example twice; print a row of each, and yield both flights."""
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            both = [fly(name, Path(folder) / number) for number in "12"]
        first, second = both
        if first.code or second.code or not first.ends:
            print(first.text, second.text, sep="\n", file=sys.stderr)
            print(f"| {name} | it failed | | | | |", flush=True)
            continue
        same = "yes" if first.ends == second.ends else "**no**"
        print(_row(name, both, same), flush=True)
        yield both


def _row(name: str, flights: Sequence[Flown], same: str) -> str:
    """Return a row with the sums of some flights."""
    simulated, wall, whole = (
        sum(getattr(f, k) for f in flights) for k in ("simulated", "wall", "whole")
    )
    return (
        f"| {name} | {simulated:.1f} | {wall:.1f} | {simulated / wall:.1f} | {same} | {whole:.1f} |"
    )


def main(kinds: Sequence[str] = ("cflib", "crazyswarm2")) -> None:
    """Print the table; times are those of both flights."""
    kinds = list(kinds)
    print(HEAD)
    if "cflib" in kinds:
        flights = [flight for both in rows(CFLIB, cflib) for flight in both]
        print(_row("**cflib, total**", flights, f"{len(flights) // 2} of {len(CFLIB)}"))
    if "crazyswarm2" in kinds and os.environ.get(CHECKOUT):
        flights = [flight for both in rows(CRAZYSWARM, crazyswarm) for flight in both]
        print(_row("**crazyswarm2, total**", flights, f"{len(flights) // 2} of {len(CRAZYSWARM)}"))
    elif "crazyswarm2" in kinds:
        print(f"crazyswarm2 was not run: {CHECKOUT} names no checkout of it", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:] or ("cflib", "crazyswarm2"))
