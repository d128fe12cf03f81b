"""Arguments of programs that talk to a running simulator."""

from __future__ import annotations

import argparse


def add_simulator_arguments(parser: argparse._ActionsContainer) -> None:
    """Add `--node` and `--namespace`, which say which simulator is meant."""
    parser.add_argument(
        "--node", default="crazyflow", help="name of the simulator's node, default crazyflow"
    )
    parser.add_argument("--namespace", default="/", help="namespace of the simulator, default /")
