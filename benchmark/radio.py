"""What fits on one Crazyradio: packets, values of log blocks, and how late they come.

    python -m benchmark.radio

Prints a Markdown table, of which docs/reference/crazyflie_firmware.md has a part. Scripts of
unmodified cflib fly nothing in simulated time; each drone has log blocks of six floats.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

CASES = (
    (1, 10, 1),
    (1, 10, 8),
    (4, 10, 1),
    (8, 100, 1),
    (8, 10, 1),
    (20, 0, 0),
    (20, 100, 1),
    (20, 10, 1),
)
"""Drones, period of their log blocks [ms], and number of blocks of each."""
HEAD = (
    "| drones | blocks of each | period | packets/s each way, for each drone | values that arrive "
    "| late by (95 %) | latency that cflib measures | connected after |"
    "\n|---:|---:|---:|---:|---:|---:|---:|---:|"
)
_SETTLING, _MEASURED = 5, 15  # s
_START = 1767225600  # s, where simulated time begins, see `clocks`
_SCRIPT = f"""
import json, sys, time
import cflib.crtp
import numpy as np
from cflib.crazyflie import Crazyflie
from cflib.crazyflie.log import LogConfig
from cflib.utils import uri_helper

n, period, blocks = map(int, sys.argv[1:])
cflib.crtp.init_drivers()
host, _, port = uri_helper.uri_from_env().rpartition(":")
cfs, connected, latency, values = [], [], {{}}, []
for i in range(n):
    cfs.append(Crazyflie(rw_cache="cache"))
    cfs[-1].fully_connected.add_callback(lambda _: connected.append(time.time() - {_START}))
    cfs[-1].open_link(f"{{host}}:{{int(port) + i}}")
while len(connected) < n:
    time.sleep(0.1)
for i, cf in enumerate(cfs):
    cf.link_statistics.latency._latencies = []
    cf.link_statistics.latency.latency_updated.add_callback(lambda v, i=i: latency.update({{i: v}}))
    for block in range(blocks):
        config = LogConfig(f"b{{block}}", period)
        for name in ("x", "y", "z", "roll", "pitch", "yaw"):
            config.add_variable(f"stateEstimate.{{name}}", "float")
        cf.log.add_config(config)
        config.data_received_cb.add_callback(
            lambda stamp, *_: values.append(time.time() - {_START} - stamp / 1e3)
        )
        config.start()
time.sleep({_SETTLING})
values.clear()
time.sleep({_MEASURED})
late = float(np.percentile(values, 95)) if values else None
rate, waits = len(values) / n / {_MEASURED}, float(np.mean(list(latency.values())))
print(json.dumps([rate, late, waits, max(connected)]))
for cf in cfs:
    cf.close_link()
"""


def measured(n: int, period: int, blocks: int) -> Iterator[str]:
    """Yield the cells of a row."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "many.py"
        script.write_text(_SCRIPT)
        command = [sys.executable, "-m", "crazyflow_ros.crazyflie", str(n), "--lock-step"]
        command += ["--radio", "2M", "--", sys.executable, str(script)]
        command += [str(number) for number in (n, period, blocks)]
        done = subprocess.run(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
    found, rates = (
        re.search(r"^\[.*\]$", done.stdout, re.M),
        re.findall(r"radio (\d+)", done.stdout),
    )
    if done.returncode or found is None or not rates:
        raise RuntimeError(done.stdout)
    rate, late, waits, connected = json.loads(found[0])
    yield from (str(n), str(blocks), f"{period} ms" if blocks else "")
    yield str(round(sum(map(int, rates)) / len(rates)))
    yield f"{rate:.0f} of {blocks * 1000 // period}/s" if blocks else ""
    yield "" if late is None else f"{late:.2g} s"
    yield f"{waits * 1e-3:.2g} s"
    yield f"{connected:.0f} s"


def main() -> None:
    """Print the table."""
    print(HEAD)
    for case in CASES:
        print(f"| {' | '.join(measured(*case))} |", flush=True)


if __name__ == "__main__":
    main()
