"""Scripts in simulated time: clocks, waits, the order of threads, and what is outside.

Each script asserts what it sees, so that it also says what ordinary Python code may rely on.
"""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path

import pytest
from script_time import Clockwork, Log, run, start

HEAD = """
import threading, time
start = time.monotonic()
def passed(): return round(time.monotonic() - start, 3)
def check(expected): assert passed() == expected, (passed(), expected)
"""


def succeed(text: str, folder: Path) -> str:
    """Run a script that has to succeed; return what it wrote."""
    done = run(HEAD + text, folder)
    assert done.code == 0 and not done.err, done.err
    return done.out


def test_clocks_agree_and_never_repeat(tmp_path: Path) -> None:
    succeed(
        """
import datetime, pickle
for clock in (time.time, time.monotonic, time.perf_counter, time.time_ns, time.monotonic_ns,
              lambda: time.clock_gettime(time.CLOCK_REALTIME), datetime.datetime.now):
    looks = [clock() for _ in range(100)]
    assert looks == sorted(set(looks)), looks
time.sleep(1e6)  # days
day = datetime.datetime.now(datetime.timezone.utc)
assert abs(day.timestamp() - time.time()) < 1e-3
assert abs(day - datetime.datetime(2026, 1, 12, 13, 46, 40, tzinfo=day.tzinfo)).seconds < 1
assert time.strftime("%Y-%m-%d", time.gmtime()) == "2026-01-12" == str(day.date())
assert datetime.date.today().year == 2026 == time.localtime().tm_year
assert isinstance(day, datetime.datetime) and isinstance(day, datetime.date)
assert isinstance(pickle.loads(pickle.dumps(day)), datetime.datetime)
assert not isinstance("2026", datetime.datetime)
class Mine(datetime.datetime): pass
assert not isinstance(day, Mine) and isinstance(Mine.now(), Mine)
class Clock: now = time.time  # no method, as the function of C is none
assert Clock().now() > 0
import logging
logging.basicConfig(format="%(asctime)s")
""",
        tmp_path,
    )


def test_waits_end_at_their_deadlines_and_not_before(tmp_path: Path) -> None:
    succeed(
        """
import queue, sched
lock, event, condition = threading.Lock(), threading.Event(), threading.Condition()
lock.acquire()
assert not lock.acquire(timeout=1.5); check(1.5)
assert not event.wait(0.25); check(1.75)
with condition: assert not condition.wait_for(lambda: False, timeout=0.25)
check(2.0)
for kind in (queue.Queue, queue.LifoQueue, queue.PriorityQueue, queue.SimpleQueue):
    try: kind().get(timeout=0.5)
    except queue.Empty: pass
    else: raise AssertionError
check(4.0)
assert not threading.Semaphore(0).acquire(timeout=1.0); check(5.0)
sleeper = threading.Thread(target=time.sleep, args=(3.0,))
sleeper.start()
sleeper.join(1.0); assert sleeper.is_alive(); check(6.0)
sleeper.join(); assert not sleeper.is_alive(); check(8.0)
barrier = threading.Barrier(2)
try: barrier.wait(1.0)
except threading.BrokenBarrierError: check(9.0)
threading.Timer(0.5, event.set).start()
assert event.wait(100); check(9.5)
scheduler = sched.scheduler()
scheduler.enter(0.5, 0, lambda: None); scheduler.run(); check(10.0)
time.sleep(0); time.sleep(-0.0); check(10.0)
""",
        tmp_path,
    )


def test_pools_and_asyncio_live_in_the_same_time(tmp_path: Path) -> None:
    succeed(
        """
import asyncio, concurrent.futures
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    slow = pool.submit(time.sleep, 2.0)
    try: slow.result(timeout=0.5)
    except concurrent.futures.TimeoutError: check(0.5)
    assert list(pool.map(lambda s: time.sleep(s) or s, [0.3, 0.2, 0.1])) == [0.3, 0.2, 0.1]
    check(0.8)
check(2.0)

async def main():
    assert await asyncio.gather(*(asyncio.sleep(s, s) for s in (3, 1, 2))) == [3, 1, 2]; check(5.0)
    try: await asyncio.wait_for(asyncio.Event().wait(), 1.0)
    except asyncio.TimeoutError: check(6.0)
    await asyncio.to_thread(time.sleep, 1.0); check(7.0)
    loop, done = asyncio.get_running_loop(), asyncio.Event()
    threading.Timer(1.0, lambda: loop.call_soon_threadsafe(done.set)).start()
    await done.wait(); check(8.0)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"hello"); assert await reader.read(5) == b"hello"; check(9.0)
    writer.close()

async def echo(reader, writer):
    data = await reader.read(5)
    await asyncio.sleep(1.0)
    writer.write(data)
    writer.close()

async def both():
    global port
    async with await asyncio.start_server(echo, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        await main()
asyncio.run(both())
""",
        tmp_path,
    )


