"""The plugin that schedules files of tests, where workers crash, in a project of its own."""

import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT

_ENDS = "import os\n\ndef test_ends():\n    os._exit(1)\n\n"
_PASSES = "def test_passes():\n    pass\n\n"
_HANGS = "import time\n\ndef test_hangs():\n    time.sleep(1000)\n\n"
_AFTER = "def test_after():\n    pass\n"


def _pytest(folder: Path, *arguments: str) -> str:
    """Return what pytest prints; by itself, xdist does not come to an end in these projects."""
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tools.whole_files", "--dist", "loadfile",
         "--no-loadscope-reorder", "--rootdir", folder, *arguments],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )  # fmt: skip
    assert ran.returncode == pytest.ExitCode.TESTS_FAILED, ran.stdout
    return ran.stdout


@pytest.mark.parametrize(
    ("files", "workers", "counts"),
    [
        # What a worker did before it crashed is not left for others to do.
        ([*[_PASSES] * 8, _ENDS], "2", "1 failed, 8 passed"),
        # A new worker gets a file of which one test is left, and the end.
        ([_ENDS + _AFTER], "1", "1 failed, 1 passed"),
        # Each crash fails one test.
        *(([_PASSES, _ENDS + _AFTER, _ENDS, _PASSES], n, "2 failed, 3 passed") for n in "12"),
    ],
    ids=["the last of many", "one is left", "two crash a worker", "two crash"],
)
def test_a_crash_fails_its_test_and_no_other(
    tmp_path: Path, files: list[str], workers: str, counts: str
) -> None:
    for i, text in enumerate(files):
        (tmp_path / f"test_{i}.py").write_text(text)
    output = _pytest(tmp_path, "-n", workers)
    assert counts in output
    for i, text in enumerate(files):
        crashes = f"crashed while running 'test_{i}.py::test_ends'"
        assert output.count(crashes) == text.count("def test_ends"), output


def test_a_test_that_hangs_is_named_with_what_it_does_and_fails(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(_HANGS + _AFTER)
    limits = ("faulthandler_timeout=5", "faulthandler_exit_on_timeout=true")
    output = _pytest(tmp_path, "-n", "1", *(x for limit in limits for x in ("-o", limit)))
    assert "crashed while running 'test_some.py::test_hangs'" in output
    assert "in test_hangs" in output[output.index("Timeout") :], "no traceback of the test"
    assert "1 failed, 1 passed" in output
