"""Lock-step over shared memory with a compiled C++ client: cycles, faults, two simulators."""

import hashlib
import logging
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from functools import partial

import numpy as np
import physics_helpers
import pytest
from hostile_memory import Scribbles
from paths import ROOT
from python_controller import PythonController

from crazyflow_ros.checks import throttled_logger
from crazyflow_ros.drones import load_drone
from crazyflow_ros.lockstep import layout
from crazyflow_ros.lockstep.link import SharedMemoryLink
from crazyflow_ros.lockstep.shared_memory import FOLDER, NameInUse
from crazyflow_ros.runtime import DroneState, Level, PhysicsThread, SimulationConfig
from crazyflow_ros.runtime import door_commands as commands

T = 120.0  # s, no wait of a test is longer
until = partial(physics_helpers.until, timeout=T)
IS_SOAK = "CRAZYFLOW_ROS_SOAK" in os.environ
CYCLES, RUNS = (100_000, 3) if IS_SOAK else (20_000, 2)
KILLS = 25 if IS_SOAK else 3  # on each side
WEIGHT = load_drone("cf2x_L250")["mass"] * 9.81
HOVER = (0.0, 0.0, 0.0, WEIGHT)
NAN = (np.nan,) * 4


@pytest.fixture(scope="session")
def client(tmp_path_factory):
    """The compiled test client."""
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None:
        pytest.skip("needs a C++ compiler")
    program = tmp_path_factory.mktemp("client") / "lock_step_client"
    options = ["-std=c++17", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    include = f"-I{ROOT / 'hardware' / 'include'}"
    source = str(ROOT / "test" / "lockstep" / "lock_step_client.cpp")
    subprocess.run([compiler, *options, include, source, "-o", str(program)], check=True)
    return program


@contextmanager
def run_client(program, name, cycles=0, log="-", drones=("cf0",)):
    process = subprocess.Popen(
        [program, name, str(cycles), str(log), *drones],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def connected(process):
    line = process.stdout.readline()
    assert line.startswith("connected to process "), (line, process.stderr.read())
    return int(line.split()[-1])


@pytest.fixture
def name(request):
    """A name of its own for the shared memory of each test; nothing may be left of it."""
    name = f"test.{os.getpid()}.{request.node.name[:40]}".replace("[", ".").replace("]", "")
    yield name
    assert not (FOLDER / f"crazyflow_ros.{name}").exists()


@pytest.fixture
def simulator(name):
    """Start simulators in this process; they are stopped at the end."""
    started = []

    def start(drones=("cf0",), *, memory=name, rate=500, source=None, callback=None, **options):
        config = {"real_time_factor": 0.0, "start_paused": True} | options.pop("config", {})
        if source is None:
            given = {"lock_step": True, "timeout": T, "logger": logging.getLogger("link")}
            source = SharedMemoryLink(
                memory, drones, drone_model="cf2x_L250", freq=500, rate=rate, **(given | options)
            )
        physics = PhysicsThread(SimulationConfig(**config), drones, source)
        # As /clock in each control period of a manager.
        physics.every(rate, callback or (lambda _: None), "test")
        physics.start()
        started.append(physics)
        return physics, source

    yield start
    for physics in started:
        physics.stop()
        assert physics.failed is None, physics.failed


def answered(physics, controller, n, *commands):
    """Step n ticks while a controller answers with the same commands; return the state."""
    begun, steps = physics.snapshot.tick, physics.step(n)
    while not steps.done():
        controller.post(*commands)
    assert steps.result(T).tick == begun + n
    return steps.result(T)


class Digest:
    """Of all states up to a tick, to the last bit."""

    def __init__(self, last_tick):
        self._hash, self._last = hashlib.sha256(), last_tick
        self.states = 0

    def __call__(self, snapshot):
        if snapshot.tick > self._last:
            return
        for field in ("pos", "quat", "vel", "ang_vel", "acc", "rotor_vel", "rotor_angle"):
            self._hash.update(getattr(snapshot, field).tobytes())
        self._hash.update(str(snapshot.tick).encode())
        self.states += 1

    @property
    def value(self):
        return self.states, self._hash.hexdigest()


class Replay:
    """Commands that a client has logged, fed in the process."""

    name, period = "replay", 1

    def __init__(self, log):
        rows = np.fromfile(log).reshape(-1, 8)
        self._rows = {int(row[0]): row[3:] for row in rows}

    def show(self, snapshot, mirror):
        pass

    def collect(self, snapshot, command, level, interrupted):
        row = self._rows[snapshot.tick]
        level[:], command[:] = row[0], row[1:]
        return True

    def forget(self, drones):
        self.forgotten = drones.tolist()

    def interrupt(self):
        pass

    def set_paused(self, paused):
        pass

    def close(self):
        pass


def test_cycles_are_bitwise_those_of_the_same_commands_in_the_process(
    client, simulator, tmp_path, name
):
    digests, logs = [], []
    for run in range(RUNS):
        digest, log = Digest(CYCLES), tmp_path / f"{run}.log"
        physics, link = simulator(callback=digest)
        with run_client(client, name, CYCLES, log) as process:
            connected(process)
            until(lambda link=link: link.status().attached, "the first command")
            physics.resume().result(T)
            assert process.wait(10 * T) == 0
            assert process.stdout.read() == f"answered {CYCLES} lost 0\n"
        until(lambda physics=physics: physics.snapshot.tick > CYCLES, "the last state")
        status = link.status()
        assert status.timeouts == 0 and status.refused == 0
        assert status.cycles >= CYCLES - 1  # at the last one it may have gone already
        physics.stop()
        rows = np.fromfile(log).reshape(-1, 8)
        np.testing.assert_array_equal(rows[:, 0], 1 + np.arange(CYCLES))
        assert set(rows[:, 3]) == {Level.rotor_velocity, Level.attitude, Level.body_rate}
        logs.append(log.read_bytes())
        digests.append(digest.value)
    assert logs[1:] == logs[:1] * (RUNS - 1)
    # The last command may have been withdrawn with the client before it was obeyed.
    digest = Digest(CYCLES)
    physics, _ = simulator(callback=digest, source=Replay(log))
    physics.step(CYCLES - 1).result(10 * T)
    physics.stop()
    assert digest.states == CYCLES
    assert digests == [digest.value] * RUNS


def test_steps_are_exact_and_requests_get_through_while_a_controller_flies(
    client, simulator, tmp_path, name
):
    physics, link = simulator()
    log, cycles, chance = tmp_path / "log", 10_000, random.Random(2)
    with run_client(client, name, cycles, log) as process:
        connected(process)
        until(lambda: link.status().attached, "the first command")
        while physics.snapshot.tick <= cycles - 1000:
            before, n = physics.snapshot.tick, chance.randrange(1, 500)
            assert physics.step(n).result(T).tick == before + n
            physics.resume().result(T)
            assert physics.pause().result(T).tick >= before + n
            running = physics.step(1_000_000)
            running.cancel()
            assert physics.pause().result(T).epoch == 0
        physics.resume().result(T)
        assert process.wait(10 * T) == 0
        assert process.stdout.read() == f"answered {cycles} lost 0\n"
    np.testing.assert_array_equal(np.fromfile(log).reshape(-1, 8)[:, 0], 1 + np.arange(cycles))
    assert link.status().timeouts == 0


@pytest.mark.filterwarnings("ignore:overflow")
def test_a_drone_that_gets_lost_is_alone_in_that(simulator, name, monkeypatch):
    # No command that is accepted does it.
    monkeypatch.setattr(commands, "_MOST", np.full_like(commands._MOST, np.inf))
    poses = {"initial_poses": [[i, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0] for i in range(2)]}
    physics, link = simulator(("cf0", "cf1"), config=poses)
    controller = PythonController(name, "cf0", "cf1")

    def fly(speed):
        first, second = (Level.rotor_velocity, (speed,) * 4), (Level.attitude, HOVER)
        return answered(physics, controller, 50, first, second)

    before = fly(1500.0)
    assert physics.statistics().faults == {}
    after = fly(1e200)  # more than there are numbers of 32 bits
    faults = physics.statistics().faults
    assert list(faults) == ["cf0"] and f"lost by {(before.tick + 1) / 500:.3f} s" in faults["cf0"]
    assert after.tick == before.tick + 50 and np.isfinite(after.pos).all()
    assert (after.rotor_vel[0] == 0).all() and (after.rotor_vel[1] > 1000).all()
    np.testing.assert_array_equal(controller.drones["rotor_position"][:, :4], after.rotor_angle)
    assert link.status().timeouts == 0
    controller.close()


def test_a_command_shows_in_the_state_one_control_period_later(simulator, name):
    physics, _ = simulator(rate=100)
    controller = PythonController(name, "cf0")
    physics.resume().result(T)
    for tick in (5, 10, 15, 20):
        until(lambda tick=tick: controller.stamp[0] == tick, f"tick {tick}")
        assert controller.drones["level"][0] == (0 if tick == 5 else Level.rotor_velocity)
        speed = controller.drones["rotor_velocity"][0, :4]
        assert (speed > 0).all() == (tick > 5)
        controller.post((Level.rotor_velocity, (1500.0,) * 4))
    physics.pause().result(T)
    controller.close()


def test_the_client_recovers_from_its_simulator_and_the_simulator_from_its_client(
    client, simulator, name, caplog
):
    """Killed at random, again and again."""
    caplog.set_level(logging.INFO)
    chance = random.Random(1)
    physics, link = simulator(rate=100, timeout=2.0)
    physics.resume().result(T)
    for _ in range(KILLS):
        with run_client(client, name) as process:
            connected(process)
            until(lambda: link.status().attached, "the client")
            tick = physics.snapshot.tick
            until(lambda tick=tick: physics.snapshot.tick > tick + chance.randrange(50), "ticks")
            process.kill()
            process.wait(T)
            until(lambda: not link.status().attached, "its end to be noticed")
            tick = physics.snapshot.tick
            until(lambda tick=tick: physics.snapshot.tick > tick + 100, "time to run on")
    physics.stop()  # which says what was left out
    messages = [record.getMessage() for record in caplog.records]
    died = [message for message in messages if "its controller manager, process" in message]
    left_out = re.findall(r"\((\d+) more", " ".join(died))
    assert KILLS - 2 <= len(died) - len(left_out) + sum(map(int, left_out)) <= KILLS
    assert not any("within" in message for message in messages)  # noticed before the timeout

    killed = [sys.executable, str(ROOT / "test" / "shared_memory_simulators.py"), name]
    with (
        subprocess.Popen(
            killed,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        ) as simulators,
        run_client(client, name) as process,
    ):
        for _ in range(KILLS):
            pid = int(simulators.stdout.readline())
            assert connected(process) == pid
            assert simulators.stdout.readline() == "a command\n"
            if IS_SOAK:
                time.sleep(chance.random() * 0.01)  # a moment at random
            os.kill(pid, signal.SIGKILL)
            simulators.stdin.write("next\n")
            simulators.stdin.flush()
        simulators.stdin.close()
    assert (FOLDER / f"crazyflow_ros.{name}").exists()  # of the last one that was killed
    _, link = simulator()
    assert link.memory_name == name


def test_another_version_or_layout_is_refused_with_both_named(client, simulator, name):
    _, link = simulator()
    view = PythonController(name).view
    for field, value in (("version", layout.VERSION_WITH_ROBOTS + 1), ("layout", 0xABCD)):
        right = view["header"][field].copy()
        view["header"][field] = value
        with run_client(client, name, 1) as process:
            output, error = process.communicate(timeout=T)
            assert process.returncode == 1 and not output
        view["header"][field] = right
        ours = {"version": layout.VERSION, "layout": layout.layout_hash()}
        said = "version {version} (layout {layout:08x})"
        assert "the simulator speaks " + said.format(**ours | {field: value}) in error
        assert "this controller " + said.format(**ours) in error
    assert link.status().attached == ()


def test_two_simulators_and_the_rest_of_a_dead_one_do_not_collide(client, simulator, name):
    leftover = FOLDER / f"crazyflow_ros.{name}"
    leftover.write_bytes(b"of who knows whom")
    first, first_link = simulator()
    second, second_link = simulator(memory=f"{name}.b")
    with pytest.raises(NameInUse, match=rf"{os.getpid()}.*{re.escape(name)}.*choose another"):
        simulator()
    with run_client(client, name) as a, run_client(client, f"{name}.b") as b:
        connected(a)
        connected(b)
        for physics in (first, second):
            physics.resume().result(T)
        for physics, link in ((first, first_link), (second, second_link)):
            until(lambda physics=physics: physics.snapshot.tick > 200, "ticks")
            assert link.status().attached == ("cf0",)
            assert link.status().cycles > 100


def test_a_drone_has_one_controller_and_two_controllers_make_one_barrier(client, simulator, name):
    physics, link = simulator(("cf0", "cf1"), rate=100)
    with run_client(client, name, drones=("cf0",)) as a:
        connected(a)
        with run_client(client, name, drones=("cf0",)) as thief:
            _, error = thief.communicate(timeout=T)
            assert f"cf0 already has a controller, process {a.pid}" in error
        with run_client(client, name, drones=("nobody",)) as stranger:
            _, error = stranger.communicate(timeout=T)
            assert "no drone 'nobody', but cf0, cf1" in error
        other = PythonController(name, "cf1")
        physics.resume().result(T)
        until(lambda: other.stamp[0] == 5, "the first control tick")
        for tick in range(5, 500, 5):
            until(lambda tick=tick: other.stamp[0] == tick, f"tick {tick}")
            other.post((Level.attitude, HOVER))
        assert link.status().timeouts == 0
        other.close()


THEN = {
    "hold": "it is held where it is",
    "keep": "the last valid command stays in force",
    "stop": "its rotors stop",
}
BAD = [
    (Level.rotor_velocity, (1500.0, np.nan, 0.0, 1500.0), "finite numbers within 100000 rad/s"),
    (Level.rotor_velocity, (1500.0, 1500.0, 1500.0, np.inf), "finite numbers within 100000 rad/s"),
    (Level.rotor_velocity, (1500.0, 1500.0, -1e200, 1500.0), "finite numbers within 100000 rad/s"),
    (Level.attitude, (0.0, 1e4, 0.0, 0.3), "finite numbers within 1000 rad and 1000 N"),
    (Level.attitude, NAN, "finite numbers within 1000 rad and 1000 N"),
    (Level.body_rate, (0.0, 0.0, 0.0, 1e300), "finite numbers within 1000 rad/s and 1000 N"),
    (Level.acceleration, (0.0, 0.0, 1e5, 0.0), "finite numbers within 10000 m/s^2 and 1000 rad"),
    (6, HOVER, "expected a level of 0, 1, 2, 3, 4, 13, got 6"),
    (2**64 - 1, HOVER, f"expected a level of 0, 1, 2, 3, 4, 13, got {2**64 - 1}"),
]


@pytest.mark.parametrize("on_loss", THEN)
def test_a_bad_command_is_refused_and_the_other_drone_obeys(
    simulator, name, caplog, on_loss, monkeypatch
):
    monkeypatch.setattr(throttled_logger, "SILENCE", 0.0)  # each is logged
    physics, link = simulator(("cf0", "cf1"), rate=500, on_loss=on_loss)
    controller = PythonController(name, "cf0", "cf1")

    def answer(first, n):
        return answered(physics, controller, n, first, (Level.attitude, HOVER))

    good = (Level.rotor_velocity, (1500.0,) * 4)
    lost = {"hold": Level.held, "keep": Level.rotor_velocity, "stop": Level.rotor_velocity}[on_loss]
    for level, values, expected in BAD:
        before = answer(good, 20)
        refused = link.status().refused
        caplog.clear()
        after = answer((level, values), 20)
        message, *_ = (r.getMessage() for r in caplog.records if "refused" in r.getMessage())
        assert message.startswith("cf0: command ") and expected in message
        assert link.status().refused >= refused + 19
        assert controller.drones["level"].tolist() == [lost, Level.attitude]
        assert (after.rotor_vel[1] > 500).all()
        assert THEN[on_loss] in message
        if on_loss == "hold":
            assert (after.vel[0] == 0).all()
        elif on_loss == "keep":
            assert (after.rotor_vel[0] > 500).all()
        else:
            assert (after.rotor_vel[0] < before.rotor_vel[0]).all()
    answer(good, 2)
    assert controller.drones["level"].tolist() == [Level.rotor_velocity, Level.attitude]
    assert link.status().timeouts == 0
    controller.close()


def test_who_has_no_command_yet_is_not_refused(simulator, name, caplog):
    physics, link = simulator(rate=500)
    controller = PythonController(name, "cf0")

    def answer(command, n=5):
        return answered(physics, controller, n, command)

    answer((layout.WAITING, NAN))
    assert controller.drones["level"][0] == Level.held
    before = answer((Level.attitude, (0.0, 0.0, 0.0, 2 * WEIGHT)))
    after = answer((layout.WAITING, NAN), 200)  # another controller took over, and knows nothing
    assert controller.drones["level"][0] == Level.attitude
    assert (after.rotor_vel > before.rotor_vel).all() and after.vel[0, 2] > 0.1  # it has lifted off
    answer((Level.attitude, HOVER))
    assert link.status().refused == 0 and link.status().timeouts == 0
    assert not any("refused" in r.getMessage() for r in caplog.records)
    controller.close()


@pytest.mark.parametrize("lock_step", [True, False])
def test_scribbles_all_over_the_memory_are_said_and_the_drones_obey_again(
    simulator, name, caplog, lock_step
):
    """Also where only the simulator writes: its header, the states, the names of the drones."""
    physics, link = simulator(("cf0", "cf1"), rate=500, lock_step=lock_step, timeout=0.01)
    controllers = [PythonController(name, drone) for drone in ("cf0", "cf1")]
    constant = layout.offset(layout.HEADER, "state_count")
    before = controllers[0].view.tobytes()[:constant]
    names = controllers[0].view["drones"]["name"].copy()
    scribbles, chance = Scribbles(name, 2, random.Random(4)), random.Random(5)

    def fly(anew):
        for controller in controllers:
            if anew:
                controller.claim()
            controller.post((Level.attitude, HOVER))

    physics.resume().result(T)
    for turn in range(200):
        fly(chance.random() < 0.5)
        scribbles.scribble()
        controllers[0].wake()
        tick = physics.snapshot.tick
        until(lambda tick=tick: physics.snapshot.tick > tick, "ticks")
        if turn % 10 == 0:
            assert physics.pause().result(T).epoch == 0
            assert np.isfinite(physics.snapshot.pos).all()
            physics.resume().result(T)
    physics.state.reset().result(T)
    physics.resume().result(T)
    fly(True)
    levels = controllers[0].view["states"]["drones"]["level"]
    until(lambda: fly(False) or (levels == Level.attitude).all(), "drones that obey")
    until(lambda: fly(False) or controllers[0].view.tobytes()[:constant] == before, "its header")
    physics.pause().result(T)
    assert (controllers[0].view["drones"]["name"] == names).all()
    said = " ".join(record.getMessage() for record in caplog.records)
    assert f"something has written over the shared memory '{name}'" in said
    assert link.status().refused > 0 and "is refused" in said
    for controller in controllers:
        controller.close()


def test_who_writes_without_end_does_not_hang_the_simulator(simulator, name):
    """A count of commands that never rests, so that no copy of them is complete."""
    physics, _ = simulator(rate=500, timeout=0.01)
    controller = PythonController(name, "cf0")
    code = (
        "import mmap, os, sys, numpy as np; from crazyflow_ros.lockstep import layout\n"
        "memory = mmap.mmap(os.open(sys.argv[1], os.O_RDWR), 0)\n"
        "slots = np.frombuffer(memory, layout.segment(1)).reshape(())['slots']\n"
        "print('writes', flush=True)\n"
        "count = slots['count']\n"
        "while True: count += 1\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(FOLDER / f"crazyflow_ros.{name}")],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    ) as writer:
        try:
            assert writer.stdout.readline() == b"writes\n"
            physics.resume().result(T)
            tick = physics.snapshot.tick
            until(lambda: physics.snapshot.tick > tick + 20, "time to run on")
            physics.pause().result(T)
        finally:
            writer.kill()
    controller.close()


def test_a_late_controller_is_reported_once_and_time_runs_on(simulator, name, caplog):
    caplog.set_level(logging.INFO)
    physics, link = simulator(rate=100, timeout=0.05)
    controller = PythonController(name, "cf0")
    physics.resume().result(T)
    until(lambda: physics.snapshot.tick > 50, "time to run on")
    missed = link.status().timeouts
    assert missed > 5
    while link.status().cycles == 0:
        controller.post((Level.attitude, HOVER))
    physics.pause().result(T)
    messages = [r.getMessage() for r in caplog.records]
    assert sum("no command within 0.05 s for cf0" in m for m in messages) >= 1
    assert sum("in time again" in m for m in messages) >= 1
    late = sum("no command within" in m for m in messages)
    assert late - sum("in time again" in m for m in messages) in (0, 1)
    controller.close()


def test_no_timeout_is_counted_while_time_stands_still(simulator, name):
    physics, link = simulator(rate=500, timeout=0.05)
    controller = PythonController(name, "cf0")
    assert controller.view["header"]["paused"] == 1
    time.sleep(0.2)  # four timeouts
    assert link.status().timeouts == 0
    controller.post((Level.attitude, HOVER))
    physics.step(1).result(T)
    assert link.status().timeouts == 0 and physics.snapshot.tick == 2
    assert controller.drones["level"][0] == Level.attitude
    controller.close()


def test_a_pause_and_a_reset_get_through_while_a_command_is_awaited(simulator, name):
    physics, link = simulator(rate=500)
    controller = PythonController(name, "cf0")
    physics.resume().result(T)
    assert physics.pause().result(T).tick == 1
    assert physics.resume().result(T).tick == 1
    assert physics.state.reset().result(T).epoch == 1
    until(lambda: controller.stamp == (1, 1), "the state after the reset")
    # An answer to the state before the reset lets time run, but the drone is held.
    controller.post((Level.attitude, HOVER), stamp=(1, 0))
    until(lambda: controller.stamp == (2, 1), "the next tick")
    assert controller.drones["level"][0] == Level.held
    controller.post((Level.attitude, HOVER))
    until(lambda: controller.stamp == (3, 1), "the next tick")
    assert controller.drones["level"][0] == Level.attitude
    assert link.status().timeouts == 0
    physics.pause().result(T)
    controller.close()


@pytest.mark.parametrize("on_loss", THEN)
@pytest.mark.parametrize("how", ["idle", "deactivated", "killed"])
def test_what_a_drone_does_without_its_controller(simulator, name, on_loss, how, caplog):
    caplog.set_level(logging.INFO)
    physics, link = simulator(rate=500, lock_step=False, on_loss=on_loss)
    controller = PythonController(name, "cf0")
    controller.post((Level.attitude, (0.0, 0.0, 0.0, 1.2 * WEIGHT)))
    physics.step(100).result(T)
    if how == "idle":
        controller.post((Level.held, NAN))
    else:
        controller.close(properly=how == "deactivated")
        until(lambda: physics.step(1).result(T) and not link.status().attached, "its end")
    before = physics.step(1).result(T)
    after = physics.step(200).result(T)
    if on_loss == "hold":
        np.testing.assert_array_equal(before.pos, after.pos)
    elif on_loss == "keep":
        assert after.pos[0, 2] > before.pos[0, 2] + 0.02
    else:
        assert (after.rotor_vel < before.rotor_vel).all()
    process = f"its controller manager, process {os.getpid()},"
    end = {
        "idle": "no controller commands it",
        "deactivated": f"{process} has disconnected",
        "killed": f"{process} died",
    }[how]
    connected, commanded, ended = (
        record.getMessage() for record in caplog.records if "control" in record.getMessage()
    )
    assert connected == "cf0: its controller manager has connected"
    assert commanded == "cf0: its controllers command its attitude and thrust"
    assert ended == f"cf0: {end}; {THEN[on_loss]}"
    if how == "idle":
        controller.close()


@pytest.mark.parametrize(
    ("level", "numbers"),
    [
        (Level.attitude, "roll 0.5 rad, pitch -0.25 rad, yaw 0 rad, thrust 2000 N"),
        (Level.body_rate, "roll_rate 0.5 rad/s, pitch_rate -0.25 rad/s, yaw_rate 0 rad/s, thrust"),
        (Level.acceleration, "x 0.5 m/s^2, y -0.25 m/s^2, z 0 m/s^2, yaw 2000 rad"),
    ],
)
def test_a_refused_command_is_told_by_the_names_of_its_numbers(level, numbers):
    """Controllers send them in an order of their own."""
    what, _ = commands.refusal(level, np.array((0.5, -0.25, 0.0, 2000.0)))
    assert what.startswith(f"command {numbers}")


def test_running_free_nobody_is_waited_for_and_the_latest_command_holds(simulator, name):
    physics, link = simulator(rate=100, lock_step=False)
    controller = PythonController(name, "cf0")
    physics.step(1000).result(T)
    assert controller.drones["level"][0] == Level.held
    controller.post((Level.body_rate, HOVER), stamp=(5, 0))
    physics.step(1000).result(T)
    assert controller.drones["level"][0] == Level.body_rate
    assert link.status().timeouts == 0
    controller.close()


def test_ranges_are_measured_at_their_own_rate_and_after_a_change_by_hand(simulator, name):
    air = {"initial_poses": [[0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]]}
    physics, _ = simulator(lock_step=False, range_rate=50, config=air)
    controller = PythonController(name, "cf0")
    controller.post((Level.rotor_velocity, (0.0,) * 4), stamp=(0, 0))  # it falls
    seen = {}
    for _ in range(25):
        snapshot = physics.step(1).result(T)
        seen[snapshot.tick] = (controller.drones["range"][0], snapshot.pos[0, 2])
    below = physics.mirror.copy_physics_model().site("range:cf0").pos[2]
    for tick, (distance, _) in seen.items():
        if tick // 10 * 10 in seen:
            assert distance == pytest.approx(seen[tick // 10 * 10][1] + below, abs=1e-6), tick
    assert len({distance for distance, _ in seen.values()}) == 3
    moved = {"cf0": DroneState(pos=(0.0, 0.0, 2.0))}
    assert physics.state.set_drone_states(moved).result(T).tick == max(seen)
    assert controller.drones["range"][0] == pytest.approx(2.0 + below, abs=1e-6)
    controller.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"memory": "a/b"}, "ros2_control.shared_memory: expected 1 to 200 letters"),
        ({"rate": 300}, "ros2_control.rate must divide"),
        ({"range_rate": 300}, "publish_rates.range must divide"),
        ({"drones": ("d" * 60,)}, "at most 59 bytes"),
        ({"on_loss": "panic"}, "panic"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused(simulator, arguments, message):
    with pytest.raises(ValueError, match=message):
        simulator(**arguments)