def test_threads_run_in_the_same_order_each_time(tmp_path: Path) -> None:
    text = """
import queue, random
tasks, lines = queue.Queue(3), []
def work(name):
    while (task := tasks.get()) is not None:
        lines.append((name, task, round(time.monotonic() - start, 6)))
        time.sleep(random.random() / 100)
        with lock: lines.append(name)
lock = threading.RLock()
workers = [threading.Thread(target=work, args=(i,)) for i in range(5)]
for worker in workers: worker.start()
for i in range(200): tasks.put(i)
for worker in workers: tasks.put(None)
for worker in workers: worker.join()
assert len(lines) == 400
print(lines, {"some", "words", "in", "a", "set"}, {object() for _ in range(20)})
"""
    first, second = (succeed(text, folder) for folder in _folders(tmp_path, 2))
    assert first == second


def test_a_lock_goes_to_those_who_wait_in_turn(tmp_path: Path) -> None:
    """A thread that takes it again at once would otherwise keep the others from it for ever."""
    succeed(
        """
lock, had = threading.Lock(), []
def use(name):
    for _ in range(3):
        with lock:
            had.append(name)
            time.sleep(0.1)
threads = [threading.Thread(target=use, args=(name,)) for name in "abc"]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert "".join(had) == "abcabcabc", had
check(0.9)
try: lock.release()
except RuntimeError: pass
else: raise AssertionError
for wrong in ((False, 1.0), (True, -2.0)):
    try: lock.acquire(*wrong)
    except ValueError: pass
    else: raise AssertionError
assert not lock.locked() and lock.acquire(False) and lock.locked() and not lock.acquire(False)
""",
        tmp_path,
    )


def test_a_script_that_only_looks_at_a_clock_or_a_lock_gets_further(tmp_path: Path) -> None:
    succeed(
        """
import queue
while time.monotonic() < start + 1.0: pass
assert 1.0 <= passed() < 1.1
done, tasks = threading.Event(), queue.Queue()
threading.Thread(target=lambda: (time.sleep(0.2), tasks.put(1), done.set())).start()
while tasks.empty(): pass
while True:
    try: tasks.get_nowait()
    except queue.Empty: break
assert done.wait(1.0) and 1.2 <= passed() < 1.5
""",
        tmp_path,
    )


def test_random_numbers_are_the_same_without_a_seed(tmp_path: Path) -> None:
    text = """
import random
import numpy
print(random.random(), random.Random().random(), numpy.random.random())
print(numpy.random.default_rng().random())
random.seed(); print(random.random())
random.seed(1); print(random.random() == random.Random(1).random())
"""
    folders = _folders(tmp_path, 3)
    first, second = (succeed(text, folder) for folder in folders[:2])
    assert first == second and first.endswith("True\n")
    other = run(HEAD + text, folders[2], seed=7)
    assert other.out != first and len({*first.split()}) == 6


def test_datagrams_of_drones_come_at_their_times(tmp_path: Path) -> None:
    clockwork = Clockwork()
    done = run(
        HEAD
        + """
import asyncio, select, socket
drone = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
drone.connect(("localhost", 19860))
drone.send(b"one"); drone.sendall(b"two"); drone.sendmsg([b"th", b"ree"])
assert [drone.recv(64), drone.recv(2), drone.recv(64)] == [b"one", b"tw", b"three"]; check(0.001)
drone.settimeout(0.5)
try: drone.recv(64)
except socket.timeout: check(0.501)
drone.setblocking(False)
try: drone.recv(64)
except BlockingIOError: pass
assert select.select([drone], [drone], [], 0.1) == ([], [drone], [])
drone.send(b"four")
assert select.select([drone], [], [], 10.0) == ([drone], [], []); check(0.502)
buffer = bytearray(8)
assert drone.recv_into(buffer) == 4 and buffer[:4] == b"four"
poll = select.poll(); poll.register(drone, select.POLLIN)
drone.send(b"five"); assert poll.poll(2000) == [(drone.fileno(), select.POLLIN)]
assert drone.recvfrom(64) == (b"five", ("127.0.0.1", 19860)); check(0.503)
assert poll.poll(500) == []; check(1.003)

other = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)  # not connected: hears everybody
other.sendto(b"six", ("127.0.0.1", 19861))
assert other.recvfrom(64) == (b"six", ("127.0.0.1", 19861)); check(1.004)
friend = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
friend.sendto(b"hi", ("127.0.0.1", other.getsockname()[1]))
assert other.recv(64) == b"hi"

class Protocol(asyncio.DatagramProtocol):
    def connection_made(self, transport): transport.sendto(b"seven")
    def datagram_received(self, data, sender): heard.set_result((data, sender))
async def main():
    global heard
    loop = asyncio.get_running_loop()
    heard = loop.create_future()
    await loop.create_datagram_endpoint(Protocol, remote_addr=("127.0.0.1", 19860))
    assert await heard == (b"seven", ("127.0.0.1", 19860))
asyncio.run(main())

late = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
late.connect(("127.0.0.1", 19860)); late.send(b"eight")
threading.Timer(0.5, late.close).start()
drone.close()
try: drone.send(b"no")
except OSError: pass
""",
        tmp_path,
        clockwork,
    )
    assert done.code == 0, done.err
    sent = [(datagram.drone, datagram.data) for datagram in clockwork.received]
    words = ["one", "two", "three", "four", "five", "six", "seven", "eight"]
    assert sent == [(19861 if word == "six" else 19860, word.encode()) for word in words]


