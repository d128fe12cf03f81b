#!/bin/bash
# Trains with the processes of Open MPI, here two on this machine, each on cores of its own:
#
#     mpirun -n 2 --map-by core --bind-to core examples/cluster/mpirun.sh localhost:12345 hover
#
# With several machines (--hostfile), the first argument is the address of the machine of rank 0 and
# a free port there.
set -euo pipefail

coordinator=$1
shift
exec "${PYTHON:-.venv/bin/python}" -m crazyflow_ros.learn "$@" --coordinator "$coordinator" \
    --hosts "$OMPI_COMM_WORLD_SIZE" --host "$OMPI_COMM_WORLD_RANK"
