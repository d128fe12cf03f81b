"""All benchmarks, with machine and versions: `make bench`."""

from __future__ import annotations

import datetime
import os
import platform
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from benchmark import (
    cameras,
    controllers,
    crazyswarm,
    governor,
    learn,
    lock_step,
    manager,
    moving_bodies,
    node,
    page,
    payload,
    pictures,
    px4,
    real_time,
    scale,
    scripts,
    sensors,
    services,
    sim,
    small_worlds,
    spawn_gap,
    start,
)

BENCHMARKS: dict[str, Callable[[], object]] = {
    "loops": lambda: sim.main(sim.LOOPS),
    "sim": lambda: sim.main([*sim.STEPS, *sim.WAITS]),
    "small_worlds": small_worlds.main,
    "start": start.main,
    "node": node.main,
    "moving_bodies": moving_bodies.main,
    "scale": scale.main,
    "services": services.main,
    "spawn_gap": spawn_gap.main,
    "real_time": real_time.main,
    "lock_step": lock_step.main,
    "manager": manager.main,
    "sensors": sensors.main,
    "pictures": pictures.main,
    "cameras": cameras.main,
    "payload": payload.main,
    "governor": governor.main,
    "controllers": controllers.main,
    "crazyswarm": crazyswarm.main,
    "scripts": scripts.main,
    "page": page.main,
    "learn": learn.main,
}
if px4.VARIABLE in os.environ:  # no registry has a PX4
    BENCHMARKS["px4"] = px4.main


def machine() -> str:
    """Return processor, cores and versions in a line."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    processor = next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), "CPU")
    packages = ", ".join(f"{p} {version(p)}" for p in ("jax", "mujoco", "numpy"))
    python = f"Python {platform.python_version()}"
    return f"{os.cpu_count()} cores of {processor}, {python}, {packages}"


def main() -> None:
    """Run the benchmarks named in the arguments, or all."""
    names = sys.argv[1:] or list(BENCHMARKS)
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        sys.exit(f"unknown benchmark {', '.join(unknown)}; have {', '.join(BENCHMARKS)}")
    print(f"{datetime.date.today()}, {machine()}")
    for name in names:
        print(f"\n## {name}\n", flush=True)
        BENCHMARKS[name]()


if __name__ == "__main__":
    main()
