"""Folders with files that would take the place of Python's own modules."""

from __future__ import annotations

from pathlib import Path

HIDDEN = (
    *("abc", "codecs", "collections", "enum", "json", "os", "pickle", "random", "re", "types"),
    *("sitecustomize", "usercustomize", "numpy", "mujoco", "h5py", "onnx", "collada", "glfw"),
    *("typing", "ctypes", "rclpy", "jax", "yaml", "viser", "mcap", "multiprocessing"),
)
"""Names of modules that processes of the product import, or Python when it starts."""
_TRACE = "trace"


def hiding(folder: Path) -> Path:
    """Make a folder in which files have such names; one that is run leaves a trace and ends."""
    folder.mkdir(exist_ok=True)
    for name in HIDDEN:
        trace = f"open({str(folder / _TRACE)!r}, 'a').write('{name} ')\nraise SystemExit(1)\n"
        (folder / f"{name}.py").write_text(trace)
    return folder


def ran(folder: Path) -> str:
    """The names of those that were run."""
    trace = folder / _TRACE
    return trace.read_text() if trace.exists() else ""
