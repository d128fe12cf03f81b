"""~/status: how the simulation is doing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue

if TYPE_CHECKING:
    from crazyflow_ros.ros.simulator import Simulator

_PERIOD = 1.0  # s of wall time
_TOO_SLOW = 0.95  # of the requested factor


class StatusTopic:
    """Diagnostics of the physics thread and of the mirror's lock."""

    def __init__(self, simulator: Simulator) -> None:
        self._physics, self._link = simulator.physics, simulator.link
        self._recorder = simulator.recorder
        self._name = f"{simulator.get_fully_qualified_name()}: simulation"
        self._publisher = simulator.create_publisher(DiagnosticArray, "~/status", 10)
        simulator.create_timer(_PERIOD, self._publish)

    def _publish(self) -> None:
        seconds, nanoseconds = divmod(self._physics.snapshot.time_ns, 1_000_000_000)
        message = DiagnosticArray(status=[self._status()])
        message.header.stamp = Time(sec=seconds, nanosec=nanoseconds)
        self._publisher.publish(message)

    def _status(self) -> DiagnosticStatus:
        now = self._physics.statistics()
        holds = self._physics.mirror.mutex.hold_times() * 1e6
        median, longest = (np.median(holds), holds.max()) if holds.size else (0.0, 0.0)
        slow = 0 < now.achieved_factor < _TOO_SLOW * now.requested_factor and not now.paused
        text = "paused" if now.paused else f"real-time factor {now.achieved_factor:.2f}"
        if slow:
            text += f", slower than the requested {now.requested_factor:g}"
        values = {
            "requested_factor": f"{now.requested_factor:g}",
            "achieved_factor": f"{now.achieved_factor:.4g}",
            "overruns": str(now.overruns),
            "stalls": str(now.stalls),
            "tick": str(now.tick),
            "epoch": str(now.epoch),
            "paused": str(now.paused).lower(),
            "lock_hold_median_us": f"{median:.1f}",
            "lock_hold_longest_us": f"{longest:.1f}",
        }
        if self._link is not None:
            link = self._link.status()
            values["controlled_drones"] = ", ".join(link.attached)
            values["control_cycles"] = str(link.cycles)
            values["control_timeouts"] = str(link.timeouts)
            values["refused_commands"] = str(link.refused)
        warn = slow
        if self._recorder is not None:
            recorder = self._recorder.status()
            values["recorded_messages"] = str(recorder.written)
            values["unrecorded_messages"] = str(recorder.dropped)
            values["record_error"] = recorder.error
            warn |= bool(recorder.dropped or recorder.error)
        return DiagnosticStatus(
            level=DiagnosticStatus.WARN if warn else DiagnosticStatus.OK,
            name=self._name,
            message=text,
            hardware_id="crazyflow_ros",
            values=[KeyValue(key=key, value=value) for key, value in values.items()],
        )


def declare(simulator: Simulator) -> None:
    """Add the topic."""
    StatusTopic(simulator)
