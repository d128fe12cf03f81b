"""Options of XLA that only its flags can set, for all of a process."""

from __future__ import annotations

import os
import sys

_FUSED = "--xla_backend_extra_options=xla_cpu_use_multi_output_fusion"


def fuse_outputs() -> None:
    """Let XLA compute several results in one kernel on the CPU, unless JAX is imported already.

    Otherwise gradients of equations of motion consist of hundreds of short kernels, whose calls
    take most of the time. Kernels of `blocks` gain nothing from it.
    """
    if "jax" not in sys.modules:  # XLA reads the flags once
        os.environ["XLA_FLAGS"] = f"{_FUSED} {os.environ.get('XLA_FLAGS', '')}".rstrip()
