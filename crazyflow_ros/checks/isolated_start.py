"""Starts a module such that no user's files replace Python's modules; see `confinement.program`.

    python -I -S isolated_start.py PATHS PACKAGE MODULE [ARGUMENT ...]

Python's own modules come first, then PATHS, which is JSON. PACKAGE is the folder of this package.
"""

import json
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from runpy import run_module

if __name__ == "__main__":
    _, paths, package, *sys.argv = sys.argv
    sys.path += json.loads(paths)
    folder = Path(package)
    spec = PathFinder.find_spec(folder.name, [str(folder.parent)])
    assert spec is not None and spec.loader is not None, f"there is no package {package}"
    sys.modules[folder.name] = module = module_from_spec(spec)
    spec.loader.exec_module(module)
    run_module(sys.argv[0], run_name="__main__", alter_sys=True)
