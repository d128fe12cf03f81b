"""A simulator that computes nothing: it publishes what a page shows, and notes what it is asked.

With it, a page with a hundred drones is as cheap as one with none.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any, Self

import numpy as np
from crazyflie_interfaces.srv import Land, Takeoff
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import Transform, Twist, Vector3
from rclpy.context import Context
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from sensor_msgs.msg import MultiDOFJointState
from std_srvs.srv import SetBool, Trigger

from crazyflow_ros.ros.messages.times import time_of

_PARAMETERS = {
    "drone_model": "cf2x_L250",
    "wind": [0.0, 0.0, 0.0],
    "gust_intensity": 0.0,
    "real_time_factor": 1.0,
    "battery": True,
    "record": "",
}
_PERIOD, _STATUS_PERIOD = 0.1, 0.5  # s of wall time between two messages
_APART, _HEIGHT = 1.0, 1.0  # m
_N_SERVED = 8  # drones that have services
_DOWN = ("crashed", "locked")


class InventedSimulator:
    """A node `crazyflow` with drones that hover in a square. It runs in a thread.

    Args:
        domain: ROS domain.

    Attributes:
        drones: Names of the drones.
        states: States of flight, by drone; by default they fly.
        charges: Charges of batteries, by drone.
        asked: Names of the services that were called, in this order.
    """

    def __init__(self, domain: int) -> None:
        self.drones: tuple[str, ...] = ("cf0",)
        self.states: dict[str, str] = {}
        self.charges: dict[str, float] = {}
        self.asked: list[str] = []
        self._time_ns, self._paused = 0, False
        self._context = Context()
        self._context.init(domain_id=domain)
        self._node = Node("crazyflow", context=self._context, use_global_arguments=False)
        create = self._node.create_publisher
        self._odometry = create(MultiDOFJointState, "~/display/odometry", QoSProfile(depth=1))
        self._status = create(DiagnosticArray, "~/status", 10)
        self._resets = create(DiagnosticArray, "~/reset_event", 10)
        self._events = create(DiagnosticStatus, "~/flight_events", 100)
        for name, value in _PARAMETERS.items():
            self._node.declare_parameter(name, value)
        self._serve(SetBool, "~/pause", lambda request: setattr(self, "_paused", request.data))
        for number in range(_N_SERVED):
            drone = f"cf{number}"
            self._serve(Trigger, f"{drone}/reset", partial(self._reset, drone))
            self._serve(Takeoff, f"{drone}/takeoff", lambda _: None)
            self._serve(Land, f"{drone}/land", lambda _: None)
        self._node.create_timer(_PERIOD, self._show)
        self._node.create_timer(_STATUS_PERIOD, self._report)
        self._thread = threading.Thread(target=self._spin, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._context.try_shutdown()
        self._thread.join(10.0)
        self._node.destroy_node()  # for others, the simulator has ended

    def fly(self, count: int) -> None:
        """Have so many drones, all of which fly."""
        self.states, self.charges = {}, {}
        self.drones = tuple(f"cf{number}" for number in range(count))

    def crash(self, *drones: str) -> None:
        """Have drones crash one after the other, as a simulator tells it."""
        for number, drone in enumerate(drones):
            remedy = f"call {drone}/reset"
            text = f"crashed at ({number}.00, 0.10, 0.02) m: upside down; rotors stopped, {remedy}"
            values = {"kind": "crashed", "time_ns": str(self._time_ns), "remedy": remedy}
            self._events.publish(_diagnostics(drone, text, values, DiagnosticStatus.ERROR))
            self.states = {**self.states, drone: "crashed"}

    def _serve(self, kind: Any, name: str, work: Callable[[Any], None]) -> None:
        def answer(request: Any, response: Any) -> Any:
            self.asked.append(name.removeprefix("~/"))
            work(request)
            if hasattr(response, "success"):
                response.success = True
            return response

        self._node.create_service(kind, name, answer)

    def _reset(self, drone: str, _: Any) -> None:
        self.states = {**self.states, drone: "idle"}
        reset = _diagnostics("reset", "", {"drones": drone})
        self._resets.publish(DiagnosticArray(status=[reset]))

    def _spin(self) -> None:
        executor = SingleThreadedExecutor(context=self._context)
        executor.add_node(self._node)
        with suppress(ExternalShutdownException):
            executor.spin()

    def places(self, names: Sequence[str] = ()) -> np.ndarray:
        """Where the drones are, by default all of them, (M, 3) [m]."""
        names = names or self.drones
        side = int(np.ceil(np.sqrt(len(names))))
        rows, columns = np.divmod(np.arange(len(names)), side)
        heights = [0.02 if self.states.get(name) in _DOWN else _HEIGHT for name in names]
        flat = _APART * (np.stack([rows, columns], axis=-1) - (side - 1) / 2)
        return np.column_stack([flat, heights])

    def _show(self) -> None:
        self._time_ns += 0 if self._paused else round(_PERIOD * 1e9)
        names = self.drones  # which another thread may change
        places = self.places(names).tolist()
        message = MultiDOFJointState(joint_names=names, twist=[Twist() for _ in places])
        message.header.stamp = time_of(self._time_ns)
        for x, y, z in places:
            message.transforms.append(Transform(translation=Vector3(x=x, y=y, z=z)))
        self._odometry.publish(message)

    def _report(self) -> None:
        names = self.drones
        values = {"achieved_factor": "1", "paused": str(self._paused).lower()}
        values |= {f"state of {name}": self.states.get(name, "flying") for name in names}
        values |= {
            f"battery of {name}": f"3.80 V, {self.charges.get(name, 0.8):.0%}" for name in names
        }
        down = [
            _diagnostics(f"/crazyflow: {name}", f"{state}; it lies there until it is reset", {})
            for name, state in self.states.items()
            if state in _DOWN
        ]
        first = _diagnostics("/crazyflow: simulation", "", values, DiagnosticStatus.OK)
        message = DiagnosticArray(status=[first, *down])
        message.header.stamp = time_of(self._time_ns)
        self._status.publish(message)


def _diagnostics(
    name: str, text: str, values: dict[str, str], level: bytes = DiagnosticStatus.ERROR
) -> DiagnosticStatus:
    pairs = [KeyValue(key=key, value=value) for key, value in values.items()]
    return DiagnosticStatus(name=name, message=text, level=level, values=pairs)
