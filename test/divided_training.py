"""A small training that processes share, for test_division.

    python divided_training.py PORT N_PROCESSES PROCESS FOLDER [resume | die]

With one process, its two devices share the training. The first process writes the weights; one
that has resumed also those of a training without a pause.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh

from crazyflow_ros.learn.batch import Step
from crazyflow_ros.learn.ppo import Ppo, PpoSettings
from crazyflow_ros.learn.quick import QuickHover, QuickState
from crazyflow_ros.learn.ready import SPREAD
from crazyflow_ros.learn.training import CHUNK, Progress, Training, train

DEVICES = 2  # of all processes
SHARDS = 4


class Drifting(QuickHover):
    """Drones that move as they are told: an update compiles in a fraction of the time."""

    def step(self, state: QuickState, action: Array) -> tuple[QuickState, Step]:
        factor = self.drones.params.J[:, 0, :1] / 1e-5  # other ones for each drone
        body = state.body.at[:, :3].add(0.1 * factor * action[:, :3])
        after, no = state._replace(body=body, action=action), jnp.zeros(self.n, bool)
        cost = (body[:, :3] ** 2).sum(axis=-1)
        return after, Step(cost, no, cost > 20, no, no, self.privileged(state))


def learner(mesh: Mesh | None) -> Ppo:
    settings = PpoSettings(
        horizon=4,
        updates=2 * CHUNK,
        hidden=4,
        spread=SPREAD,
        minibatches=2,
        epochs=2,
        shards=SHARDS,
    )
    return Ppo(Drifting(16, ("body_position_error",), mesh=mesh), settings)


def weights_of(result: Training) -> np.ndarray:
    leaves = jax.tree.leaves(result.policy.network)
    return np.concatenate([np.ravel(np.asarray(x)) for x in leaves])


def main(port: str, n_processes: str, process: str, folder: str, how: str = "") -> None:
    first, checkpoint = process == "0", Path(folder) / "checkpoint.npz"
    if n_processes == "1":
        jax.config.update("jax_num_cpu_devices", DEVICES)
    else:
        jax.distributed.initialize(
            f"localhost:{port}", int(n_processes), int(process), heartbeat_timeout_seconds=60
        )
    mesh = jax.make_mesh((jax.device_count(),), ("worlds",))

    def report(progress: Progress) -> None:
        if progress.updates == CHUNK and how == "die" and not first:
            os.kill(os.getpid(), signal.SIGKILL)

    try:
        result = train(learner(mesh), report, checkpoint, how == "resume")
    except ConnectionError as error:
        print(error, file=sys.stderr, flush=True)
        os._exit(7)  # JAX would wait for the other process
    if first:
        np.save(Path(folder) / "weights.npy", weights_of(result))
        if how == "resume":
            np.save(Path(folder) / "whole.npy", weights_of(train(learner(mesh))))
        (Path(folder) / "devices.txt").write_text(f"{jax.process_count()} {jax.device_count()}")


if __name__ == "__main__":
    main(*sys.argv[1:])
