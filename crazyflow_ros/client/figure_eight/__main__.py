"""The program `figure_eight`: flies figure-eights with all drones of a running simulator.

    figure_eight --ros-args -p duration:=30.0 -r __ns:=/fleet

Parameters: `duration` of the flight in simulated seconds; `simulator`, the name of the simulator's
node in the same namespace.
"""

from __future__ import annotations

import sys

import rclpy
from rcl_interfaces.msg import ParameterDescriptor
from rclpy.signals import SignalHandlerOptions

from crazyflow_ros.client import SimulationError, SimulatorClient, interruptible
from crazyflow_ros.client.figure_eight import SHORTEST, fly
from crazyflow_ros.ros import configure_middleware, stay_on_this_machine


def main() -> None:
    """Fly the drones of a running simulator, and exit with 1 unless all flew well and landed."""
    with interruptible():
        try:
            duration, simulator, namespace = _arguments()
            with SimulatorClient(simulator, namespace) as simulation:
                record = fly(simulation, duration)
                problems = record.problems()
                if warnings := simulation.warnings():
                    problems.append(f"the simulator warned: {warnings}")
        except SimulationError as error:
            sys.exit(f"figure_eight: {error}")
        print(f"\n{record.summary()}")
        for problem in problems:
            print(f"FAILED: {problem}", file=sys.stderr)
        sys.exit(bool(problems))


def _arguments() -> tuple[float, str, str]:
    """Return duration, name of the simulator's node and its namespace.

    Raises:
        SimulationError: The duration is too short, or not a number.
    """
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node = rclpy.create_node("figure_eight")
    try:
        # Accept 20 as well as 20.0.
        any_number = ParameterDescriptor(dynamic_typing=True)
        duration: object = node.declare_parameter("duration", 30.0, any_number).value
        simulator = str(node.declare_parameter("simulator", "crazyflow").value)
        namespace = node.get_namespace()
    finally:
        node.destroy_node()
        rclpy.shutdown()
    if not isinstance(duration, int | float) or not SHORTEST <= duration < float("inf"):
        raise SimulationError(f"duration: expected at least {SHORTEST:g} s, got {duration!r}")
    return float(duration), simulator, namespace


if __name__ == "__main__":
    stay_on_this_machine()
    configure_middleware()
    main()
