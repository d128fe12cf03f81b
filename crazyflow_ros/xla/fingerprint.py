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
    """Return JAX's configuration, in which threads may differ in precision, and the devices."""
    values = jax.config.values.items()
    fixed = sorted((k, v) for k, v in values if not k.startswith(_WHERE))
    return fixed, jax.dtypes.canonicalize_dtype(float), str(jax.devices())


def _processor() -> object:
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
        return [x for x in lines if x.startswith(("model name", "flags", "Features", "CPU part"))]
    return platform.machine()
