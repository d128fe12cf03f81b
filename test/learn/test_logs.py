"""What is told of a training: curves, files of TensorBoard, refusals, sweeps."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest

from crazyflow_ros.learn import Evaluation, Progress
from crazyflow_ros.learn.__main__ import main
from crazyflow_ros.learn.logs import drawn, tensorboard

PROGRESS = [Progress(20 * i, 100 * i, 1 / i, float(i), {"near": i / 3}) for i in (1, 2, 3)]


def test_curves_are_drawn_from_the_smallest_to_the_largest_value() -> None:
    assert drawn([0.0, 1.0, 3.5, 7.0]) == "▁▂▅█"
    assert len(drawn(list(range(1000)))) == 40 and drawn([2.0, 2.0]) == "▁▁"


def test_tensorboard_reads_the_terms(tmp_path: Path) -> None:
    reader = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator",
        reason="TensorBoard is not installed",
    )
    write = tensorboard(tmp_path)
    for progress in PROGRESS:
        write(progress)
    found = reader.EventAccumulator(str(tmp_path), size_guidance={"tensors": 0})
    found.Reload()
    assert {"cost", "seconds", "terms/near"} <= set(found.Tags()["tensors"])
    events = found.Tensors("terms/near")
    values = [x.tensor_proto.float_val[0] for x in events]
    np.testing.assert_allclose(values, [1 / 3, 2 / 3, 1], rtol=1e-6)
    assert [x.step for x in events] == [20, 40, 60]


def test_a_package_that_is_missing_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "wandb", None)
    words = ["hover", "--wandb", "flights", "--out", str(tmp_path / "a.policy")]
    assert main(words) == 2
    assert "wandb is not installed: pip install wandb" in capsys.readouterr().err


@pytest.mark.parametrize(("wins", "n"), [(0, 10), (9, 10), (985, 1000), (1000, 1000)])
def test_intervals_are_wilsons(wins: int, n: int) -> None:
    flown = np.arange(n) < wins
    error = np.zeros((1, n))
    result = Evaluation(np.ones(1), error, error, error, flown, None)
    expected = binomtest(wins, n).proportion_ci(method="wilson")
    np.testing.assert_allclose(result.interval, (expected.low, expected.high), atol=1e-6)
    assert f"interval {100 * expected.low:.1f} to" in str(result)


def test_a_sweep_flies_a_policy_of_each_seed(capsys: pytest.CaptureFixture[str]) -> None:
    size = ["--updates", "40", "--worlds", "32", "--starts", "20"]
    assert main(["sweep", "hover", "--seeds", "4", "5", *size]) == 0
    lines = capsys.readouterr().out
    assert re.findall(r"seed (\d): \S+% \(", lines) == ["4", "5"]
    assert re.search(r"2 seeds: mean \S+%, standard deviation \S+%, ", lines)
