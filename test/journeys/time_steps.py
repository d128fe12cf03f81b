"""Steps in time: pause, exact steps, speed, parameters, ends and starts of simulators."""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from mujoco_ros2_control_msgs.srv import SetPause
from mujoco_ros2_control_msgs.srv import StepSimulation as StepMujoco
from rcl_interfaces.srv import DescribeParameters
from rclpy.action import ActionClient
from ros_client import FREQ
from simulation_interfaces.action import SimulateSteps
from simulation_interfaces.msg import SimulationState
from simulation_interfaces.srv import SetSimulationState, StepSimulation
from std_srvs.srv import SetBool, Trigger

from journeys.lives import Life
from journeys.model import Model
from journeys.sides import Check
from journeys.step import Broken, Step

if TYPE_CHECKING:
    from journeys.walk import Walk

MUJOCO = "mujoco_ros2_control_node"
PLAYING, PAUSED = SimulationState.STATE_PLAYING, SimulationState.STATE_PAUSED


@dataclass(frozen=True)
class Begin(Step):
    """End the simulator, if there is one, and start another."""

    life: Life
    ends: str = "SIGTERM"
    """Signal by which the one before ends; `quit`: by a service."""
    weight: ClassVar[float] = 0.7

    def __post_init__(self) -> None:
        if isinstance(self.life, dict):  # of a file
            values = {k: tuple(v) if isinstance(v, list) else v for k, v in self.life.items()}
            object.__setattr__(self, "life", Life(**values))

    @classmethod
    def draw(cls, model: Model, rng: random.Random) -> Self:
        ends = rng.choice(("SIGTERM", "SIGINT", "SIGKILL", "quit"))
        return cls(Life.draw(rng), ends)

    def take(self, walk: Walk) -> None:
        if walk.node is not None:
            walk.end(self.ends)
        walk.begin(self.life)


@dataclass(frozen=True)
class Pass(Step):
    """Let time go on."""

    seconds: float
    weight: ClassVar[float] = 4.0

    @classmethod
    def draw(cls, model: Model, rng: random.Random) -> Self:
        return cls(rng.choice((0.1, 0.5, 1.0) if model.factor <= 1.0 else (0.5, 2.0, 9.0)))

    def fits(self, walk: Walk) -> bool:
        return walk.model.moves

    def take(self, walk: Walk) -> None:
        walk.pass_time(self.seconds)


@dataclass(frozen=True)
class Switch(Step):
    """Pause or resume."""

    playing: bool
    by: str
    weight: ClassVar[float] = 4.0

    @classmethod
    def draw(cls, model: Model, rng: random.Random) -> Self:
        # Paused simulators are soon resumed: most steps need time.
        return cls(not model.playing or rng.random() < 0.1, rng.choice(("own", "state", "mujoco")))

    def fits(self, walk: Walk) -> bool:
        return bool(walk.model.world)

    def take(self, walk: Walk) -> None:
        same = self.playing == walk.model.playing
        if self.by == "own":
            walk.ask(SetBool, "crazyflow/pause", data=not self.playing)
        elif self.by == "mujoco":
            walk.ask(SetPause, f"{MUJOCO}/set_pause", paused=not self.playing)
        else:
            state = SimulationState(state=PLAYING if self.playing else PAUSED)
            fails = None if same else ""
            walk.ask(SetSimulationState, "crazyflow/set_simulation_state", fails, state=state)
        walk.model.playing = self.playing


@dataclass(frozen=True)
class Advance(Step):
    """Advance a paused simulation by ticks, and by no more."""

    ticks: int
    by: str
    weight: ClassVar[float] = 6.0

    @classmethod
    def draw(cls, model: Model, rng: random.Random) -> Self:
        ticks = rng.choice((1, 2, 7, rng.randint(1, 100), rng.randint(100, 1000)))
        return cls(ticks, rng.choice(("own", "standard", "mujoco", "action")))

    def fits(self, walk: Walk) -> bool:
        return bool(walk.model.world) and not walk.model.playing

    def take(self, walk: Walk) -> None:
        before = walk.time_ns()
        if self.by == "own":
            walk.set("step_ticks", self.ticks)
            walk.ask(Trigger, "crazyflow/step")
        elif self.by == "standard":
            walk.ask(StepSimulation, "crazyflow/step_simulation", steps=self.ticks)
        elif self.by == "mujoco":
            walk.ask(StepMujoco, f"{MUJOCO}/step_simulation", steps=self.ticks)
        else:
            goal = Goal(walk, self.ticks)
            if goal.ended(walk) != 1:
                raise Broken("an action fails", str(self))
        passed = walk.time_ns() - before
        if passed != self.ticks * 1_000_000_000 // FREQ:
            raise Broken("a step is not exact", f"{self} took {passed} ns from {before}")
        walk.model.pass_time(self.ticks / FREQ)


