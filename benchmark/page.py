"""What an open page costs the node, and how fast it is.

    python -m benchmark.page [seconds]

Prints a Markdown table. The node runs at real time and as fast as possible, with its default
topics, while drones hover. Its factor is measured in turns without the page and with it. The tab is
a program that reads what a browser would. The last column is a real one, Chromium, if it is
installed: the time until it has drawn something, without a graphics card. The last line is the same
for viser alone, with one box: no page that is built on viser can be faster.
"""

from __future__ import annotations

import socket
import statistics
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import viser
import zstandard
from rosgraph_msgs.msg import Clock
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from benchmark.chromium import find_chromium, open_chromium
from benchmark.node import processor_time, time_until_ready
from benchmark.processes import ros, running
from crazyflow_ros.client import Session
from crazyflow_ros.client.simulator_process import SimulatorProcess

CASES = ((1, 1.0), (10, 0.0), (100, 1.0), (100, 0.0))
"""Number of drones and requested real-time factor, 0 for as fast as possible."""
ROUNDS = 3
SETTLING = 3.0  # s until the page has begun
TIMEOUT = 60.0  # s
HEAD = (
    "| drones | requested | factor without the page | with it | ratio | updates/s | drones after"
    " | page | cores of the page | drawn after |\n|---:|---:|" + "---:|" * 8
)
_SPREAD = 3.0  # standard deviation of grey levels, where something is drawn
_WATCH = """(spread) => {
    const small = document.createElement("canvas");
    [small.width, small.height] = [48, 36];
    const pen = small.getContext("2d", { willReadFrequently: true });
    const look = () => {
        requestAnimationFrame(look);
        const canvas = document.querySelector("canvas[data-engine]");
        if (canvas === null || window.drawnAfter) return;
        pen.drawImage(canvas, 0, 0, small.width, small.height);
        const { data } = pen.getImageData(0, 0, small.width, small.height);
        const grey = Array.from({ length: data.length / 4 }, (_, i) =>
            0.299 * data[4 * i] + 0.587 * data[4 * i + 1] + 0.114 * data[4 * i + 2]);
        const mean = grey.reduce((a, b) => a + b) / grey.length;
        const square = grey.reduce((a, b) => a + (b - mean) ** 2, 0) / grey.length;
        const isSeen = getComputedStyle(canvas).visibility === "visible";
        if (isSeen && square > spread ** 2) window.drawnAfter = performance.now() / 1000;
    };
    look();
}"""
_ALONE = """
import sys, threading, viser
server = viser.ViserServer(host="127.0.0.1", port=int(sys.argv[1]))
server.scene.add_box("/box", dimensions=(2, 2, 2))
threading.Event().wait()
"""
_CAMERA = {"wxyz": [1, 0, 0, 0], "position": [0, 0, 1], "look_at": [0, 0, 0], "fov": 1.0}
_CAMERA |= {"near": 0.1, "far": 100.0, "image_height": 720, "image_width": 1280}
_CAMERA |= {"type": "ViewerCameraMessage", "up_direction": [0, 0, 1]}


class Tab:
    """A tab, which reads all that the page sends.

    Args:
        port: Port of the page.

    Attributes:
        updates: Number of messages that moved the drones.
        is_drawn: Set when the drones have arrived.
    """

    def __init__(self, port: int) -> None:
        self.updates, self.is_drawn = 0, threading.Event()
        address = f"127.0.0.1:{port}"
        self._connection = connect(
            f"ws://{address}/",
            subprotocols=[f"viser-v{viser.__version__}"],  # type: ignore[list-item]
            origin=f"http://{address}",  # type: ignore[arg-type]
            max_size=None,
            open_timeout=TIMEOUT,
        )
        self._connection.send(msgspec.msgpack.encode(_CAMERA))
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Close the tab."""
        self._connection.close()
        self._thread.join(TIMEOUT)

    def _read(self) -> None:
        try:
            for frame in self._connection:
                assert isinstance(frame, bytes)
                packed = int.from_bytes(frame[8:16], "little")
                content = zstandard.decompress(frame[16 : 16 + packed])
                for message in msgspec.msgpack.decode(content)["messages"]:
                    if message.get("name") == "/drones0":
                        self.updates += "batched_positions" in message.get("updates", ())
                        self.is_drawn.set()
        except ConnectionClosed:
            pass


@contextmanager
def page() -> Iterator[tuple[int, int]]:
    """Run the page, and yield its port and process."""
    with serving("-m", "crazyflow_ros.view", "--port") as served:
        yield served


@contextmanager
def serving(*arguments: str) -> Iterator[tuple[int, int]]:
    """Run a program that serves a page on the port behind its arguments; yield port and process."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with running(sys.executable, *arguments, str(port)) as process:
        assert process.stdout is not None
        assert any("http" in line for line in process.stdout)
        yield port, process.pid


