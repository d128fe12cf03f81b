"""`python -m crazyflow_ros` is the program `simulator`."""

from crazyflow_ros.ros.node import main

if __name__ == "__main__":
    main()