@dataclass(frozen=True)
class Cancel(Step):
    """Cancel steps while they are taken; time then stands still."""

    ticks: int
    weight: ClassVar[float] = 2.0

    @classmethod
    def draw(cls, model: Model, rng: random.Random) -> Self:
        return cls(rng.randint(1000, 5000))

    def fits(self, walk: Walk) -> bool:
        return bool(walk.model.world) and not walk.model.playing

    def take(self, walk: Walk) -> None:
        before = walk.time_ns()
        goal = Goal(walk, self.ticks)
        goal.handle.cancel_goal_async()
        goal.ended(walk)
        after = walk.time_ns()
        if walk.time_ns() != after:
            raise Broken("time goes on after steps were cancelled")
        if after > before:  # it may be cancelled before its first step, which takes messages
            walk.model.pass_time(0.0)


class Goal:
    """Steps by the action, which has accepted them."""

    def __init__(self, walk: Walk, ticks: int) -> None:
        if walk.steps is None:
            walk.steps = ActionClient(walk.client.node, SimulateSteps, "crazyflow/simulate_steps")
        walk.until(walk.steps.server_is_ready, "there is no action")
        answer = walk.steps.send_goal_async(SimulateSteps.Goal(steps=ticks))
        walk.until(answer.done, "a goal is not answered")
        self.handle = answer.result()
        if not self.handle.accepted:
            raise Broken("a goal is rejected")

    def ended(self, walk: Walk) -> int:
        """Result of the action."""
        result = self.handle.get_result_async()
        walk.until(result.done, "an action does not end")
        return int(result.result().result.result.result)


@dataclass(frozen=True)
class Speed(Step):
    """Change the real-time factor."""

    factor: float
    weight: ClassVar[float] = 1.0

    @classmethod
    def draw(cls, model: Model, rng: random.Random) -> Self:
        return cls(rng.choice((0.0, 1.0, 5.0, 20.0, 0.5)))

    def take(self, walk: Walk) -> None:
        walk.set("real_time_factor", self.factor)
        walk.model.factor = self.factor


@dataclass(frozen=True)
class Hide(Step):
    """Drones have no topics and services of their own for a moment."""

    def fits(self, walk: Walk) -> bool:
        return walk.life.variant != "swarm"

    def take(self, walk: Walk) -> None:
        walk.look_away()
        topics = [f"{drone}/cmd_pose" for drone in walk.model.pilotable]
        for value, has in (("none", False), ("each", True)):
            walk.set("interfaces", value)
            walk.until(
                lambda has=has: all(walk.is_heard(topic) is has for topic in topics),
                f"topics do not change with interfaces:={value}",
            )


@dataclass(frozen=True)
class Rest(Step):
    """All that came is gone: what the simulator uses has not grown."""

    weight: ClassVar[float] = 2.0

    def fits(self, walk: Walk) -> bool:
        return bool(walk.model.world)

    def take(self, walk: Walk) -> None:
        walk.rest()


@dataclass(frozen=True)
class ReplaySoFar(Step):
    """What has been recorded so far replays to the bit, while the simulator goes on."""

    weight: ClassVar[float] = 0.3

    def fits(self, walk: Walk) -> bool:
        return walk.life.records and not walk.life.by_door

    def take(self, walk: Walk) -> None:
        walk.until(lambda: walk.recording.stat().st_size, "what is written once a second")
        copy = walk.folder / f"so_far{len(walk.taken)}.mcap"
        shutil.copy(walk.recording, copy)
        words = ["-m", "crazyflow_ros", "replay", str(copy)]
        walk.sides.add("replay", Check(walk.domain, words))


@dataclass(frozen=True)
class Describe(Step):
    """Read what all parameters mean."""

    def take(self, walk: Walk) -> None:
        names = walk.client.parameter_names()
        answer = walk.ask(DescribeParameters, "crazyflow/describe_parameters", names=names)
        if not all(one.description for one in answer.descriptors if one.name != "use_sim_time"):
            raise Broken("a parameter has no description")
