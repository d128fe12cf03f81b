"""Check whether rendering works, and print what to install if not."""

import sys

from crazyflow_ros.opengl import problem

if __name__ == "__main__":
    sys.exit(problem() or 0)
