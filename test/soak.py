"""A simulator under random commands, steps, resets and drones that come and go: `make soak`.

    make soak ARGS="--minutes 2 --seed 7"

It runs as fast as it can, beside a subscriber that is too slow. The memory must not grow, time must
never go back, no tick may be missed, steps must be exact, and nothing may fail.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import random
import sys
import time
from collections.abc import Callable
from multiprocessing.synchronize import Event
from tempfile import TemporaryDirectory
from typing import Any

from geometry_msgs.msg import Point, Pose, PoseStamped, TwistStamped, WrenchStamped
from nav_msgs.msg import Odometry
from ros_client import Client, SimulatorProcess, own_domain, stamp_ns, time_ns
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState
from simulation_interfaces.msg import Resource, Result
from simulation_interfaces.srv import DeleteEntity, GetEntities, ResetSimulation, SpawnEntity
from std_srvs.srv import Trigger

DOMAIN = own_domain("soak")
DRONES = ("cf0", "cf1", "cf2", "cf3")
MOST_DRONES = 6
COMMANDS = (("cmd_pose", PoseStamped), ("cmd_vel", TwistStamped), ("wrench", WrenchStamped))
MOST_GROWTH = 20.0  # MB
WARM_UP = 0.25  # of the time, at most 2 minutes: queues and caches fill
RATE = 100  # Hz, of the topics
# In the simulator, as no client could hear all that it says at this speed.
CHECK_TICKS = f"""
from crazyflow_ros.runtime import PhysicsThread

start = PhysicsThread.start

def start_checked(physics):
    period, before = physics.freq // {RATE}, 0

    def check(snapshot):
        nonlocal before
        if not 0 <= snapshot.tick // period - before // period <= 1:
            raise RuntimeError(f"tick {{before}} was followed by {{snapshot.tick}}")
        before = snapshot.tick

    physics.every({RATE}, check, "check of ticks")
    start(physics)

PhysicsThread.start = start_checked
"""


def main() -> None:
    """Run until the time is over or something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    parameters = [
        f"drones:=[{','.join(DRONES)}]",
        f"max_drones:={MOST_DRONES}",
        "real_time_factor:=0.0",
    ]
    words = [word for parameter in parameters for word in ("-p", parameter)]
    context = multiprocessing.get_context("spawn")
    ended = context.Event()
    with (
        TemporaryDirectory() as cache,
        SimulatorProcess(DOMAIN, words, CHECK_TICKS, cache) as simulator,
    ):
        slow = context.Process(target=listen_slowly, args=(DOMAIN, ended), daemon=True)
        slow.start()
        soak = Soak(simulator, random.Random(arguments.seed))
        try:
            soak.run(60 * arguments.minutes)
        finally:
            ended.set()
            slow.join(10.0)
            soak.client.close()
        code, _ = simulator.end()
        bad = [line for line in simulator.log.splitlines() if is_bad(line)]
    print(f"exit code {code}, {len(bad)} errors in the log", *bad[:20], sep="\n")
    sys.exit(bool(code or bad))


def is_bad(line: str) -> bool:
    """A line of the log that tells of a failure."""
    return any(word in line for word in ("Traceback", "[ERROR]", "[FATAL]", "Exception"))


def listen_slowly(domain: int, ended: Event) -> None:
    """Subscribe to all topics of two drones, and take five messages a second."""
    client = Client(domain)
    for drone in DRONES[:2]:
        for kind, name in ((Odometry, "odom"), (PoseStamped, "pose"), (JointState, "joint_states")):
            client.collect(kind, f"{drone}/{name}", 1)
    while not ended.wait(0.2):
        client.spin_for(0.001)
    client.close()


