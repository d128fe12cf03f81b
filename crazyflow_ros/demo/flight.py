"""The program `figure_eight`: flies figure-eights with all drones of a running simulator.

    figure_eight --ros-args -p duration:=30.0 -p plot:=flight.png -r __ns:=/fleet

Parameters: `duration` of the flight in simulated seconds; `simulator`, the name of the simulator's
node in the same namespace; `plot`, the path of the picture (none if empty).
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import rclpy
from rcl_interfaces.msg import ParameterDescriptor
from rclpy.signals import SignalHandlerOptions

from crazyflow_ros.checks.program_end import ending
from crazyflow_ros.client import SimulationError, SimulatorClient
from crazyflow_ros.client.progress import ProgressLine
from crazyflow_ros.demo.client import FlightClient
from crazyflow_ros.demo.trajectory import SHORTEST
from crazyflow_ros.ros.middleware import configure_middleware, stay_on_this_machine


@contextmanager
def interruptible() -> Iterator[None]:
    """Unwind and exit on a signal that ends programs, with the exit code that a shell would report.

    C code that calls Python, for example for messages, may turn the signal's exception into another
    one; the process exits for the signal in any case.
    """
    received: list[int] = []

    def unwind(number: int, frame: FrameType | None) -> None:
        del frame
        received.append(number)
        raise KeyboardInterrupt

    handlers = {n: signal.signal(n, unwind) for n in ending()}
    try:
        yield
    except BaseException:
        if not received:
            raise
        print("\ninterrupted", file=sys.stderr)
        sys.exit(128 + received[0])
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def run(simulation: SimulatorClient, duration: float, plot: Path | None) -> bool:
    """Fly once, and report the result on standard output and in a picture.

    Args:
        simulation: The simulator.
        duration: Duration of the flight, simulated s.
        plot: Path of the picture; None draws none.

    Returns:
        Whether all drones flew well and landed.

    Raises:
        SimulationError: The simulator does not respond or refuses a request.
    """
    if plot:  # imported before the flight to detect a missing Matplotlib early
        from crazyflow_ros.demo.plot import save_plot
    client = FlightClient(simulation)
    print(f"{_list(simulation.drones)} ready", flush=True)
    progress = ProgressLine()
    try:
        record = client.fly(duration, progress)
        problems = record.problems()
        for name, state in client.not_landed().items():
            problems.append(f"{name}: it is {state}, has to be landed")
    finally:
        progress.close()
    print(f"\n{record.summary()}")
    if plot:
        save_plot(record, plot)
        print(f"picture: {plot}")
    for problem in problems:
        print(f"FAILED: {problem}", file=sys.stderr)
    return not problems


def _list(names: list[str]) -> str:
    return " ".join(names) if len(names) <= 8 else f"{len(names)} drones, {names[0]}..{names[-1]},"


def main() -> None:
    """Fly the drones of a running simulator."""
    with interruptible():
        try:
            duration, plot, simulator, namespace = _arguments()
            with SimulatorClient(simulator, namespace) as simulation:
                good = run(simulation, duration, plot)
                if warnings := simulation.warnings():
                    print(f"FAILED: the simulator warned: {warnings}", file=sys.stderr)
                    good = False
        except (SimulationError, ImportError) as error:
            sys.exit(f"figure_eight: {error}")
        sys.exit(not good)


def _arguments() -> tuple[float, Path | None, str, str]:
    """Return duration, path of the picture, name of the simulator's node and its namespace.

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
        plot = str(node.declare_parameter("plot", "").value)
        namespace = node.get_namespace()
    finally:
        node.destroy_node()
        rclpy.shutdown()
    if not isinstance(duration, int | float) or not SHORTEST <= duration < float("inf"):
        raise SimulationError(f"duration: expected at least {SHORTEST:g} s, got {duration!r}")
    return float(duration), Path(plot) if plot else None, simulator, namespace


if __name__ == "__main__":
    stay_on_this_machine()
    configure_middleware()
    main()
