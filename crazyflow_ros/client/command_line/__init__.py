"""The command line: `python -m crazyflow_ros --help`.

It starts the simulator and commands a running one, like `ros2` on machines without that tool.
"""

from crazyflow_ros.client.command_line.main import main

__all__ = ["main"]