class Soak:
    """What is done to the simulator, one thing after the other."""

    def __init__(self, simulator: SimulatorProcess, rng: random.Random) -> None:
        self.client = Client(DOMAIN)
        self._simulator, self._rng = simulator, rng
        self._clock = self.client.collect(Clock, "/clock")
        self._imu = self.client.collect(Imu, "cf0/imu")
        self._drones, self._guests = list(DRONES), itertools.count()
        self._latest_ns, self._counts = 0, dict[str, int]()

    def run(self, seconds: float) -> None:
        """Do random things, look at time and memory."""
        actions: list[tuple[int, Callable[[], None]]] = [
            (60, self._command),
            (5, self._reset_one),
            (3, self._reset_all),
            (3, self._step),
            (3, self._spawn),
            (3, self._delete),
            (1, self._reset_spawned),
            (2, self._change_speed),
        ]
        weights = [weight for weight, _ in actions]
        began, first, told = time.monotonic(), 0.0, 0.0
        while (elapsed := time.monotonic() - began) < seconds:
            (_, action), *_ = self._rng.choices(actions, weights)
            action()
            name = action.__name__.strip("_")
            self._counts[name] = self._counts.get(name, 0) + 1
            self._check_time()
            if not first and elapsed > min(WARM_UP * seconds, 120.0):
                first = self._simulator.memory
            if elapsed > told + 10:
                told = elapsed
                simulated, growth = (
                    self._latest_ns * 1e-9,
                    self._simulator.memory - first if first else 0.0,
                )
                print(
                    f"{elapsed:5.0f} s, simulated {simulated:.0f} s, {growth:+.1f} MB", flush=True
                )
        growth = self._simulator.memory - first
        print(f"memory {growth:+.1f} MB; done:", self._counts)
        assert growth < MOST_GROWTH, f"memory grew by {growth:.1f} MB"

    def _check_time(self) -> None:
        self.client.spin_for(0.01)
        for message in self._clock:
            now = time_ns(message.clock)
            assert now >= self._latest_ns, f"time went back: {self._latest_ns} to {now} ns"
            self._latest_ns = now
        self._clock.clear()
        self._imu.clear()

    def _command(self) -> None:
        name, kind = self._rng.choice(COMMANDS)
        publisher = self.client.publisher(kind, f"{self._rng.choice(self._drones)}/{name}")
        publisher.publish(getattr(self, f"_random_{name}")())

    def _random_cmd_pose(self) -> PoseStamped:
        message, rng = PoseStamped(), self._rng
        position = message.pose.position
        position.x, position.y, position.z = (rng.uniform(-3, 3) for _ in range(3))
        message.pose.orientation.w = rng.choice([1.0, 1.0, 1.0, 0.0, float("nan")])
        return message

    def _random_cmd_vel(self) -> TwistStamped:
        message, rng = TwistStamped(), self._rng
        linear = message.twist.linear
        linear.x, linear.y, linear.z = (rng.uniform(-1, 1) for _ in range(3))
        message.twist.angular.z = rng.uniform(-1, 1)
        return message

    def _random_wrench(self) -> WrenchStamped:
        message, rng = WrenchStamped(), self._rng
        force = message.wrench.force
        force.x, force.y, force.z = (rng.uniform(-0.05, 0.05) for _ in range(3))
        return message

    def _reset_one(self) -> None:
        assert self.client.call(Trigger, f"{self._rng.choice(self._drones)}/reset").success

    def _reset_all(self) -> None:
        self.client.reset()

    def _spawn(self) -> None:
        """A drone of a new name, in the air; in a full house it would be compiled for more."""
        if len(self._drones) == MOST_DRONES:
            return
        name, rng = f"guest{next(self._guests)}", self._rng
        pose = PoseStamped(pose=Pose(position=Point(x=rng.uniform(-3, 3), y=4.0, z=1.0)))
        self._ask(
            SpawnEntity,
            "spawn_entity",
            name=name,
            entity_resource=Resource(uri="cf2x_L250"),
            initial_pose=pose,
        )
        self._drones.append(name)

    def _delete(self) -> None:
        if len(self._drones) > 1:
            name = self._rng.choice(self._drones)
            self._ask(DeleteEntity, "delete_entity", entity=name)
            self._drones.remove(name)
            self.client.forget(f"{name}/")

    def _reset_spawned(self) -> None:
        """Guests go, and those of the start come back."""
        scope = ResetSimulation.Request.SCOPE_SPAWNED | ResetSimulation.Request.SCOPE_STATE
        self._ask(ResetSimulation, "reset_simulation", scope=scope)
        for name in set(self._drones).difference(DRONES):
            self.client.forget(f"{name}/")
        self._drones = list(DRONES)
        assert self._ask(GetEntities, "get_entities").entities == self._drones

    def _ask(self, kind: Any, name: str, /, **request: Any) -> Any:
        response = self.client.call(kind, f"crazyflow/{name}", **request)
        assert response.result.result == Result.RESULT_OK, f"{name}: {response.result}"
        return response

    def _step(self) -> None:
        ticks = self._rng.randint(1, 200)
        begin = self.client.pause(True)
        end = self.client.advance(ticks)
        assert end == begin + ticks, f"{ticks} ticks led from {begin} to {end}"
        self.client.until(
            lambda: self._clock and time_ns(self._clock[-1].clock) == stamp_ns(end),
            f"time of tick {end}",
        )
        self.client.pause(False)

    def _change_speed(self) -> None:
        factor = self._rng.choice([0.0, 0.0, 1.0, 20.0])
        assert self.client.set_parameter("real_time_factor", factor).successful


if __name__ == "__main__":
    main()
