"""Training with any algorithm: progress, exact checkpoints, learning curves."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from crazyflow_ros.checks.archive import read_arrays, write_arrays
from crazyflow_ros.checks.files import write_file
from crazyflow_ros.checks.limits import open_file, shown_path
from crazyflow_ros.extras import extra
from crazyflow_ros.learn.division import Division, others_answer, whole_array
from crazyflow_ros.learn.learner import CHUNK, Learner
from crazyflow_ros.policy.network import Network
from crazyflow_ros.policy.policy import Policy
from crazyflow_ros.sim.worlds import put

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_BYTES = 256 * 1024 * 1024  # of a checkpoint


class Progress(NamedTuple):
    """Progress after a chunk of updates."""

    updates: int
    samples: int
    """Actions of all drones."""
    cost: float
    """Mean cost of a step in the chunk."""
    seconds: float
    """Time since `train` was called, including compilation."""
    terms: Mapping[str, float] = {}
    """Mean value of each term of the task in a step."""


class Training(NamedTuple):
    """Result of a training."""

    policy: Policy
    progress: list[Progress]


def train(
    learner: Learner,
    report: Callable[[Progress], None] = lambda _: None,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    compiled: Callable[[float], None] = lambda _: None,
    what: Sequence[object] = (),
) -> Training:
    """Train a policy.

    Args:
        learner: The algorithm.
        report: Called after each chunk of updates.
        checkpoint: File that is written after each chunk.
        resume: Continue from that file. The result is bitwise equal to that without a pause.
            Devices and processes may have changed, see `Settings.shards`.
        compiled: Called before the first update with the time that compilation took [s].
        what: Values whose `repr` tells this learner from any other, by which the cache of compiled
            code finds its code. Without them, the learner is traced to find it.

    If there are several processes, all must make the same call; the first writes the checkpoint.

    Raises:
        ValueError: The checkpoint is damaged, or was written with other settings.
        OSError: The checkpoint cannot be written.
        FloatingPointError: No update of a chunk has a finite cost.
        ConnectionError: Another process has ended, or cannot be reached.
    """
    settings, started = learner.settings, time.perf_counter()
    division = Division(learner)
    now, progress = division.begin(), list[Progress]()
    if resume:
        if checkpoint is None:
            raise ValueError("resuming needs a checkpoint")
        now, progress = _read(checkpoint, division, now)
        started -= progress[-1].seconds
    first, n_chunks = len(progress), settings.updates // CHUNK
    if first < n_chunks:
        compiling = time.perf_counter()
        update = division.compiled(now, division.inputs(first + 1), what)
        compiled(time.perf_counter() - compiling)
    for i in range(first, n_chunks):
        with others_answer():
            now, found_on_devices = update(now, division.inputs(i + 1))
            found = {name: np.asarray(x) for name, x in found_on_devices.items()}
            done, costs = (i + 1) * CHUNK, found.pop("cost")
        usable = costs[np.isfinite(costs)]
        if not usable.size:
            raise FloatingPointError(f"the cost is {costs[-1]} after {done} updates")
        cost = float(np.mean(usable))
        samples = done * division.n_drones * settings.horizon
        terms = {name: float(np.nanmean(x)) for name, x in found.items()}
        progress.append(Progress(done, samples, cost, time.perf_counter() - started, terms))
        if checkpoint is not None:
            _write(checkpoint, division, now, progress)
        report(progress[-1])
    return Training(policy_of(learner, learner.network(division.local(now))), progress)


def policy_of(learner: Learner, network: Network) -> Policy:
    """Return the policy that flies as a learner does, with a network that it has trained."""
    worlds, scale = learner.worlds, learner.worlds.scale
    mean: Any = np.zeros_like(scale)
    kind, task = type(learner).__name__.lower(), worlds.about["task"]
    return Policy(
        network=network,
        mean=mean,
        std=scale,  # type: ignore[arg-type]
        observation=worlds.observation,
        action=worlds.action,
        freq=worlds.freq,
        drone=worlds.drone,
        dynamics=worlds.dynamics,
        about=f"{task}, {kind}: {options_of(learner)}",
    )


def options_of(learner: Learner) -> str:
    """Return all that the algorithm does besides following the task, as text."""
    settings = {f.name: getattr(learner.settings, f.name) for f in fields(learner.settings)}
    about = learner.worlds.about
    given = settings | {"cost": about.get("cost", "the task's")}
    if "drawn" in about:
        given["drawn"] = about["drawn"]
    return ", ".join(f"{name}={value}" for name, value in given.items())


def learning_curve(progress: Sequence[Progress], title: str) -> Figure:
    """Return a plot of the cost over the samples, on a logarithmic axis with plain numbers."""
    with extra("learn"):
        from matplotlib.figure import Figure
        from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
    drawn = Figure(figsize=(6, 3.5), layout="constrained")
    axes = drawn.subplots()
    axes.plot([p.samples / 1e6 for p in progress], [p.cost for p in progress], marker=".")
    axes.set(xlabel="samples, million", ylabel="mean cost of a step", yscale="log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda cost, _: f"{cost:g}"))
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_title(title)
    axes.grid(visible=True, which="both", alpha=0.3)
    return drawn


def _about(division: Division) -> str:
    """Return what must be the same before and after a pause, as far as that can be compared."""
    learner, worlds = division.learner, division.learner.worlds
    n = (division.n_worlds, division.n_drones)
    about = {
        "kind": type(learner).__name__,
        "settings": asdict(learner.settings),
        "drones": (*n, worlds.drone, worlds.dynamics, worlds.freq),
        "observation": asdict(worlds.observation),
        "action": asdict(worlds.action),
        **worlds.about,
    }
    return json.dumps(about, default=repr)


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _write(path: str | Path, division: Division, now: Any, progress: list[Progress]) -> None:
    """Write a checkpoint, in the first process; it does not depend on how many there are."""
    leaves = [jax.random.key_data(x) if _is_key(x) else x for x in jax.tree.leaves(now)]
    arrays = {f"{i}": whole_array(x) for i, x in enumerate(leaves)}
    about = np.array(_about(division))
    if jax.process_index() == 0:
        rows = np.array([[*p[:4], *p.terms.values()] for p in progress])
        write_file(path, write_arrays({"about": about, "progress": rows, **arrays}))


def _read(path: str | Path, division: Division, like: Any) -> tuple[Any, list[Progress]]:
    """Return the state and the progress of a checkpoint, whose content is not trusted."""
    try:
        with open_file(path, _MOST_BYTES) as file:
            arrays = read_arrays(file, _MOST_BYTES)
        about, rows = arrays.pop("about", None), arrays.pop("progress", None)
        if about is None or str(about) != _about(division):
            raise ValueError("it was written with other settings")
        leaves, treedef = jax.tree.flatten(like)
        names = division.learner.worlds.terms
        if rows is None or rows.ndim != 2 or rows.shape[1] not in (4, 4 + len(names)):
            raise ValueError("it contains no progress")
        if not np.isfinite(rows[:, :4]).all():
            raise ValueError("it contains no progress")
        if set(arrays) != {f"{i}" for i in range(len(leaves))}:
            raise ValueError("it holds other arrays")
        read: list[Any] = [arrays[f"{i}"] for i in range(len(leaves))]
        for i, leaf in enumerate(leaves):
            array, is_key = read[i], _is_key(leaf)
            known = jax.random.key_data(leaf) if is_key else jnp.asarray(leaf)
            if array.shape != known.shape or array.dtype != known.dtype:
                raise ValueError(f"an array has shape {array.shape}, expected {known.shape}")
            again = put(array, known.sharding) if division.on_mesh else jnp.asarray(array)
            read[i] = jax.random.wrap_key_data(again) if is_key else again
    except (OSError, ValueError) as error:
        raise ValueError(f"cannot resume from {shown_path(path)}: {error}") from None
    progress = [
        Progress(int(a), int(b), float(c), float(d), dict(zip(names, map(float, terms))))
        for a, b, c, d, *terms in rows
    ]
    return jax.tree.unflatten(treedef, read), progress
