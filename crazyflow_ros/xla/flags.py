"""Options of XLA that only its flags can set, for all of a process."""

from __future__ import annotations

import os
import sys

_LEVEL, _DEFAULT = "TF_CPP_MIN_LOG_LEVEL", "1"  # the default that JAX sets
_FUSED = "--xla_backend_extra_options=xla_cpu_use_multi_output_fusion"


def silence_alarms() -> None:
    """Keep XLA's alarms about slow compilations out of the log, unless JAX is imported already.

    Programs say by themselves how long they compile. XLA's errors are raised as exceptions, too.
    """
    if os.environ.get(_LEVEL, _DEFAULT) == _DEFAULT:  # also that of a parent process
        os.environ[_LEVEL] = "3"


def fuse_outputs() -> None:
    """Let XLA compute several results in one kernel on the CPU, unless JAX is imported already.

    Otherwise gradients of equations of motion consist of hundreds of short kernels, whose calls
    take most of the time. Kernels of `blocks` gain nothing from it.
    """
    if "jax" not in sys.modules:  # XLA reads the flags once
        os.environ["XLA_FLAGS"] = f"{_FUSED} {os.environ.get('XLA_FLAGS', '')}".rstrip()
