"""The plugin that runs failed tests again, in a project of its own."""

import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT

_TESTS = """
from pathlib import Path

HERE = Path(__file__).parent

def test_steady():
    print("steady spoke")

def test_unsteady():
    ran = HERE / "ran"
    first = not ran.exists()
    ran.touch()
    print("first" if first else "second", "attempt of the unsteady test")
    assert not first, "it was too busy"
"""
_BROKEN = """
def test_broken():
    assert 1 + 1 == 3
"""


def _pytest(folder: Path, *arguments: str) -> tuple[int, str]:
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tools.second_try", "--rootdir", folder, *arguments],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    return ran.returncode, ran.stdout


@pytest.mark.parametrize("workers", ["0", "2"])
def test_an_unsteady_test_does_not_fail_the_run_and_is_printed_last(tmp_path, workers):
    (tmp_path / "test_some.py").write_text(_TESTS)
    code, output = _pytest(tmp_path, "-n", workers, "-rP")
    assert code == 0, output
    last = output[output.rindex("UNSTEADY: ") :]
    assert last.startswith("UNSTEADY: test_some.py::test_unsteady\n")
    assert output.index("1 failed, 1 passed") < output.index(last)
    assert "it was too busy" in last
    assert "first attempt of the unsteady test" in last
    assert last.rstrip().endswith("1 unsteady, to be mended:\n  test_some.py::test_unsteady")


def test_a_test_that_fails_twice_fails_the_run(tmp_path):
    (tmp_path / "test_some.py").write_text(_TESTS + _BROKEN)
    code, output = _pytest(tmp_path, "-n", "0")
    assert code == 1
    assert "failed again" in output
    assert "UNSTEADY: test_some.py::test_unsteady" in output
    assert "UNSTEADY: test_some.py::test_broken" not in output


def test_many_failures_are_no_unsteadiness(tmp_path):
    tests = "".join(f"def test_{i}():\n    assert False\n" for i in range(21))
    (tmp_path / "test_some.py").write_text(tests)
    code, output = _pytest(tmp_path, "-n", "0")
    assert code == 1
    assert "runs again" not in output


def test_a_file_that_cannot_be_read_fails_the_run(tmp_path):
    (tmp_path / "test_some.py").write_text(_TESTS)
    (tmp_path / "test_other.py").write_text("import nothing_of_that_name\n")
    code, output = _pytest(tmp_path, "-n", "0", "--continue-on-collection-errors")
    assert code != 0, output
