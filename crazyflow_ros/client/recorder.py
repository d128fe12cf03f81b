"""A process that records all topics of a simulator until it is told to stop.

    python -m crazyflow_ros.client.recorder flight.mcap

It writes a line as soon as it records. It ends when its service `<simulator>_recorder/stop` is
called, when it gets a signal, when writing fails, or when the simulator is gone.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from pathlib import Path

from std_srvs.srv import Trigger

from crazyflow_ros.checks.program_end import in_words, on_end
from crazyflow_ros.client.errors import SimulationError
from crazyflow_ros.client.recording import RECORDS, stop_service
from crazyflow_ros.client.simulator import SimulatorClient
from crazyflow_ros.client.simulator_arguments import add_simulator_arguments

_GONE = 10.0  # s of wall time without a simulator, after which the recording ends
_SLICE = 0.1  # s of wall time
_LAST = 0.5  # s of wall time for the answer of the service to leave
_DEPARTURE = 1.0  # s of wall time for the program that has asked to end
_CLOSING = 10  # s of wall time after which the process ends although ROS does not


def _record(simulation: SimulatorClient, path: Path) -> str:
    """Record until there is a reason to end, and return a summary of the file."""
    from crazyflow_ros.ros.recording import TopicRecording

    parameters = simulation.parameters.all()
    node = simulation.node
    recording = TopicRecording(node, simulation.name, path, parameters, simulation.time_ns)
    stopped: list[int] = []
    on_end(lambda: stopped.append(1))

    def report() -> str:
        status = recording.status()
        text = f"{status.written} messages in {path}"
        if status.dropped:
            text += f"; {status.dropped} messages were lost, they came too fast"
        return f"{text}; writing failed: {status.error}" if status.error else text

    def stop(_: Trigger.Request, answer: Trigger.Response) -> Trigger.Response:
        stopped.append(1)
        recording.end()
        recording.close()
        answer.success, answer.message = not recording.status().error, report()
        return answer

    recording.begin()
    service = node.create_service(Trigger, stop_service(simulation.name), stop)
    print(f"{RECORDS} {path}", flush=True)
    seen = time.monotonic()
    while not stopped and not recording.status().error and time.monotonic() < seen + _GONE:
        simulation.spin(_SLICE)
        if node.count_publishers(f"{simulation.name}/status"):
            seen = time.monotonic()
    recording.end()
    recording.close()
    simulation.spin_for(_LAST)
    node.destroy_service(service)
    # Fast DDS 3.2 waits for itself for ever if it closes just as it hears that another one has.
    time.sleep(_DEPARTURE)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(_CLOSING)
    return report()


def main(arguments: list[str] | None = None) -> int:
    """Record, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m crazyflow_ros.client.recorder")
    parser.add_argument("file", type=Path, help="MCAP file to create")
    add_simulator_arguments(parser)
    options = parser.parse_args(arguments)
    from crazyflow_ros.ros import configure_middleware

    configure_middleware()
    try:
        with SimulatorClient(options.node, options.namespace) as simulation:
            print(_record(simulation, options.file.absolute()), flush=True)
    except (SimulationError, OSError, ModuleNotFoundError) as error:
        print(in_words(error), file=sys.stderr)
        return 1
    except (BrokenPipeError, KeyboardInterrupt):
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
