"""The memory that a simulator shares with controllers, written over: part of `make hostile`."""

from __future__ import annotations

import os
import random
from collections import Counter

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from nav_msgs.msg import Odometry
from python_controller import PythonController
from ros_client import Client, SimulatorProcess, numbers
from std_srvs.srv import Trigger

from crazyflow_ros.drones.rotors import MOST
from crazyflow_ros.lockstep import layout
from crazyflow_ros.lockstep.shared_memory import FOLDER
from crazyflow_ros.runtime import Level

DRONES = ("cf0", "cf1")
HOVER = (0.0, 0.0, 0.0, 0.3)
TURN = 10  # inputs between two looks at the simulator
SETTLE = 200.0  # s after which its drones obey again
_LEVELS = (0, 1, 2, 3, 4, 5, 6, 2**32, 2**63, 2**64 - 1)
_SPECIAL = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1e308, 5e-324, 1e38, -1e5, 1e5])


class Scribbles:
    """Writes where it should not.

    Args:
        name: Name of the memory.
        n_drones: How many drones it has.
        rng: Random numbers.
    """

    def __init__(self, name: str, n_drones: int, rng: random.Random) -> None:
        self._bytes = np.memmap(FOLDER / f"crazyflow_ros.{name}", np.uint8, "r+")
        self._view = np.frombuffer(self._bytes, layout.segment(n_drones)).reshape(())
        self._rng = rng

    def scribble(self) -> None:
        """Write anything anywhere."""
        rng, memory = self._rng, self._bytes
        begin, length = rng.randrange(memory.size), rng.choice((1, 4, 8, 64, 512, memory.size))
        place = memory[begin : begin + length]
        match rng.randrange(6):
            case 0:
                place[:] = np.frombuffer(rng.randbytes(place.size), np.uint8)
            case 1:
                place[:] = rng.choice((0, 1, 255))
            case 2:
                other = rng.randrange(memory.size - place.size + 1)
                place[:] = memory[other : other + place.size].copy()
            case 3:  # numbers, where numbers are
                words = memory[: memory.size // 8 * 8].view(np.float64)[begin // 8 :][:length]
                words[:] = [rng.choice(_SPECIAL) for _ in words]
            case 4:
                for _ in range(rng.randrange(1, 20)):
                    memory[rng.randrange(memory.size)] ^= 1 << rng.randrange(8)
            case 5:  # a command that nobody should send, and that seems to come from its controller
                slot, stamps = rng.choice(list(self._view["slots"])), self._view["states"]["stamp"]
                for command in slot["buffers"]:
                    command["tick"], command["session"] = stamps["tick"].max(), slot["session"]
                    command["epoch"] = stamps["epoch"].max()
                    command["level"] = rng.choice(_LEVELS)
                    command["values"] = [rng.choice(_SPECIAL) for _ in range(MOST)]
                slot["count"] += 1


def scribble_over(n: int, rng: random.Random, domain: int) -> Counter[str]:
    """Write over the memory of a simulator in lock-step while controllers fly its drones.

    It neither ends nor hangs, its drones stay where numbers are finite, it says what is wrong, and
    its drones obey as soon as their controllers write again.

    Args:
        n: How often.
        rng: Random numbers.
        domain: ROS domain.

    Returns:
        How many there were, and how many commands were refused.
    """
    name = f"hostile.{os.getpid()}"
    parameters = [f"drones:=[{','.join(DRONES)}]", "real_time_factor:=0.0"]
    parameters += ["ros2_control.mode:=lock_step", f"ros2_control.shared_memory:={name}"]
    parameters.append("ros2_control.timeout:=0.02")
    words = [word for parameter in parameters for word in ("-p", parameter)]
    counts: Counter[str] = Counter()
    with SimulatorProcess(domain, words) as simulator:
        client, controllers = Client(domain), [PythonController(name, drone) for drone in DRONES]
        try:
            odometry = [client.collect(Odometry, f"{drone}/odom") for drone in DRONES]
            scribbles = Scribbles(name, len(DRONES), rng)
            for i in range(n):
                for controller in controllers:
                    _fly(controller, anew=rng.random() < 0.5)
                scribbles.scribble()
                controllers[0].wake()
                counts["tried"] += 1
                client.spin_for(0.002)
                if i % TURN == 0:
                    _look(client, odometry)
            counts["refused"] = _refused(client)
            client.until(lambda: _obeys(client, controllers), "drones that obey again", SETTLE)
        finally:
            for controller in controllers:
                controller.close()
            client.close()
        assert simulator.end()[0] == 0
        assert "Traceback" not in simulator.log, simulator.log
        for said in ("is refused: ", "something has written over the shared memory"):
            assert said in simulator.log, simulator.log
    return counts


def _fly(controller: PythonController, *, anew: bool) -> None:
    """Command to hover; and, as after a start, say that it is there."""
    if anew:
        controller.claim()
    controller.post((Level.attitude, HOVER))


def _look(client: Client, odometry: list[list[Odometry]]) -> None:
    """See that time can be stopped and goes on, and that all numbers are finite."""
    tick = client.pause(True)
    assert client.advance(3) == tick + 3
    client.pause(False)
    for messages in odometry:
        for message in messages:
            pose = message.pose.pose
            assert np.isfinite([*numbers(pose.position), *numbers(pose.orientation)]).all()
        messages.clear()


def _refused(client: Client) -> int:
    """How many commands were refused, as the status says."""
    status = client.latest(DiagnosticArray, "crazyflow/status").status[0]
    return int(next(v.value for v in status.values if v.key == "refused_commands"))


def _obeys(client: Client, controllers: list[PythonController]) -> np.bool:
    """Whether all drones obey again, after a reset."""
    assert client.call(Trigger, "crazyflow/reset").success
    for i in range(100):
        for controller in controllers:
            _fly(controller, anew=i == 0)
        client.spin_for(0.005)
    return (controllers[0].drones["level"] == Level.attitude).all()
