"""What compiled code depends on besides its arguments: source, versions, machine, settings."""

from __future__ import annotations

import hashlib
import os
import platform
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

import jax
from jax.extend.backend import get_backend

_WHERE = ("jax_compilation_cache", "jax_persistent_cache")  # change no compiled code


@cache
def source() -> str:
    """Return a digest of the source of this package."""
    digest, package = hashlib.sha256(), Path(__file__).parents[1]
    for pattern in ("*.py", "*.toml"):
        for file in sorted(package.rglob(pattern)):
            digest.update(f"{file.relative_to(package)}\0".encode() + file.read_bytes())
    return digest.hexdigest()


@cache
def machine() -> tuple[object, ...]:
    """Return versions, processor and XLA's flags."""
    versions = [version(name) for name in ("jax", "jaxlib", "numpy")]
    flags = os.environ.get("XLA_FLAGS"), os.environ.get("LIBTPU_INIT_ARGS")
    return platform.python_version(), versions, _processor(), flags


def configuration() -> tuple[object, ...]:
    """Return JAX's configuration, in which threads may differ, and the devices."""
    values = jax.config.values  # those of the process
    names = sorted(name for name in values if not name.startswith(_WHERE))
    fixed = [(name, str(getattr(jax.config, name, values[name]))) for name in names]
    kinds = [(device.id, device.device_kind) for device in jax.devices()]
    return fixed, kinds, get_backend().platform_version


def _processor() -> object:
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
        return [x for x in lines if x.startswith(("model name", "flags", "Features", "CPU part"))]
    return platform.machine()
