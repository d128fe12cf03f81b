"""Steps that fly drones: services, messages, streams, trajectories, swarms."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from builtin_interfaces.msg import Duration
from crazyflie_interfaces.msg import FullState, Hover, Position, VelocityWorld
from crazyflie_interfaces.msg import TrajectoryPolynomialPiece as Piece
from crazyflie_interfaces.srv import (
    GoTo,
    Land,
    NotifySetpointsStop,
    StartTrajectory,
    Takeoff,
    UploadTrajectory,
)
from crazyflow_ros_interfaces.srv import ChangeHeight
from geometry_msgs.msg import Point, PointStamped, Transform, Twist, TwistStamped, Vector3
from sensor_msgs.msg import MultiDOFJointState
from trajectory_msgs.msg import MultiDOFJointTrajectory, MultiDOFJointTrajectoryPoint

from journeys.model import HIGH, LANES, LOW, Drone, Model
from journeys.step import Step, choose
from journeys.world_steps import pose_of

if TYPE_CHECKING:
    from journeys.walk import Walk

REACH = 0.25  # m, from the middle of a lane
Place = tuple[float, float, float]
"""Offset from the middle of a lane, and height [m]."""


def some_place(rng: random.Random) -> Place:
    """A random place in a lane."""
    x, y = (round(rng.uniform(-REACH, REACH), 2) for _ in range(2))
    return x, y, round(rng.uniform(LOW, HIGH), 2)


def at(drone: Drone, place: Place) -> Place:
    """A place of a lane in the map."""
    (x, y), (dx, dy, z) = LANES[drone.lane], place
    return x + dx, y + dy, z


def duration(seconds: float) -> Duration:
    """As a message."""
    return Duration(sec=int(seconds), nanosec=round(seconds % 1 * 1e9))


@dataclass(frozen=True)
class OfOne(Step):
    """What a single drone is told."""

    drone: str

    @classmethod
    def draw(cls, model: Model, rng: random.Random) -> Self | None:
        """One of the drones for which it fits."""
        fit = [name for name in model.pilotable if cls.suits(model.drones[name])]
        name = choose(rng, fit)
        return None if name is None else cls.of(name, rng)

    @classmethod
    def of(cls, drone: str, rng: random.Random) -> Self:
        """For a drone, with random values."""
        return cls(drone)

    @classmethod
    def suits(cls, drone: Drone) -> bool:
        """Whether a drone can do it."""
        return not drone.wild

    def fits(self, walk: Walk) -> bool:
        model = walk.model
        return (
            bool(model.world)
            and self.drone in model.pilotable
            and self.suits(model.drones[self.drone])
        )


@dataclass(frozen=True)
class TakeOff(OfOne):
    """Take off by the service."""

    height: float
    weight: ClassVar[float] = 8.0

    @classmethod
    def of(cls, drone: str, rng: random.Random) -> Self:
        return cls(drone, round(rng.uniform(LOW, HIGH), 2))

    @classmethod
    def suits(cls, drone: Drone) -> bool:
        return drone.stands

    def take(self, walk: Walk) -> None:
        walk.ask(Takeoff, f"{self.drone}/takeoff", height=self.height, duration=duration(1.5))
        walk.model.drones[self.drone].fly()


@dataclass(frozen=True)
class Descend(OfOne):
    """Land by the service."""

    weight: ClassVar[float] = 4.0

    @classmethod
    def suits(cls, drone: Drone) -> bool:
        return drone.hovers

    def take(self, walk: Walk) -> None:
        walk.ask(Land, f"{self.drone}/land", height=0.0, duration=duration(1.5))
        walk.model.drones[self.drone].landing = True


@dataclass(frozen=True)
class Go(OfOne):
    """Go somewhere by the service."""

    place: Place
    seconds: float
    weight: ClassVar[float] = 4.0

    @classmethod
    def of(cls, drone: str, rng: random.Random) -> Self:
        return cls(drone, some_place(rng), rng.choice((0.0, 1.5, 3.0)))

    @classmethod
    def suits(cls, drone: Drone) -> bool:
        return drone.hovers

    def take(self, walk: Walk) -> None:
        x, y, z = at(walk.model.drones[self.drone], self.place)
        walk.ask(
            *(GoTo, f"{self.drone}/go_to"),
            goal=Point(x=x, y=y, z=z),
            yaw=1.0,
            duration=duration(self.seconds),
        )


@dataclass(frozen=True)
class SendPose(OfOne):
    """A pose, a goal of RViz, or a clicked point."""

    topic: str
    place: Place
    weight: ClassVar[float] = 6.0

    @classmethod
    def of(cls, drone: str, rng: random.Random) -> Self:
        topic = rng.choice(("cmd_pose", "cmd_pose", "goal_pose", "clicked_point"))
        return cls(drone, topic, some_place(rng))

    def take(self, walk: Walk) -> None:
        drone = walk.model.drones[self.drone]
        x, y, z = at(drone, self.place)
        message = pose_of(x, y, z)
        if self.topic == "clicked_point":
            message = PointStamped(header=message.header, point=message.pose.position)
        walk.publish(f"{self.drone}/{self.topic}", message)
        drone.fly()
        drone.posted = not walk.model.moves


@dataclass(frozen=True)
class SendVelocity(OfOne):
    """Velocities, for a while."""

    forward: float
    turn: float
    weight: ClassVar[float] = 3.0

    @classmethod
    def of(cls, drone: str, rng: random.Random) -> Self:
        return cls(drone, rng.choice((-0.1, 0.0, 0.1)), round(rng.uniform(-1, 1), 2) or 0.1)

    def take(self, walk: Walk) -> None:
        message = TwistStamped()
        message.twist.linear.x, message.twist.angular.z = self.forward, self.turn
        walk.publish(f"{self.drone}/cmd_vel", *[message] * 5)
        drone = walk.model.drones[self.drone]
        drone.follow_velocity()
        drone.posted = not walk.model.moves


@dataclass(frozen=True)
class Stream(OfOne):
    """Setpoints as a controller streams them, which it may end or not."""

    kind: str
    place: Place
    ends: bool
    weight: ClassVar[float] = 4.0

    @classmethod
    def of(cls, drone: str, rng: random.Random) -> Self:
        kind = rng.choice(("cmd_hover", "cmd_position", "cmd_velocity_world", "cmd_full_state"))
        return cls(drone, kind, some_place(rng), rng.random() < 0.7)

    @classmethod
    def suits(cls, drone: Drone) -> bool:
        return drone.hovers

    def take(self, walk: Walk) -> None:
        drone = walk.model.drones[self.drone]
        walk.publish(f"{self.drone}/{self.kind}", *[self._message(drone)] * 5)
        drone.fly()
        drone.posted = not walk.model.moves
        drone.streamed = True
        # Without another setpoint all but cmd_hover fall after a while, before it is ended or not.
        drone.wild = self.kind != "cmd_hover"
        if self.ends:
            end_stream(walk, self.drone)

    def _message(self, drone: Drone) -> Any:
        x, y, z = at(drone, self.place)
        if self.kind == "cmd_hover":
            return Hover(vx=0.05, yaw_rate=0.5, z_distance=z)
        if self.kind == "cmd_position":
            return Position(x=x, y=y, z=z, yaw=30.0)
        if self.kind == "cmd_velocity_world":
            return VelocityWorld(vel=Vector3(x=0.05), yaw_rate=10.0)
        return FullState(pose=pose_of(x, y, z).pose, twist=Twist())


def end_stream(walk: Walk, name: str) -> None:
    """End a stream of setpoints."""
    walk.ask(NotifySetpointsStop, f"{name}/notify_setpoints_stop")
    walk.model.drones[name].streamed = False


@dataclass(frozen=True)
class EndStream(OfOne):
    """End a stream of setpoints that was left."""

    weight: ClassVar[float] = 3.0

    @classmethod
    def suits(cls, drone: Drone) -> bool:
        return drone.streamed and not drone.posted  # the service would drop what waits

    def take(self, walk: Walk) -> None:
        end_stream(walk, self.drone)


@dataclass(frozen=True)
class Waypoints(OfOne):
    """A trajectory of waypoints, the last one in the air or on the floor."""

    places: tuple[Place, ...]
    lands: bool
    weight: ClassVar[float] = 3.0

    @classmethod
    def of(cls, drone: str, rng: random.Random) -> Self:
        return cls(drone, tuple(some_place(rng) for _ in range(3)), rng.random() < 0.5)

    def take(self, walk: Walk) -> None:
        drone, message = walk.model.drones[self.drone], MultiDOFJointTrajectory()
        places = [*self.places, (*self.places[-1][:2], 0.0)] if self.lands else self.places
        message.header.frame_id, message.joint_names = "map", [self.drone]
        for number, place in enumerate(places, 1):
            x, y, z = at(drone, place)
            goal = Transform(translation=Vector3(x=x, y=y, z=z))
            goal.rotation.w = 1.0
            point = MultiDOFJointTrajectoryPoint(transforms=[goal])
            point.time_from_start = duration(2.0 * number)
            message.points.append(point)
        walk.publish(f"{self.drone}/cmd_trajectory", message)
        drone.fly()
        drone.posted = not walk.model.moves
        drone.landing = self.lands


@dataclass(frozen=True)
class Polynomials(OfOne):
    """Upload a trajectory, and fly it where the drone is."""

    weight: ClassVar[float] = 2.0

    @classmethod
    def suits(cls, drone: Drone) -> bool:
        return drone.hovers

    def take(self, walk: Walk) -> None:
        still = [0.0] * 8
        # There and back again, at rest at both ends: 0.2 t^2 (2 - t)^2.
        there = [0.0, 0.0, 0.8, -0.8, 0.2, 0.0, 0.0, 0.0]
        piece = Piece(
            poly_x=there, poly_y=still, poly_z=still, poly_yaw=still, duration=duration(2.0)
        )
        name = self.drone
        walk.ask(UploadTrajectory, f"{name}/upload_trajectory", trajectory_id=1, pieces=[piece])
        start = {"trajectory_id": 1, "timescale": 1.0, "relative": True}
        walk.ask(StartTrajectory, f"{name}/start_trajectory", **start)


@dataclass(frozen=True)
class Swarm(Step):
    """What all drones are told at once: by services of the swarm or of all, or by a message."""

    what: str
    height: float
    weight: ClassVar[float] = 4.0

    @classmethod
    def draw(cls, model: Model, rng: random.Random) -> Self:
        what = rng.choice(("takeoff", "land", "all/takeoff", "all/land", "cmd_pose", "cmd_vel"))
        return cls(what, round(rng.uniform(LOW, HIGH), 2))

    def fits(self, walk: Walk) -> bool:
        model = walk.model
        if self.what.startswith("all/"):  # which also reaches drones of which nothing is sure
            drones = [model.drones[name] for name in model.pilotable]
            if not all(drone.wild or drone.hovers or drone.stands for drone in drones):
                return False
        return bool(self._names(model)) and bool(model.world)

    def _names(self, model: Model) -> list[str]:
        """Those that can do it."""
        fit = {"takeoff": "stands", "land": "hovers"}.get(self.what.removeprefix("all/"), "obeys")
        return [name for name in model.pilotable if getattr(model.drones[name], fit)]

    def take(self, walk: Walk) -> None:
        model, names = walk.model, self._names(walk.model)
        if self.what.startswith("cmd"):
            walk.publish(f"crazyflow/drones/{self.what}", self._message(model, names))
        elif self.what.startswith("all/"):
            kind = Takeoff if self.what == "all/takeoff" else Land
            if names != list(model.drones):
                model.expect(rf"^/?{self.what} is refused: ")
            height = self.height if kind is Takeoff else 0.0
            walk.ask(kind, self.what, height=height, duration=duration(1.5))
        else:
            height = self.height if self.what == "takeoff" else 0.0
            walk.ask(
                *(ChangeHeight, f"crazyflow/drones/{self.what}"),
                drones=names,
                height=height,
                duration=1.5,
            )
        for drone in (model.drones[name] for name in names):
            if self.what.endswith("land"):
                drone.landing = True
                continue
            if self.what == "cmd_vel":
                drone.follow_velocity()
            else:
                drone.fly()
            drone.posted = self.what.startswith("cmd") and not model.moves

    def _message(self, model: Model, names: list[str]) -> MultiDOFJointState:
        message = MultiDOFJointState(joint_names=names)
        message.header.frame_id = "" if self.what == "cmd_vel" else "map"
        for name in names:
            if self.what == "cmd_vel":
                message.twist.append(Twist(angular=Vector3(z=0.5)))
                continue
            x, y = LANES[model.drones[name].lane]
            goal = Transform(translation=Vector3(x=x, y=y, z=self.height))
            goal.rotation.w = 1.0
            message.transforms.append(goal)
        return message
