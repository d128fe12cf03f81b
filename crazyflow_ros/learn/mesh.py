"""Devices and processes of the command: their options, the mesh, and the end of a process."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from crazyflow_ros.checks.limits import shown

if TYPE_CHECKING:
    from jax.sharding import Mesh

_MOST_DEVICES = 256  # of a process
_MOST_PROCESSES = 65_536
_SILENCE = 30  # s, after which a process counts as lost


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that `mesh_of` reads."""
    parser.add_argument("--devices", type=int, help="devices of each process (default 1)")
    parser.add_argument(
        "--hosts",
        metavar="N",
        help="number of processes, or auto to find it, like the next two, from Slurm, Open MPI or "
        "Kubernetes",
    )
    parser.add_argument("--host", type=int, metavar="K", help="index of this process, from 0")
    parser.add_argument("--coordinator", metavar="ADDRESS:PORT", help="where process 0 listens")


def mesh_of(arguments: argparse.Namespace) -> Mesh | None:
    """Join the other processes and return the devices of all, or None for a single device.

    JAX must not have computed anything before.

    Raises:
        ValueError: An option is out of range or lacks another one, or there are too few devices.
        ConnectionError: The other processes were not found in time.
    """
    import jax

    devices, hosts = arguments.devices, arguments.hosts
    for name in ("host", "coordinator"):
        if hosts is None and getattr(arguments, name) is not None:
            raise ValueError(f"--{name} needs --hosts, the number of processes")
    if devices is None and hosts is None:
        return None
    each = 1 if devices is None else devices
    if not 1 <= each <= _MOST_DEVICES:
        raise ValueError(f"--devices must be from 1 to {_MOST_DEVICES}, got {each}")
    if hosts is not None:
        _join(hosts, arguments.host, arguments.coordinator)
    jax.config.update("jax_num_cpu_devices", each)
    if len(jax.local_devices()) < each:
        raise ValueError(f"--devices must be at most {len(jax.local_devices())}, got {each}")
    by_process: dict[int, list[jax.Device]] = {}
    for device in jax.devices():
        by_process.setdefault(device.process_index, []).append(device)
    chosen = [device for own in by_process.values() for device in own[:each]]
    return jax.make_mesh((len(chosen),), ("worlds",), devices=chosen)


def _join(hosts: str, host: int | None, coordinator: str | None) -> None:
    """Join the other processes."""
    import jax

    number = None
    if hosts != "auto":
        number = int(hosts) if hosts.isascii() and hosts.isdigit() and len(hosts) < 8 else 0
        if not 1 <= number <= _MOST_PROCESSES:
            raise ValueError(f"--hosts must be auto or 1 to {_MOST_PROCESSES}, got {shown(hosts)}")
        if host is None or not 0 <= host < number:
            raise ValueError(f"--host must be from 0 to {number - 1}, got {host}")
        if coordinator is None or not coordinator.rpartition(":")[2].isdigit():
            raise ValueError(f"--coordinator must be ADDRESS:PORT, got {shown(coordinator)}")
    try:
        jax.distributed.initialize(coordinator, number, host, heartbeat_timeout_seconds=_SILENCE)
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
        raise ConnectionError(f"the other processes were not found: {reason}") from error
    except (ValueError, TypeError) as error:
        raise ValueError(f"--hosts {hosts}: nothing of the kind was found: {error}") from None


def leave(code: int) -> int:
    """Return an exit code, or end at once if it is an error and other processes are connected.

    Otherwise JAX would wait for them, and they for this process.
    """
    jax = sys.modules.get("jax")
    if code and jax is not None and jax.distributed.is_initialized():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code