def test_other_programs_and_threads_are_reached_as_ever(tmp_path: Path) -> None:
    """While the main thread waits for another program, time stands still."""
    (tmp_path / "in").write_text("typed\n")
    succeed(
        """
import multiprocessing, os, socket, subprocess, sys, warnings
warnings.simplefilter("ignore")  # of Python 3.12, about `fork` beside threads
assert input() == "typed"; check(0.0)
assert subprocess.run([sys.executable, "-c", "import time; time.sleep(0.2); print(time.time())"],
                      capture_output=True, timeout=60).returncode == 0; check(0.0)
assert subprocess.Popen(["sleep", "0.1"]).wait(timeout=60) == 0; check(0.0)
ours, theirs = socket.socketpair()
threading.Timer(1.0, lambda: theirs.send(b"x")).start()
assert ours.recv(1) == b"x"; check(1.0)
server = socket.create_server(("127.0.0.1", 0))
def serve():
    connection, _ = server.accept()
    time.sleep(1.0)
    connection.sendall(connection.recv(5))
threading.Thread(target=serve).start()
client = socket.create_connection(server.getsockname())
client.sendall(b"hello")
assert client.recv(5) == b"hello"; check(2.0)
server.settimeout(1.0)
try: server.accept()
except socket.timeout: check(3.0)
waiting = []
threading.Thread(target=lambda: waiting.append(subprocess.Popen(["sleep", "60"]).wait()),
                 daemon=True).start()
time.sleep(1.0); check(4.0); assert not waiting
def child(pipe):
    before = time.time(); time.sleep(0.01)
    pipe.send(time.time() > before and time.time() - parent_epoch > 3e6)
parent_epoch = time.time()
ours, theirs = multiprocessing.get_context("fork").Pipe()
process = multiprocessing.get_context("fork").Process(target=child, args=(theirs,))
process.start(); assert ours.recv(); process.join(); assert process.exitcode == 0
if (pid := os.fork()) == 0:
    thread = threading.Thread(target=time.sleep, args=(0.01,)); thread.start(); thread.join()
    os._exit(0 if threading.Lock().acquire(timeout=1.0) else 1)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(abs, [-1, -2, -3]) == [1, 2, 3]
""",
        tmp_path,
    )


ENDS = {
    "exit": ("import sys; sys.exit(3)", 3),
    "error": ("raise ValueError('mine')", 1),
    "threads": (
        "threading.Thread(target=lambda: (time.sleep(2.0), print('later'))).start()\n"
        "threading.Thread(target=time.sleep, args=(1e9,), daemon=True).start()\n"
        "import atexit; atexit.register(lambda: (time.sleep(1.0), print(passed())))",
        0,
    ),
    "killed": ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 137),
    "executed": ("import os; os.execv('/bin/true', ['true'])", 0),
}


@pytest.mark.parametrize("name", ENDS)
def test_the_exit_code_is_that_of_the_script(tmp_path: Path, name: str) -> None:
    text, code = ENDS[name]
    done = run(HEAD + text, tmp_path)
    assert done.code == code, done.err
    if name == "error":
        assert "ValueError: mine" in done.err
    if name == "threads":
        assert done.out == "later\n3.0\n" and not done.err


