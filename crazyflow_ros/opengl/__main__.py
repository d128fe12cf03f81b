"""Tells whether pictures can be drawn, and what to install if not."""

import sys

from crazyflow_ros.opengl import problem

if __name__ == "__main__":
    sys.exit(problem() or 0)
