"""`python -m crazyflow_ros.crazyflie`: with programs beside it, below it, and with a page."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest
from command_processes import in_process
from crazyflie_helpers import ECHO, Link, free_port

from crazyflow_ros.crazyflie import __main__ as crazyflie
from crazyflow_ros.crazyflie.crtp import Packet
from crazyflow_ros.crazyflie.ports import Ports

needs_cflib = pytest.mark.skipif(find_spec("cflib") is None, reason="cflib is not installed")

T = 240.0  # s, also for a compilation on a busy computer
PROGRAM = (sys.executable, "-m", "crazyflow_ros.crazyflie", "2")  # all compile the same
PROBE = b"\xff"

CONNECT = """
import os, sys
import cflib.crtp
from cflib.crazyflie import Crazyflie
from cflib.crazyflie.syncCrazyflie import SyncCrazyflie
from cflib.utils.uri_helper import uri_from_env
cflib.crtp.init_drivers()
uri = uri_from_env(default="radio://0/80/2M/E7E7E7E7E7")
with SyncCrazyflie(uri, cf=Crazyflie(rw_cache=sys.argv[1])) as scf:
    scf.wait_for_params()
    print("connected to", uri, flush=True)
sys.exit(7)
"""
READ = """
import os, sys
import cflib.crtp
from cflib.crazyflie.log import LogConfig
from cflib.crazyflie.swarm import CachedCfFactory, Swarm
from cflib.crazyflie.syncLogger import SyncLogger
from cflib.utils.uri_helper import uri_from_env
cflib.crtp.init_drivers()
head, _, first = uri_from_env(default="").rpartition(":")
uris = [f"{head}:{int(first) + i}" for i in range(2)]
with Swarm(uris, factory=CachedCfFactory(rw_cache=sys.argv[1])) as swarm:
    for uri in uris:
        log = LogConfig("place", 20)
        for name in ("x", "y", "z", "yaw"):
            log.add_variable(f"stateEstimate.{name}", "float")
        with SyncLogger(swarm._cfs[uri], log) as logger:
            values = next(iter(logger))[1].values()
        print(*(f"{value:.3f}" for value in values), flush=True)
print(sys.argv[2:], flush=True)
os.kill(os.getpid(), 9)
"""
CATCH = """
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # which shells ignore for background jobs
print("waits", os.getpid(), flush=True)
for _ in range(2):
    try:
        time.sleep(600)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        deadline = time.monotonic() + 1.0
        while time.monotonic() < deadline:  # for another one
            time.sleep(0.1)
        sys.exit(5)
"""


START = """
import os, subprocess, time
subprocess.Popen(["sleep", "600"])
if os.fork() == 0:
    time.sleep(600)
print("waits", flush=True)
while True:
    pass
"""


def port() -> str:
    return str(free_port(2))


def written(folder: Path, program: str) -> list[str]:
    """The command that runs a program, which also gets a folder for cflib's cache."""
    path = folder / "program.py"
    path.write_text(program)
    return [sys.executable, str(path), str(folder / "cache")]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*PROGRAM, *words], capture_output=True, text=True, timeout=T)


class Running:
    """A process, and what it has written so far."""

    def __init__(self, process: subprocess.Popen[bytes], output: Path) -> None:
        self.process, self._output = process, output

    @property
    def text(self) -> str:
        return self._output.read_text()

    def until(self, found: Callable[[str], object], what: str) -> None:
        deadline = time.monotonic() + T
        while not found(self.text):
            assert self.process.poll() is None, self.text
            assert time.monotonic() < deadline, f"{what}: not within {T} s\n{self.text}"
            time.sleep(0.05)


@contextmanager
def started(folder: Path, *words: str, **options: object) -> Iterator[Running]:
    output = folder / f"output{len(list(folder.iterdir()))}"
    with output.open("wb") as file:
        process = subprocess.Popen(words, stdout=file, stderr=file, **options)  # type: ignore[call-overload]
    try:
        yield Running(process, output)
    finally:
        process.kill()
        process.wait()


