"""Steps after which drones may fall: wind, motors, batteries, pushes, emergencies, raw commands."""

from __future__ import annotations

import random
from dataclasses import dataclass
from math import hypot
from typing import TYPE_CHECKING, ClassVar, Self

from crazyflie_interfaces.srv import Arm
from crazyflow_ros_interfaces.srv import SetBattery, SetMotorEfficiency
from geometry_msgs.msg import WrenchStamped
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import Empty

from journeys.flight_steps import OfOne
from journeys.model import Drone, Model
from journeys.step import Step

if TYPE_CHECKING:
    from journeys.walk import Walk

GENTLE = 1.5  # m/s, wind in which drones fly as if there were none


@dataclass(frozen=True)
class Wind(Step):
    """The wind changes."""

    wind: tuple[float, float, float]
    gusts: float = 0.0
    weight: ClassVar[float] = 2.0

    @classmethod
    def draw(cls, model: Model, rng: random.Random) -> Self:
        strength = rng.choice((0.0, 0.0, 1.0, 1.0, 15.0))
        wind = tuple(round(strength * rng.uniform(-0.7, 0.7), 2) for _ in range(2))
        return cls((*wind, 0.0), rng.choice((0.0, 0.0, 0.1)))

    def fits(self, walk: Walk) -> bool:
        # The code for gusts is compiled at the start, or else for minutes in flight.
        return not walk.life.by_door and (not self.gusts or walk.life.variant == "gusts")

    def take(self, walk: Walk) -> None:
        model = walk.model
        walk.set("wind", list(self.wind))
        if walk.life.variant == "gusts":
            walk.set("gust_intensity", self.gusts)
        was, model.storm = model.storm, hypot(*self.wind) > GENTLE
        if was or model.storm:
            for drone in model.drones.values():
                drone.wild = True


class Wild(OfOne):
    """What a drone may fall from."""

    weight: ClassVar[float] = 0.7

    @classmethod
    def suits(cls, drone: Drone) -> bool:
        return True


@dataclass(frozen=True)
class FailMotor(Wild):
    """A motor fails, in part or in whole."""

    motor: int
    efficiency: float

    @classmethod
    def of(cls, drone: str, rng: random.Random) -> Self:
        return cls(drone, rng.randrange(4), rng.choice((0.0, 0.5, 0.9)))

    def take(self, walk: Walk) -> None:
        request = {"motor": self.motor, "efficiency": self.efficiency}
        walk.ask(SetMotorEfficiency, f"{self.drone}/set_motor_efficiency", **request)
        walk.model.drones[self.drone].wild = True


@dataclass(frozen=True)
class Discharge(Wild):
    """A battery is nearly empty."""

    charge: float

    @classmethod
    def of(cls, drone: str, rng: random.Random) -> Self:
        return cls(drone, rng.choice((0.9, 0.05, 0.02)))

    def fits(self, walk: Walk) -> bool:
        return walk.life.variant == "battery" and super().fits(walk)

    def take(self, walk: Walk) -> None:
        walk.ask(SetBattery, f"{self.drone}/set_battery", charge=self.charge)
        walk.model.drones[self.drone].wild = True


@dataclass(frozen=True)
class Push(Wild):
    """A force acts for a moment."""

    force: float

    @classmethod
    def of(cls, drone: str, rng: random.Random) -> Self:
        return cls(drone, rng.choice((0.02, 0.1, 1.0)))

    def take(self, walk: Walk) -> None:
        message = WrenchStamped()
        message.header.frame_id, message.wrench.force.x = "map", self.force
        walk.publish(f"{self.drone}/wrench", message)
        walk.model.drones[self.drone].wild = True


@dataclass(frozen=True)
class Emergency(Wild):
    """The rotors stop at once."""

    def take(self, walk: Walk) -> None:
        walk.ask(Empty, f"{self.drone}/emergency")
        walk.model.drones[self.drone].wild = True


@dataclass(frozen=True)
class Disarm(Wild):
    """The rotors stop, and the drone is armed again."""

    def take(self, walk: Walk) -> None:
        for arm in (False, True):
            walk.ask(Arm, f"{self.drone}/arm", arm=arm)
        walk.model.drones[self.drone].wild = True


@dataclass(frozen=True)
class SendRaw(Wild):
    """Numbers for the position controller, which nothing bounds."""

    def take(self, walk: Walk) -> None:
        message = Float64MultiArray(data=[0.0, 0.0, 1.0, *[0.0] * 10])
        walk.publish(f"{self.drone}/command", message)
        walk.model.drones[self.drone].wild = True
