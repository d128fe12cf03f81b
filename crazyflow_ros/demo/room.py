"""`python -m crazyflow_ros.demo.room`: a flight through a room with sensors.

It starts the simulator, flies one round, and draws the messages of the drone's sensors into `out/`:
`scan.png`, `cloud.png` from above, `camera.png` and `depth.png`. Without OpenGL it draws only the
first two.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from crazyflow_ros.client.simulator_process import (
    PATIENCE,
    SimulatorError,
    SimulatorProcess,
    choose_domain,
)
from crazyflow_ros.demo.room_flight import DRONE, RoomFlight
from crazyflow_ros.demo.room_plan import plan
from crazyflow_ros.resources import resource

OUT = Path("out")
FAILED = 1


def main() -> int:
    """Run the demonstration.

    Returns:
        Exit code: 0 after a flight with all pictures written.
    """
    choose_domain()
    # Imported after the domain is chosen.
    from crazyflow_ros.client import SimulationError, SimulatorClient
    from crazyflow_ros.demo.flight import interruptible
    from crazyflow_ros.demo.room_plot import save_cloud, save_pictures, save_scan

    x, y, yaw = (float(v) for v in (*plan()[1][0, :2], plan()[2][0]))
    parameters = {
        "drones": f"[{DRONE}]",
        "scene": "room",
        "initial_poses": f"[{x}, {y}, 0.02, {yaw}]",
        "sensors": str(resource("config", "sensors.yaml")),
    }
    log = OUT / "simulator.log"
    print(f"starting the simulator with a room, {PATIENCE} (log: {log})", flush=True)
    with interruptible():
        try:
            with (
                SimulatorProcess(parameters, log) as simulator,
                SimulatorClient(check=simulator.check) as simulation,
            ):
                flight = RoomFlight(simulation)
                flight.fly()
                if simulator.has_complained():
                    return FAILED
        except (SimulatorError, SimulationError, ImportError, OSError) as error:
            print(f"\nFAILED: {error}", file=sys.stderr)
            return FAILED
        seen = {topic: len(kept) for topic, kept in flight.messages.items()}
        print(", ".join(f"{count} x {topic}" for topic, count in seen.items()))
        save_scan(flight, OUT / "scan.png")
        save_cloud(flight, OUT / "cloud.png")
        save_pictures(flight, OUT / "camera.png", OUT / "depth.png")
        written = ["scan.png", "cloud.png", "camera.png", "depth.png"]
        print(f"pictures in {OUT}{os.sep}: {', '.join(written)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