def test_help_lists_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scenes, drones and options; each with its default."""
    monkeypatch.setattr(crazyflie, "Signals", lambda **_: None)  # it blocks those of the process
    shown = " ".join(in_process(crazyflie.main, ["--help"]).stdout.split())
    assert "race_track, robots, room, slung_load, or path of an MJCF file (default: floor)" in shown
    assert "cf2x_L250, cf2x_P250, cf2x_T350, cf21B_500, hb_x500 (default: cf2x_L250)" in shown
    assert "none, kalman (default: none)" in shown
    for option in ("--view", "--positions", "--drone-collisions", "-- program"):
        assert option in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--scene", "flor"], "there is no scene 'flor', only carried_bar, door, "),
        (["2", "--positions", "0", "1"], "--positions: expected 6, 8 or 14 numbers for 2 drones"),
        (["--positions", "0", "nan", "0"], "--positions: expected finite numbers, got [0.0, nan"),
        (["--model", "cf3"], "invalid choice: 'cf3' (choose from"),
        (["101"], "drones must be from 1 to 100, got 101"),
        (["--port", "80"], "port: expected a whole number from 1024 to 65535, got 80"),
        (["--address", "192.0.2.1"], "udp://192.0.2.1:"),
        (["--"], "expected a program after --, got nothing"),
        (["--lock-step"], "--lock-step needs a program: --lock-step -- python script.py"),
        (["--lock-step", "--"], "--lock-step needs a program"),
        (["--", "./none", "-x"], "expected a program after --, got ./none -x"),
    ],
)
def test_wrong_usage_is_refused_before_anything_is_compiled(
    words: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crazyflie, "Signals", lambda **_: None)
    done = in_process(crazyflie.main, words)
    assert done.returncode == 2
    assert message in done.stderr
    assert "compiled code" not in done.stderr and "compiling" not in done.stderr


def test_nothing_slow_is_imported_before_the_ports_open() -> None:
    """A program of cflib sends its first packet after it has imported NumPy, and no later."""
    code = "import sys, crazyflow_ros.crazyflie.__main__ as program; "
    code += "program.parser().parse_args(['3', '--scene', 'room']); program.Ports; "
    code += "print({'numpy', 'jax', 'mujoco', 'rclpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=T)
    assert done.stdout == "set()\n", done.stderr


def test_open_ports_answer_probes_and_keep_the_rest() -> None:
    first = free_port(2)
    with (
        closing(Ports("127.0.0.1", first, 2)) as ports,
        closing(Link(f"udp://127.0.0.1:{first + 1}")) as link,
    ):
        link.send(ECHO)
        for _ in range(30):  # nobody fills the memory
            for _ in range(10):
                link.send(bytes(3))
            link.send(PROBE)
            assert link.receive_any() == PROBE
        with pytest.raises(OSError, match=f"udp://127.0.0.1:{first + 1}: .*in use"):
            Ports("127.0.0.1", first + 1, 1)
        opened = ports.hand_over()
        link.send(ECHO)  # waits for the new owner
        assert list(opened) == [first, first + 1]
        assert not opened[first].held and len(opened[first + 1].held) == 200
        assert Packet.parse(opened[first + 1].held[0][1]) == ECHO
        opened[first + 1].socket.setblocking(True)
        assert Packet.parse(opened[first + 1].socket.recv(100)) == ECHO
        for one in opened.values():
            one.socket.close()
    Ports("127.0.0.1", first, 2).close()  # and closed ports can be opened again


@needs_cflib
def test_a_program_that_starts_at_the_same_time_connects(tmp_path: Path) -> None:
    """As with the lines of the documents, pasted at once; nothing is compiled by then."""
    first = port()
    script = {**os.environ, "CFLIB_URI": f"udp://127.0.0.1:{first}"}
    with (
        started(tmp_path, *PROGRAM, "--port", first, "--view") as drones,
        started(tmp_path, *written(tmp_path, CONNECT), env=script) as program,
    ):
        assert program.process.wait(T) == 7, program.text + drones.text
        assert f"connected to udp://127.0.0.1:{first}" in program.text
        found = re.search(r"the page is at (http://127\.0\.0\.1:\d+/)", drones.text)
        assert found, drones.text
        with urllib.request.urlopen(found[1], timeout=T) as page:
            assert page.status == 200
        assert f"cf0: udp://127.0.0.1:{first}\n" in drones.text
        drones.process.terminate()
        assert drones.process.wait(T) == 0
    assert "Traceback" not in drones.text, drones.text


@needs_cflib
def test_drones_stand_where_they_are_told_to(tmp_path: Path) -> None:
    """Those on the floor on their feet."""
    poses = ["1.5", "-0.5", "0", "0.5", "-2", "1", "0", "-1"]
    options = ["--port", port(), "--positions", *poses]
    done = run(*options, "--", *written(tmp_path, READ), "--own", "words")
    assert done.returncode == 128 + signal.SIGKILL, done.stderr  # as its program ends
    *places, words = done.stdout.splitlines()
    assert words == "['--own', 'words']"
    first, second = ([float(word) for word in line.split()] for line in places)
    assert first == pytest.approx([1.5, -0.5, 0.0138, 28.65], abs=0.01)
    assert second == pytest.approx([-2.0, 1.0, 0.0138, -57.3], abs=0.01)


@pytest.mark.parametrize("options", [(), ("--lock-step",)], ids=["real time", "lock-step"])
def test_a_signal_for_the_simulator_alone_is_passed_on_once(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    program = [*options, "--", *written(tmp_path, CATCH)]
    with started(tmp_path, *PROGRAM, "--port", port(), *program) as alone:
        alone.until(lambda text: "waits" in text, "the program")
        alone.process.send_signal(signal.SIGINT)
        assert alone.process.wait(T) == 5, alone.text
        assert alone.text.count("interrupted") == 1 and "Traceback" not in alone.text


def test_a_signal_of_a_terminal_has_reached_both(tmp_path: Path) -> None:
    """In lock-step, see below."""
    words = [*PROGRAM, "--port", port(), "--", *written(tmp_path, CATCH)]
    with in_terminal(tmp_path, *words) as (typed, keyboard):
        typed.until(lambda text: "waits" in text, "the program")
        os.write(keyboard, b"\x03")
        assert typed.process.wait(T) == 5, typed.text
        assert typed.text.count("interrupted") == 1 and "Traceback" not in typed.text


@contextmanager
def in_terminal(folder: Path, *words: str) -> Iterator[tuple[Running, int]]:
    """Start a process with a terminal of its own, as a shell would give it; also its keyboard."""
    keyboard, terminal = os.openpty()
    take = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    take += "os.execv(sys.argv[1], sys.argv[1:])"
    command = [sys.executable, "-c", take, *words]
    try:
        with started(folder, *command, stdin=terminal, start_new_session=True) as running:
            yield running, keyboard
    finally:
        for end in (keyboard, terminal):
            os.close(end)


def test_an_interrupted_lock_step_leaves_no_process(tmp_path: Path) -> None:
    """Although it never waits, and has started other programs."""
    program = written(tmp_path, START)
    words = [*PROGRAM, "--port", port(), "--lock-step", "--", *program]
    with in_terminal(tmp_path, *words) as (typed, keyboard):
        typed.until(lambda text: "waits" in text, "the program")
        assert len(session(typed.process.pid)) == 4  # simulator, script, its fork, and `sleep`
        os.write(keyboard, b"\x03")
        assert typed.process.wait(T) in (1, 130), typed.text
        assert "KeyboardInterrupt" in typed.text
        until_gone(typed)


def test_a_script_ends_with_a_simulator_that_is_killed(tmp_path: Path) -> None:
    program = written(
        tmp_path, "import time\nprint('waits', flush=True)\nwhile True: time.sleep(1.0)"
    )
    words = [*PROGRAM, "--port", port(), "--lock-step", "--", *program]
    with started(tmp_path, *words, start_new_session=True) as drones:
        drones.until(lambda text: "waits" in text, "the program")
        drones.process.kill()
        drones.process.wait(T)
        until_gone(drones)
        assert "lock-step: the simulator has ended, and with it this script" in drones.text


def test_a_script_that_fails_ends_the_lock_step_with_its_exit_code(tmp_path: Path) -> None:
    program = written(tmp_path, "import time\ntime.sleep(1.5)\nraise SystemExit(3)")
    done = run("--port", port(), "--lock-step", "--", *program)
    assert done.returncode == 3 and "1.500 s of simulated time" in done.stderr, done.stderr


def until_gone(running: Running) -> None:
    """Wait until no process of a session is left."""
    deadline = time.monotonic() + T
    while left := session(running.process.pid):
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


def session(leader: int) -> list[str]:
    """The processes of a session that still run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, fields = path.read_text().rpartition(") ")
        except OSError:  # it has ended
            continue
        state, _, _, its_leader, *_ = fields.split()
        if int(its_leader) == leader and state != "Z":
            found.append(name)
    return found


def test_a_signal_during_the_start_ends_it(tmp_path: Path) -> None:
    """With a program that was not started, the exit code says so."""
    for program, code in (([], 0), (["--", "true"], 128 + signal.SIGTERM)):
        first = port()
        with started(tmp_path, *PROGRAM, "--port", first, *program) as drones:
            with closing(Link(f"udp://127.0.0.1:{first}")) as link:
                drones.until(lambda _, link=link: answers(link), "an open port")
            drones.process.terminate()
            assert drones.process.wait(T) == code, drones.text
            assert not drones.text.count("Traceback")


def answers(link: Link) -> bool:
    """Whether a probe is answered."""
    try:
        link.send(PROBE)
        return link.receive_any() == PROBE
    except ConnectionRefusedError:
        return False
