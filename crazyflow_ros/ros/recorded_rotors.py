"""The frames of the rotors, for recordings alone: see `RotorTransforms`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crazyflow_ros.ros.host import Host

if TYPE_CHECKING:
    from crazyflow_ros.ros.recording.recorder import Recorder


def record_rotors(simulator: Host, recorder: Recorder) -> None:
    """Record the rotors as often as the joint states, unless these are off."""
    from crazyflow_ros.ros.recording.rotor_transforms import RotorTransforms  # needs a package

    rate_hz = simulator.parameters.publish_rates.joint_states
    if rate_hz == 0:
        return
    transforms = RotorTransforms(
        recorder, simulator.resolve_topic_name, simulator.parameters.drone_model
    )
    simulator.for_all_drones(lambda: transforms.follow(simulator.drones))
    # A different rate would divide the time into other steps, see `replay`.
    name = "publish_rates.joint_states"
    simulator.physics.every(rate_hz, transforms.record, name, observes=True)
