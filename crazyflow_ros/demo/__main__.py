"""`python -m crazyflow_ros.demo`: the simulator and a client that flies its drones.

The two processes communicate through ROS topics and services only.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crazyflow_ros.checks.program_end import quiet_if_unread
from crazyflow_ros.client.simulator_process import (
    PATIENCE,
    SimulatorError,
    SimulatorProcess,
    choose_domain,
    end,
)
from crazyflow_ros.demo.arguments import Arguments, WrongArgument, usage
from crazyflow_ros.demo.place import place_parameters

FAILED, WRONG_USAGE = 1, 2
_CHECK = 0.5  # s between two checks of the processes
_GRACE = 5.0  # s for the page to end


def main() -> int:
    """Run the demonstration.

    Returns:
        Exit code: 0 if all drones took off, tracked their figure-eights and landed, and the
        simulator had nothing to warn of.
    """
    words = sys.argv[1:]
    if {"-h", "--help", "help"} & set(words):
        print(usage())
        return 0
    try:
        arguments = Arguments.parse(words)
    except WrongArgument as error:
        print(f"{error}\n\n{usage()}", file=sys.stderr)
        return WRONG_USAGE
    choose_domain()
    # Imported after the domain is chosen; also keeps the help fast.
    from crazyflow_ros.client import SimulationError
    from crazyflow_ros.demo.flight import interruptible

    with interruptible():
        try:
            return _demonstrate(arguments)
        except BrokenPipeError:  # nobody reads what it prints
            raise
        except (SimulatorError, SimulationError, ImportError, OSError) as error:
            print(f"\nFAILED: {error}", file=sys.stderr)
            return FAILED


def _demonstrate(arguments: Arguments) -> int:
    from crazyflow_ros.client import SimulatorClient
    from crazyflow_ros.demo.flight import run

    drones = [f"cf{index}" for index in range(arguments.n_drones)]
    parameters = {
        "drones": f"[{','.join(drones)}]",
        "drone_model": arguments.drone_model,
        "real_time_factor": str(arguments.real_time_factor),
        **place_parameters(arguments),
    }
    if arguments.sensors:
        parameters["sensors"] = arguments.sensors
    plot = Path(arguments.plot).expanduser()
    log = plot.with_name("simulator.log")
    print(
        f"starting the simulator with {len(drones)} {arguments.drone_model} in ROS domain "
        f"{os.environ['ROS_DOMAIN_ID']}, {PATIENCE} (log: {log})",
        flush=True,
    )
    with SimulatorProcess(parameters, log) as simulator:
        with (
            _page(open_it=arguments.view) as page,
            SimulatorClient(check=simulator.check) as simulation,
        ):
            good = run(simulation, arguments.duration, plot) and not simulator.has_complained()
            if page is not None:
                print("the simulation goes on; Ctrl-C ends it", flush=True)
                while page.poll() is None:
                    simulator.check()
                    simulator.wait(_CHECK)
        if not simulator.stop():
            print("FAILED: the simulator had to be killed", file=sys.stderr)
            good = False
    return 0 if good else FAILED


@contextmanager
def _page(*, open_it: bool) -> Iterator[subprocess.Popen[bytes] | None]:
    """Start the page, which prints its address, and yield its process; None without a page."""
    if not open_it:
        yield None
        return
    command = [sys.executable, "-m", "crazyflow_ros.view"]
    with subprocess.Popen(command, start_new_session=True) as process:
        try:
            yield process
        finally:
            end(process, _GRACE)


if __name__ == "__main__":
    sys.exit(quiet_if_unread(main))
