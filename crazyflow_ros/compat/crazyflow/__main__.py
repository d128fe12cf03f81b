"""Run a script written for Crazyflow: `python -m crazyflow_ros.compat.crazyflow SCRIPT`."""

import sys
from pathlib import Path
from runpy import run_path

from crazyflow_ros.compat.crazyflow.hook import install


def main() -> None:
    """Run the script that the arguments name, with the arguments that follow it."""
    if len(sys.argv) < 2 or not Path(sys.argv[1]).is_file():
        sys.exit(f"{__doc__} [ARGUMENTS]")
    install()
    del sys.argv[0]
    sys.path[0] = str(Path(sys.argv[0]).resolve().parent)  # as Python itself sets it
    run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
