"""Services for take-off, landing and trajectories: <drone>/takeoff and others, also under all/.

Types and semantics are those of crazyswarm2. Its services have empty responses, so refusals are
logged, and published as flight events: the log leaves out what recurs.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from crazyflie_interfaces.srv import (
    Arm,
    GoTo,
    Land,
    NotifySetpointsStop,
    SetGroupMask,
    StartTrajectory,
    Takeoff,
    UploadTrajectory,
)
from diagnostic_msgs.msg import DiagnosticStatus, KeyValue
from rclpy.qos import QoSProfile
from std_srvs.srv import Empty

from crazyflow_ros import flight
from crazyflow_ros.checks import limits
from crazyflow_ros.flight import Setpoint
from crazyflow_ros.flight.course import AXES, ORDER
from crazyflow_ros.flight.polynomial_trajectory import MAX_PIECES, MAX_TRAJECTORIES
from crazyflow_ros.ros.messages.geometry import xyz

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host

ALL = "all"
"""Namespace of the services for all drones."""

_EVENTS = QoSProfile(depth=100)
_BAD = ("crashed",)  # kinds of events published as errors


class MissingTrajectory(ValueError):
    """A drone lacks a trajectory."""


class TrajectoryMemory:
    """Trajectories uploaded to a drone, stored as pieces as in the firmware."""

    def __init__(self) -> None:
        self._pieces: dict[int, tuple[float, np.ndarray]] = {}
        self._trajectories: dict[int, range] = {}

    def upload(self, request: UploadTrajectory.Request) -> None:
        """Store pieces of the trajectory with a given id, starting at an offset.

        Raises:
            ValueError: The pieces do not fit, or are not polynomials of degree 7.
        """
        pieces, number = request.pieces, request.trajectory_id
        where = range(request.piece_offset, request.piece_offset + len(pieces))
        if not pieces:
            raise ValueError("pieces is empty")
        if where.stop > MAX_PIECES:
            got = f"{len(pieces)} from {request.piece_offset} on"
            raise ValueError(f"a drone has room for {MAX_PIECES} pieces, got {got}")
        if number >= MAX_TRAJECTORIES:
            expected = f"from 0 to {MAX_TRAJECTORIES - 1}"
            raise ValueError(f"trajectory_id must be {expected}, got {number}")
        durations, coefficients = [], np.zeros((len(pieces), AXES, ORDER))
        for i, piece in enumerate(pieces):
            durations.append(_seconds(piece.duration))
            for axis, name in enumerate(("x", "y", "z", "yaw")):
                values = getattr(piece, f"poly_{name}")
                if len(values) != ORDER:
                    raise ValueError(f"poly_{name} of piece {i} has {len(values)} numbers, not 8")
                coefficients[i, axis] = values
        flight.PolynomialTrajectory(durations, coefficients)  # refuses invalid pieces
        self._pieces.update(zip(where, zip(durations, coefficients)))
        self._trajectories[number] = where

    def trajectory(self, number: int) -> flight.PolynomialTrajectory:
        """Return the trajectory uploaded with an id.

        Raises:
            MissingTrajectory: No trajectory has this id.
        """
        if number not in self._trajectories:
            known = ", ".join(map(str, sorted(self._trajectories))) or "none"
            raise MissingTrajectory(f"there is no trajectory {number}, uploaded are: {known}")
        durations, coefficients = zip(*(self._pieces[i] for i in self._trajectories[number]))
        return flight.PolynomialTrajectory(durations, np.array(coefficients))


class FlightServices:
    """Flight services of each drone and of all drones, and the topic ~/flight_events."""

    def __init__(self, simulator: Host) -> None:
        self._simulator, self._waiting = simulator, simulator.waiting
        self._physics, self._logger = simulator.physics, simulator.log
        self._memories: dict[str, TrajectoryMemory] = {}
        simulator.for_all_drones(self._remember)
        self._events = simulator.create_publisher(DiagnosticStatus, "~/flight_events", _EVENTS)
        simulator.physics.news.on_flight_event(self._publish)
        simulator.for_each_drone(self._add)
        self._add(ALL)

    def _add(self, owner: str) -> None:
        for kind, name in (
            (Takeoff, "takeoff"),
            (Land, "land"),
            (GoTo, "go_to"),
            (StartTrajectory, "start_trajectory"),
            (NotifySetpointsStop, "notify_setpoints_stop"),
            (Arm, "arm"),
            (SetGroupMask, "set_group_mask"),
            (Empty, "emergency"),
        ):
            answer = partial(self._answer, owner, name)
            self._simulator.create_service(kind, f"{owner}/{name}", answer)
        if owner != ALL:
            upload = partial(self._upload, owner)
            self._simulator.create_service(UploadTrajectory, f"{owner}/upload_trajectory", upload)

    def _remember(self) -> None:
        """Keep the trajectories of the present drones, also of those without services."""
        before = self._memories
        self._memories = {
            drone: before.get(drone) or TrajectoryMemory() for drone in self._simulator.drones
        }

    async def _answer(self, owner: str, service: str, request: Any, response: Any) -> Any:
        """Carry out a command, and publish its refusal."""
        try:
            await self._command(owner, request)
            return response
        except Exception as error:
            now_ns = self._physics.snapshot.time_ns
            event = flight.FlightEvent(now_ns, owner, "refused", f"{service}: {error}")
            self._publish(event)
            raise

    async def _command(self, owner: str, request: Any) -> None:
        drones = [owner]
        if owner == ALL:
            drones = [d for d in self._physics.snapshot.names if self._simulator.owns(d)]
        if owner == ALL and isinstance(request, GoTo.Request):
            self._check_go_to_of_all(request)
        setpoints, refused = {}, []
        for drone in drones:
            try:
                setpoints[drone] = self._setpoint(drone, request)
            except MissingTrajectory as error:  # the other drones fly their trajectories
                refused.append(f"{drone}: {error}")
        outcome = await self._waiting.result(self._physics.fly(setpoints))
        for note in outcome.notes:
            self._logger.info(note)
        if refused := refused + outcome.refused:
            raise ValueError("; ".join(refused))

    def _check_go_to_of_all(self, request: GoTo.Request) -> None:
        if not request.relative:
            raise ValueError("all/go_to must be relative: drones cannot all be at one place")

    def _setpoint(self, drone: str, request: Any) -> Setpoint:
        """Return what a request commands a drone.

        Raises:
            MissingTrajectory: It lacks the trajectory.
            ValueError: A value is invalid.
        """
        match request:
            case Takeoff.Request():
                seconds, mask = _seconds(request.duration), request.group_mask
                return flight.Takeoff(request.height, seconds, group_mask=mask)
            case Land.Request():
                seconds, mask = _seconds(request.duration), request.group_mask
                return flight.Land(request.height, seconds, group_mask=mask)
            case GoTo.Request():
                goal, seconds = xyz(request.goal), _seconds(request.duration)
                return flight.GoTo(goal, request.yaw, seconds, request.relative, request.group_mask)
            case StartTrajectory.Request():
                return flight.FlyTrajectory(
                    self._memory(drone).trajectory(request.trajectory_id),
                    timescale=request.timescale,
                    reversed=request.reversed,
                    relative=request.relative,
                    group_mask=request.group_mask,
                )
            case NotifySetpointsStop.Request():
                return flight.NotifySetpointsStop(request.group_mask)
            case Arm.Request():
                return flight.Arm(request.arm)
            case SetGroupMask.Request():
                return flight.SetGroups(request.group_mask)
        return flight.Emergency()

    def _upload(self, drone: str, request: UploadTrajectory.Request, response: Any) -> Any:
        self._memory(drone).upload(request)
        return response

    def _memory(self, drone: str) -> TrajectoryMemory:
        """Return the trajectories of a drone, which may have come or gone since the last look."""
        if drone not in self._memories:
            raise MissingTrajectory(limits.unknown("drone", drone, self._memories))
        return self._memories[drone]

    def _publish(self, event: flight.FlightEvent) -> None:
        level = DiagnosticStatus.ERROR if event.kind in _BAD else DiagnosticStatus.WARN
        message = DiagnosticStatus(level=level, name=event.drone, message=event.text)
        values = {"kind": event.kind, "time_ns": str(event.time_ns), "remedy": event.remedy}
        message.values = [KeyValue(key=key, value=value) for key, value in values.items()]
        self._events.publish(message)


def _seconds(duration: Any) -> float:
    seconds = duration.sec + duration.nanosec * 1e-9
    return limits.number("duration", seconds, limits.DURATION)
