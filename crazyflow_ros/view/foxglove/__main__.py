"""`python -m crazyflow_ros.view.foxglove`, `ros2 run crazyflow_ros foxglove`."""

from __future__ import annotations

from crazyflow_ros.ros.middleware import stay_on_this_machine
from crazyflow_ros.view.foxglove.server import main

if __name__ == "__main__":
    stay_on_this_machine()
    main()
