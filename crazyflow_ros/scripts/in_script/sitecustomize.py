"""Lets this process live in simulated time, then runs the `sitecustomize` that the user has.

Python imports it at its start, because a lock-step has put its folder on the path.
"""

from __future__ import annotations

import importlib
import json
import os
import sys

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_LAUNCHERS = ("ros2",)  # programs in Python that only start others


def _main() -> None:
    begin = importlib.import_module("simulated_time").begin
    variable = importlib.import_module("simulated_time.channel").VARIABLE
    settings = os.environ.get(variable)
    is_launcher = any(os.path.basename(word) in _LAUNCHERS for word in sys.orig_argv[1:2])
    if settings is not None and not is_launcher:
        del os.environ[variable]
        given = json.loads(settings)
        try:
            begin(given)
        except Exception as error:  # Python would go on, in wall time
            print(f"lock-step: simulated time cannot begin: {error!r}", file=sys.stderr)
            os._exit(1)
        if given["python_path"] is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = given["python_path"]
        sys.path[:] = [path for path in sys.path if path not in given["folders"]]


def _go_on() -> None:
    """Import the next `sitecustomize` on the path, in place of this one."""
    own = sys.modules.pop(__name__)
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != _FOLDER]
    importlib.invalidate_caches()
    try:
        importlib.import_module(__name__)
    except ModuleNotFoundError as error:
        if error.name != __name__:
            raise
    finally:
        sys.modules.setdefault(__name__, own)


_main()
_go_on()
