"""The tasks of the environments, ready for training: observations, actions, costs and sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jax.sharding import Mesh

from crazyflow_ros.drones import DEFAULT_DRONE, AnyDrone, resolve
from crazyflow_ros.dynamics import first_principles
from crazyflow_ros.envs.carry import Carry
from crazyflow_ros.envs.environment import Environment
from crazyflow_ros.envs.eyes import EyeErrors
from crazyflow_ros.envs.gates import Race
from crazyflow_ros.envs.recovery import Recovery
from crazyflow_ros.envs.task import Task
from crazyflow_ros.envs.tasks import FigureEight, Landing, Reach, Velocity
from crazyflow_ros.learn.batch import Batch, Spread
from crazyflow_ros.learn.bptt import Bptt, BpttSettings
from crazyflow_ros.learn.costs import Approach, Carriage, Cost, Descent, Passage
from crazyflow_ros.learn.learner import Learner
from crazyflow_ros.learn.perception import Perception, PerceptionSettings
from crazyflow_ros.learn.ppo import Ppo, PpoSettings
from crazyflow_ros.learn.quick import FASTEST, QuickHover
from crazyflow_ros.policy.eye import Eye
from crazyflow_ros.policy.policy import Policy
from crazyflow_ros.sim.randomize import ResetStage, randomize_payload

MOTION = ("rotation", "body_rates", "previous_action")
APPROACHING = ("body_position_error", "body_velocity_error", *MOTION)
MOVING = ("body_velocity_error", *MOTION)
FOLLOWING = (*APPROACHING, "body_goal_velocity", "body_goal_acceleration")
PASSING = ("body_position_error", "body_velocity", "body_goal_velocity", *MOTION)
"""Parts of observations. With the previous action a policy can correct a steady error."""

FEELING = ("body_velocity", *MOTION)
"""What a drone with a flow deck senses, without a goal; without the deck, it senses `MOTION`."""

SPREAD = {
    "rpm2thrust": (0.87, 1.5),
    "J": (0.8, 1.2),
    "rpm2torque": (0.7, 6.0),  # the figure in which models differ most
    "rotor_dyn_coef": (0.8, 2.5),
}
"""How much drones differ in training, so that the policy also flies other drones."""

_ERRORS = EyeErrors(shift=0.01, turn=0.07, noise=0.06)
"""How much cameras differ in training."""

_FAR = 20.0  # m, above the floor


@dataclass(frozen=True)
class Ready:
    """A task with the settings for its training."""

    task: Callable[..., Task]
    """Builds the task from a drone and fields of the task."""
    parts: tuple[str, ...] = APPROACHING
    """Parts of the observation."""
    cost: Cost = field(default_factory=Approach)
    spread: Spread = field(default_factory=lambda: SPREAD)
    bptt: Mapping[str, Any] = field(default_factory=dict)
    """Settings other than the defaults."""
    perception: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the task that differ in training."""
    randomizers: tuple[ResetStage, ...] = ()
    """What differs between the episodes of the training."""
    eye: Eye | None = None
    """Camera whose pictures are observed."""
    teacher: Ready | None = None
    """Training of the teacher, which is told what the pictures show."""
    quick: bool = False
    """Whether it is trained with `QuickHover`."""

    def batch(
        self, num_envs: int, task: Task, drone: AnyDrone, mesh: Mesh | None = None
    ) -> Environment | Batch:
        """Return the drones that learn the task, on the devices of a mesh if there is one."""
        if self.quick:
            return QuickHover(num_envs, self.parts, drone, cost=self.cost, mesh=mesh)
        return self.environment(num_envs, task, drone, mesh=mesh)

    def learner(
        self,
        algorithm: str,
        task: Task,
        drone: AnyDrone,
        mesh: Mesh | None = None,
        teacher: Policy | None = None,
        **given: Any,
    ) -> Learner:
        """Return a learner of the task.

        Args:
            algorithm: "bptt", "ppo" or "perception".
            task: The task.
            drone: The drone.
            mesh: Devices among which the drones are divided.
            teacher: The teacher, for perception.
            **given: Settings of the algorithm, and `worlds`, in place of those for this task.

        Raises:
            ValueError: A setting is out of range, perception has no teacher, or another algorithm
                has one.
        """
        if (algorithm == "perception") != (teacher is not None):
            raise ValueError(f"perception needs a teacher, others have none, got {algorithm}")
        own = {
            "bptt": self.bptt,
            "ppo": {"worst": 10.0},
            "perception": self.perception,
        }[algorithm]
        settings = {"spread": self.spread, "fastest": FASTEST, **own, **given}
        worlds = settings.pop("worlds", 512 if algorithm == "ppo" else 96)
        if teacher is not None:
            env = self.environment(worlds, task, drone, mesh=mesh)
            return Perception(env, teacher, PerceptionSettings(**settings))
        batch = self.batch(worlds, task, drone, mesh)
        if algorithm == "bptt":
            return Bptt(batch, BpttSettings(**settings), self.cost)
        return Ppo(batch, PpoSettings(**settings), self.cost)

    def environment(
        self, num_envs: int, task: Task, drone: AnyDrone, **options: Any
    ) -> Environment:
        """Return the environment of the training.

        Actions are rotor speeds. There are only two ticks per action, so that training is fast.
        """
        given: dict[str, Any] = {
            "freq": 100,
            "action_freq": 50,
            "action": "rotor_vel",
            "observation": self.parts,
            "eye": self.eye,
            "randomizers": self.randomizers,
        }
        if self.eye is not None:
            given["eye_errors"] = _ERRORS
        return Environment(num_envs, task, drone=drone, **given | options)


