"""Trainings that devices and processes share: the same policy, and what happens at a death."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from divided_training import SHARDS, learner, weights_of
from paths import ROOT

from crazyflow_ros.envs import Environment, Hover
from crazyflow_ros.learn.__main__ import main
from crazyflow_ros.learn.bptt import Bptt, BpttSettings
from crazyflow_ros.learn.quick import QuickHover
from crazyflow_ros.learn.ready import APPROACHING
from crazyflow_ros.learn.training import train


def run(n_processes: int, folder: Path, *how: str) -> list[tuple[int, str]]:
    """Return exit codes and errors of the processes of a training."""
    folder.mkdir(exist_ok=True)
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    script = ROOT / "test" / "divided_training.py"
    processes = [
        subprocess.Popen(
            [sys.executable, str(script), str(port), str(n_processes), str(i), str(folder), *how],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for i in range(n_processes)
    ]
    try:
        errors = [process.communicate(timeout=240)[1] for process in processes]
    finally:
        for process in processes:
            process.kill()
    return [(process.returncode, error) for process, error in zip(processes, errors)]


@pytest.mark.soak
def test_two_processes_train_the_policy_of_one_device(tmp_path: Path) -> None:
    ended = run(2, tmp_path)
    assert [code for code, _ in ended] == [0, 0], ended
    assert (tmp_path / "devices.txt").read_text() == "2 2"
    alone = weights_of(train(learner(None)))
    first = jax.tree.leaves(learner(None).network(learner(None).begin(range(4))))
    begun = np.concatenate([np.ravel(x) for x in first])
    shared = np.load(tmp_path / "weights.npy")
    assert np.abs(alone - begun).max() > 0.01  # it has learned
    np.testing.assert_allclose(shared, alone, rtol=1e-3, atol=1e-4)  # sums in another order


def test_after_a_process_was_killed_one_with_two_devices_resumes(tmp_path: Path) -> None:
    (code, error), (killed, _) = run(2, tmp_path, "die")
    assert killed == -signal.SIGKILL
    assert code == 7 and "another process has ended or cannot be reached" in error
    ((code, error),) = run(1, tmp_path, "resume")
    assert code == 0, error
    assert (tmp_path / "devices.txt").read_text() == "1 2"
    # To the bit: the same two numbers are added up, in whatever order.
    resumed, whole = (np.load(tmp_path / f"{name}.npy") for name in ("weights", "whole"))
    np.testing.assert_array_equal(resumed, whole)


ON_TWO_DEVICES = """
import jax, numpy as np
jax.config.update("jax_num_cpu_devices", 2)
from crazyflow_ros.envs import Environment, Hover, QuadrotorVectorEnv
from crazyflow_ros.learn import Ppo, PpoSettings, train
mesh = jax.make_mesh((2,), ("worlds",))
options = {"freq": 50, "action": "rotor_vel"}
seen = []
for where in (None, mesh):
    envs = QuadrotorVectorEnv(4, Hover(), mesh=where, **options)
    steps = [envs.reset(seed=3)[0]]
    for i in range(3):
        steps += envs.step(np.full((4, 4), 0.1 * i, np.float32))[:2]
    seen.append(np.concatenate([np.ravel(x) for x in steps]))
np.testing.assert_allclose(*seen, rtol=1e-5, atol=1e-6)
policies = []
for where in (None, mesh):
    env = Environment(8, Hover(), mesh=where, **options)
    size = {"horizon": 4, "updates": 20, "hidden": 4, "minibatches": 2, "epochs": 1}
    settings = PpoSettings(**size, shards=2, spread={"J": (0.8, 1.2)})
    policies.append(train(Ppo(env, settings)).policy.network)
for a, b in zip(*map(jax.tree.leaves, policies)):
    np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)
"""


@pytest.mark.soak
def test_two_devices_step_and_train_the_environment_of_one() -> None:
    command, env = [sys.executable, "-c", ON_TWO_DEVICES], os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr


def test_shards_have_random_numbers_of_their_own() -> None:
    begun = learner(None).begin(range(SHARDS)).worlds.body
    parts = np.split(np.asarray(begun), SHARDS)
    assert len(np.unique(begun[:, 0])) == len(begun)
    for k, part in enumerate(parts):  # whatever shards are on the same device
        others = learner(None)
        others.worlds.n = others.worlds.num_envs = len(part)
        np.testing.assert_array_equal(others.begin([k]).worlds.body, part)


def test_worlds_that_shards_or_devices_cannot_share_are_refused() -> None:
    class Two:  # all that is asked of a mesh before it is used
        size, devices = 2, ()

    mesh: Any = Two()
    for build, named in (
        (lambda: QuickHover(3, APPROACHING, mesh=mesh), "worlds .*2 devices, got 3"),
        (lambda: Bptt(QuickHover(4, APPROACHING, mesh=mesh)), r"shards .*\(2\) .*\(4\), got 1"),
        (lambda: Bptt(Environment(4, Hover()), BpttSettings(shards=3)), r"\(1\) .*\(4\), got 3"),
    ):
        with pytest.raises(ValueError, match=named):
            build()


@pytest.mark.parametrize(
    ("words", "option", "value"),
    [
        ("--devices 0", "--devices", "got 0"),
        ("--host 0", "--host", "--hosts"),
        ("--coordinator a:1", "--coordinator", "--hosts"),
        ("--hosts many", "--hosts", "got many"),
        ("--hosts 2", "--host", "got None"),
        ("--hosts 2 --host 2", "--host", "got 2"),
        ("--hosts 2 --host 1 --coordinator here", "--coordinator", "got here"),
    ],
)
def test_refusals_of_devices_and_processes_name_the_value(
    words: str, option: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["hover", *words.split()]) == 2
    said = capsys.readouterr().err
    assert f"{option} " in said and value in said
