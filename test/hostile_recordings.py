"""MCAP files that nobody should write, and all that reads them: part of `make hostile`."""

from __future__ import annotations

import itertools
import random
import resource
from collections.abc import Callable
from pathlib import Path

import known_recordings as known
import mcap_files as files
from hostile_policies import damaged
from hostile_readers import Reader
from mcap.writer import CompressionType, IndexType
from nav_msgs.msg import Odometry
from visualization_msgs.msg import Marker, MarkerArray

from crazyflow_ros.checks.mcap_file import recorded
from crazyflow_ros.flight_logs import read_flight_log
from crazyflow_ros.ros.messages.message_definitions import definition
from crazyflow_ros.view.recording import Recording
from crazyflow_ros.view.replay.run import Run

MOST = 2_000_000  # kB by which this process may grow
SIZES = (0, 1, 3, 22, 23, 255, 4096, 1 << 20, 1 << 31, (1 << 63) - 1, (1 << 64) - 1)


def odometry(k: int) -> Odometry:
    """Where a drone is that flies along x."""
    message = Odometry()
    message.pose.pose.position.x, message.pose.pose.orientation.w = 0.1 * k, 1.0
    return message


class Recordings(Reader):
    """Recordings with other bytes, other sizes, other records, and bombs."""

    name = "recordings"

    def __init__(self, folder: Path, rng: random.Random) -> None:
        super().__init__(folder, rng)
        self._path = folder / "flight.mcap"
        places = ({"cf0": (0.1 * k, 0.0, 1.0), "cf1": (0.0, 0.1 * k, 0.5)} for k in range(60))
        flight = [known.states(k * 10_000_000, of) for k, of in enumerate(places)]
        flight += [(k * 10_000_000, "/cf0/odom", odometry(k)) for k in range(60)]
        scene = MarkerArray(markers=[Marker(id=k) for k in range(3)])
        others = [
            (0, f"{known.NODE}/scene", scene),
            known.flight_event(100_000_000, "cf0", "crashed", "it lies there"),
            known.status(200_000_000, {"paused": "false", "battery of cf0": "3.7 V, 50%"}),
            known.command(300_000_000, "cf0", "go_to", pos=[1, 2, 3]),
            known.reset(400_000_000, "cf1"),
        ]
        entries = sorted([*flight, *others], key=lambda entry: entry[0])
        self._sound = []
        for options in (
            {"compression": CompressionType.NONE, "chunk": 500, "enable_crcs": False},
            {"compression": CompressionType.LZ4, "chunk": 5000},
            {"compression": CompressionType.ZSTD},
            {"compression": CompressionType.NONE, "index_types": IndexType.NONE},
            {"use_chunking": False},
        ):
            parameters = {"drone_model": "cf2x_L250"}
            known.write(self._path, entries, parameters, definition=definition, **options)
            self._sound.append(self._path.read_bytes())
        self._before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def another(self) -> Path:
        """Write another file."""
        rng = self._rng
        if rng.random() < 0.2:
            content = self._made()
        else:
            content = self._changed(bytearray(rng.choice(self._sound)))
        self._path.write_bytes(content)
        return self._path

    def _changed(self, content: bytearray) -> bytes:
        rng = self._rng
        for _ in range(rng.choice((0, 1, 1, 2, 5))):
            place = rng.randrange(8, max(9, len(content) - 8))
            size = rng.choice((4, 8))
            other = (rng.choice(SIZES) & (1 << 8 * size) - 1).to_bytes(size, "little")
            content[place : place + size] = other
        if rng.random() < 0.3:
            content = bytearray(damaged(bytes(content), rng))
        if rng.random() < 0.3:
            del content[rng.randrange(len(content) + 1) :]
        return bytes(content)

    def _made(self) -> bytes:
        """Records in any order, some of which are small and would be large."""
        rng = self._rng
        topics = [("/crazyflow/odometry", "sensor_msgs/msg/MultiDOFJointState"),
                  ("/crazyflow/scene", "visualization_msgs/msg/MarkerArray"),
                  ("/crazyflow/changes", "std_msgs/msg/String"),
                  ("/cf0/odom", "nav_msgs/msg/Odometry")]  # fmt: skip
        start = b"".join(
            files.schema(i, kind) + files.channel(i, topic, i)
            for i, (topic, kind) in enumerate(topics, 1)
        )

        def message() -> bytes:
            time_ns = rng.choice((0, 1, 10**9, 10**18, (1 << 63) - 1, (1 << 64) - 1))
            data = rng.choice((b"", b"\0\1\0\0", b"\0\1\0\0" + bytes(24) + b"\xff" * 4 + bytes(99)))
            return files.message(rng.randrange(6), time_ns, data + bytes(rng.choice((0, 300_000))))

        def bomb() -> bytes:
            kind = rng.choice(("zstd", "zstd-", "lz4"))
            size = rng.choice((1 << 20, 1 << 30))
            says = rng.choice((None, 100, size))
            return files.chunk(files.zeros(size, kind), kind.rstrip("-"), size=says)

        def chunk() -> bytes:
            data = b"".join(message() for _ in range(rng.choice((0, 1, 5))))
            return files.chunk(data, span=(rng.choice((0, 1 << 63)), rng.choice((9, 10**18))))

        def index() -> bytes:
            entries = [(rng.choice(SIZES), rng.choice(SIZES)) for _ in range(rng.choice((0, 1, 9)))]
            return files.index(rng.randrange(6), entries)

        kinds: list[Callable[[], bytes]] = [message, message, chunk, chunk, index, index, bomb]
        records = [start, files.metadata({"parameters": "{}", "origin_ns": rng.choice(("0", "x"))})]
        records += [rng.choice(kinds)() for _ in range(rng.choice((1, 3, 10)))]
        return files.complete(*records)

    def read(self, path: Path) -> None:
        """Read it in all ways that there are.

        Raises:
            ValueError: One of them refuses it.
        """
        refusals = []
        for read in (self._in_order, self._as_page, self._as_log):
            try:
                read(path)
            except ValueError as error:
                refusals.append(error)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - self._before
        assert grown < MOST, f"{path} took {grown} kB"
        if refusals:
            raise refusals[0]

    def _in_order(self, path: Path) -> None:
        with path.open("rb") as file:
            for _ in recorded(file):
                pass

    def _as_page(self, path: Path) -> None:
        run = Run(Recording(path))
        run.scan(lambda _: True)
        for time_ns in (run.recording.begin_ns, run.recording.end_ns):
            run.recording.frame(time_ns)
        list(
            itertools.islice(
                run.recording.file.messages(dict.fromkeys(run.recording.file.types)), 99
            )
        )

    def _as_log(self, path: Path) -> None:
        read_flight_log(path)

    def close(self) -> None:
        """Nothing is open."""