def _hover(drone: AnyDrone = DEFAULT_DRONE, **fields: Any) -> Recovery:
    limits = first_principles.Params.create(resolve(drone)).rotor_vel_limits.tolist()
    given: dict[str, Any] = {
        "point": (0.0, 0.0, _FAR),
        "spread": (1.0, 1.0, 1.0),
        "rate": 4.0,
        "rotor_vel": tuple(limits),
        "tolerance": 0.05,
        "limit": 15.0,
    }
    return Recovery(**given | fields)


def _plain(kind: type[Any], **changes: Any) -> Callable[..., Task]:
    def make(drone: AnyDrone = DEFAULT_DRONE, **fields: Any) -> Task:
        del drone
        return kind(**changes | fields)

    return make


_SEEN = _plain(Recovery, point=(0.0, 0.0, 4.0), tolerance=0.25, scene="room")
"""A recovery above the room, whose walls the drone sees."""

_RACING = {"episode": 20, "learning_rate": 0.006, "scales": {"body_position_error": 3.0}}
_ANYWHERE = {
    "anywhere": True,
    "spread": (0.4, 0.4, 0.25),
    "shift": (0.2, 0.2, 0.2),
    "turn": 0.2,
    "limit": 5.0,  # m, so that episodes of drones that have lost their gates end soon
}
"""Changes of a race in which drones learn to see gates, wherever these are."""

READY: dict[str, Ready] = {
    "hover": Ready(_hover, quick=True),
    # From upside down with standing rotors a drone falls up to 3 m, the height of the task.
    "recovery": Ready(_plain(Recovery, point=(0.0, 0.0, 6.0), tolerance=0.05)),
    # In training, no episode ends at the goal, so that drones learn to stay there.
    "reach": Ready(
        _plain(Reach, tolerance=0.05),
        cost=Approach(rate=3.0, braking=2.0, low=10.0),
        training={"tolerance": 1e-6},
    ),
    "carry": Ready(
        _plain(Carry, tolerance=0.05),
        parts=(*APPROACHING, "body_load_position", "body_load_velocity"),
        cost=Carriage(rate=2.0, braking=2.0, low=10.0),
        training={"tolerance": 1e-6},
        randomizers=(randomize_payload("mass", 0.5), randomize_payload("length", 0.3)),
    ),
    "velocity": Ready(
        _plain(Velocity, tolerance=0.1), parts=MOVING, cost=Approach(rate=0, distance=0, slip=1)
    ),
    "landing": Ready(_plain(Landing, pad=0.1), cost=Descent()),
    "figure_eight": Ready(
        _plain(FigureEight), FOLLOWING, Approach(smooth=0.01), bptt={"updates": 1000, "episode": 12}
    ),
    "race": Ready(_plain(Race), PASSING, Passage(), bptt=_RACING | {"updates": 1600}),
    "race_by_depth": Ready(
        _plain(Race),
        FEELING,
        perception={"updates": 900, "episode": 10},
        training=_ANYWHERE,
        eye=Eye(),
        teacher=Ready(
            _plain(Race),
            (*FEELING, "body_position_error", "body_goal_velocity"),
            Passage(look=0.2),
            bptt=_RACING | {"updates": 800},
        ),
    ),
    "recovery_by_depth": Ready(
        _SEEN,
        MOTION,
        perception={"updates": 1600},
        eye=Eye(fovy=90.0, far=8.0),
        teacher=Ready(_SEEN, (*MOTION, "body_position_error", "body_velocity_error")),
    ),
}
"""By name: `hover` is the recovery from any attitude at any rotor speeds, far above the floor;
`race_by_depth` and `recovery_by_depth` are for drones that see; the others are the classes of
`envs`."""