def measure_factor(seconds: float) -> Callable[[], float]:
    """Return a function that measures the real-time factor for a wall time [s]."""
    session = Session("page_benchmark")
    times: list[int] = []
    session.node.create_subscription(
        Clock, "/clock", lambda m: times.append(m.clock.sec * 10**9 + m.clock.nanosec), 1
    )

    def measure() -> float:
        times.clear()
        session.wait(lambda: times, "there is no clock")
        began, first = time.monotonic(), times[-1]
        session.spin_for(seconds)
        return (times[-1] - first) * 1e-9 / (time.monotonic() - began)

    return measure


def first_picture(port: int) -> tuple[float, int]:
    """Return the time until a new tab has the page and its drones [s], and the page's bytes."""
    began = time.monotonic()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=TIMEOUT) as answer:
        size = len(answer.read())
    tab = Tab(port)
    assert tab.is_drawn.wait(TIMEOUT), "no drones have arrived"
    elapsed = time.monotonic() - began
    tab.close()
    return elapsed, size


def drawn_picture(port: int) -> str:
    """Return the time until a new tab of Chromium shows the world, with its unit.

    The page itself looks, in each of its frames: to take a picture from outside would take it a
    second without a graphics card.
    """
    if find_chromium() is None:
        return "no Chromium"
    with open_chromium() as browser:
        page = browser.new_page(viewport={"width": 480, "height": 360})
        page.add_init_script(f"({_WATCH})({_SPREAD})")
        page.goto(f"http://127.0.0.1:{port}/?fixedDpr=1")
        drawn = page.wait_for_function("window.drawnAfter", timeout=1000 * TIMEOUT)
        return f"{drawn.json_value():.1f} s"


def measure(drones: int, factor: float, seconds: float, log: Path) -> str:
    """Measure a row of the table."""
    places = [(i % 10, i // 10, 1, 0) for i in range(drones)]
    parameters = {
        "drones": f"[{','.join(f'cf{i}' for i in range(drones))}]",
        "initial_poses": f"[{','.join(f'{x:.1f}' for place in places for x in place)}]",
        "real_time_factor": str(factor),
    }
    without, with_page, rates, cores = [], [], [], []
    with SimulatorProcess(parameters, log) as simulator:
        time_until_ready(simulator)
        measured = measure_factor(seconds)
        for _ in range(ROUNDS):
            without.append(measured())
            with page() as (port, pid):
                tab = Tab(port)
                assert tab.is_drawn.wait(TIMEOUT), "no drones have arrived"
                time.sleep(SETTLING)
                before, used, began = tab.updates, processor_time(pid), time.monotonic()
                with_page.append(measured())
                elapsed = time.monotonic() - began
                rates.append((tab.updates - before) / elapsed)
                cores.append((processor_time(pid) - used) / elapsed)
                tab.close()
                first, size = first_picture(port)
                drawn = drawn_picture(port)
        simulator.check()
    a, b = statistics.median(without), statistics.median(with_page)
    return (
        f"| {drones} | {f'{factor:g}' if factor else 'fastest'} | {a:.2f} | {b:.2f} | {b / a:.2f}"
        f" | {statistics.median(rates):.0f} | {first:.2f} s | {size / 1e6:.2f} MB"
        f" | {statistics.median(cores):.2f} | {drawn} |"
    )


def main(seconds: float = 8.0) -> None:
    """Measure each row, with turns of a wall time [s]."""
    with tempfile.TemporaryDirectory() as folder, ros():
        print(HEAD, flush=True)
        for drones, factor in CASES:
            print(measure(drones, factor, seconds, Path(folder, "log")), flush=True)
    with serving("-c", _ALONE) as (port, _):
        print(f"\nviser alone, without a simulator: drawn after {drawn_picture(port)}")


if __name__ == "__main__":
    main(*map(float, sys.argv[1:2]))