def test_signals_reach_the_main_thread_at_its_next_turn(tmp_path: Path) -> None:
    done = run(
        HEAD
        + """
import os, signal
def send(number): threading.Timer(1.0, os.kill, (os.getpid(), number)).start()
noted = []
signal.signal(signal.SIGUSR1, lambda *_: (noted.append(passed()), time.sleep(0.5)))
assert callable(signal.getsignal(signal.SIGUSR1))
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
send(signal.SIGUSR1)
time.sleep(3.0); assert 1.0 <= noted[0] <= 3.0 <= passed() <= 3.5
send(signal.SIGUSR1); signal.pause(); assert 4.0 <= passed() < 6.0
send(signal.SIGINT)
try: threading.Event().wait()
except KeyboardInterrupt: print("interrupted")
with threading.Lock() as _: pass
send(signal.SIGTERM)
threading.Event().wait()
""",
        tmp_path,
    )
    assert done.code == 143 and done.out == "interrupted\n", done.err


def test_an_interrupted_script_ends(tmp_path: Path) -> None:
    """As by Ctrl-C, which reaches it while all its threads wait and time runs."""
    log, codes = Log(), []
    text = "print('begun', flush=True)\nwhile True: time.sleep(1.0)"
    script, out = start(HEAD + text, tmp_path, log), tmp_path / "out"
    runner = threading.Thread(target=lambda: codes.append(script.run(Clockwork())))  # type: ignore[arg-type]
    runner.start()
    while runner.is_alive() and not (out.exists() and out.read_text()):
        time.sleep(0.05)
    script.send(signal.SIGINT)
    runner.join(60)
    assert codes in ([130], [1]), (tmp_path / "err").read_text()
    assert "KeyboardInterrupt" in (tmp_path / "err").read_text()


SAYS = {
    "deadlock": (
        "threading.Thread(target=threading.Event().wait, name='other').start()\n"
        "import signal; signal.signal(signal.SIGALRM, lambda *_: __import__('os')._exit(5))\n"
        "signal.alarm(2)\nthreading.Event().wait()",
        "has stood still for 0.3 s: all threads wait, and nothing can end that: MainThread in "
        "<module> (script.py, line 9); other",
    ),
    "busy": (
        "import os, time as t\nt0 = os.times().elapsed\n"
        "while os.times().elapsed < t0 + 1.5: pass\nos._exit(5)",
        "has stood still for 0.3 s: MainThread runs, or waits for something outside of the "
        "simulation, in <module> (script.py, line 8)",
    ),
    "endless": (
        "import os\nuntil = os.times().elapsed + 1.5\n"
        "def look():\n    while os.times().elapsed < until: time.sleep(1.0)\n    os._exit(5)\n"
        "threading.Thread(target=look).start()\nthreading.Event().wait()",
        "the main thread has waited for",
    ),
}


@pytest.mark.parametrize("name", SAYS)
def test_it_is_said_what_a_script_waits_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("crazyflow_ros.scripts.script._PATIENCE", 0.3)
    text, expected = SAYS[name]
    done = run(HEAD + text, tmp_path)
    assert done.code == 5 and expected in done.err, done.err
    assert "lock-step: simulated time" in done.err


def test_a_script_ends_with_the_simulator(tmp_path: Path) -> None:
    done = run(HEAD + "while True: time.sleep(1.0)", tmp_path, Clockwork(most=5))
    assert done.code == 1 and done.log == ["lock-step: the simulation has failed"]


@pytest.mark.parametrize("arguments", [["-I"], ["-S"]])
def test_a_program_outside_of_simulated_time_is_named(tmp_path: Path, arguments: list[str]) -> None:
    done = run("print(1)", tmp_path, arguments=arguments)
    assert done.code == 0 and done.out == "1\n"
    assert any("was never in simulated time" in line for line in done.log), done.log


def test_the_users_own_customization_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python's path is what the user has set, and so is that of programs that the script starts."""
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "sitecustomize.py").write_text("import builtins; builtins.customized = True")
    monkeypatch.setenv("PYTHONPATH", str(mine))
    out = succeed(
        f"""
import os, sys
import sitecustomize
assert customized and sitecustomize.__file__.startswith({str(mine)!r}), sitecustomize.__file__
assert os.environ["PYTHONPATH"] == {str(mine)!r}
assert not [path for path in sys.path if "in_script" in path], sys.path
assert not [name for name in os.environ if "LOCK_STEP" in name]
print("ok")
""",
        tmp_path,
    )
    assert out == "ok\n"


def _folders(tmp_path: Path, n: int) -> list[Path]:
    folders = [tmp_path / str(i) for i in range(n)]
    for folder in folders:
        folder.mkdir()
    return folders
