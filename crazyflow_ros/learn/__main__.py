"""`python -m crazyflow_ros.learn`: train a policy, or count its successful flights."""

from __future__ import annotations

import argparse
import io
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crazyflow_ros.checks.files import write_file
from crazyflow_ros.checks.program_end import in_words, quiet_if_unread
from crazyflow_ros.learn.mesh import add_options, leave, mesh_of
from crazyflow_ros.xla.flags import fuse_outputs, silence_alarms

if TYPE_CHECKING:
    from jax.sharding import Mesh

    from crazyflow_ros.drones import AnyDrone
    from crazyflow_ros.envs.task import Task
    from crazyflow_ros.learn.learner import Learner
    from crazyflow_ros.learn.logs import Report
    from crazyflow_ros.learn.ready import Ready
    from crazyflow_ros.learn.training import Training
    from crazyflow_ros.policy.policy import Policy
    from crazyflow_ros.sim.randomize import ResetStage

_STARTED = time.perf_counter()

TASKS = (
    "hover",
    "recovery",
    "reach",
    "carry",
    "velocity",
    "landing",
    "figure_eight",
    "race",
    "race_by_depth",
    "recovery_by_depth",
)
"""Names in `ready.READY`, which is imported later, so that the help is quick."""

SEEING = ("race_by_depth", "recovery_by_depth")
"""Those that are learned by perception."""


def main(words: list[str] | None = None) -> int:
    """Run the command.

    Returns:
        Exit code: 0 if it was carried out, 2 for wrong arguments or files.
    """
    silence_alarms()
    arguments = _parser().parse_args(words)
    try:
        if arguments.command == "evaluate":
            _evaluate(arguments)
        elif arguments.command == "sweep":
            _sweep(arguments)
        else:
            _train(arguments)
    except (ValueError, OSError, FloatingPointError, ModuleNotFoundError) as error:
        print(f"error: {in_words(error)}", file=sys.stderr)
        return leave(2)
    except KeyboardInterrupt:
        return leave(130)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="learn", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in TASKS:
        train = commands.add_parser(name, help=f"train a policy for the task {name}")
        if name in SEEING:
            train.add_argument("--teacher", type=Path, help="policy (default: it is trained first)")
            train.set_defaults(algorithm="perception")
        else:
            train.add_argument("--algorithm", choices=("bptt", "ppo"), default="bptt")
        train.add_argument("--out", type=Path, help="policy file (default TASK.policy)")
        train.add_argument("--curve", type=Path, help="PNG file of the learning curve")
        train.add_argument("--tensorboard", type=Path, help="folder for files of TensorBoard")
        train.add_argument("--wandb", metavar="PROJECT", help="project of Weights & Biases")
        train.add_argument("--checkpoint", type=Path, help="file written during the training")
        train.add_argument("--resume", action="store_true", help="continue from the checkpoint")
        train.add_argument("--drone", help="model, or path of a drone's folder")
        for number in ("seed", "updates", "worlds", "horizon"):
            train.add_argument(f"--{number}", type=int)
        train.add_argument("--shards", type=int, help="see Settings (default: one per device)")
        train.add_argument("--learning-rate", type=float)
        _add_fields(train)
        add_options(train)
    sweep = commands.add_parser("sweep", help="train with several seeds, and fly each policy")
    sweep.add_argument("task", choices=[name for name in TASKS if name not in SEEING])
    sweep.add_argument("--algorithm", choices=("bptt", "ppo"), default="bptt")
    sweep.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    sweep.add_argument("--starts", type=int, default=1000, help="flights of each policy")
    sweep.add_argument("--drone", help="model, or path of a drone's folder")
    for number in ("updates", "worlds"):
        sweep.add_argument(f"--{number}", type=int)
    _add_fields(sweep)
    check = commands.add_parser("evaluate", help="fly a policy from random starts in Sim")
    check.add_argument("policy", type=Path)
    check.add_argument("--task", choices=TASKS, default="hover")
    check.add_argument("--starts", type=int, default=1000)
    check.add_argument(
        "--seconds", type=float, help="duration of a flight [s] (default: an episode)"
    )
    check.add_argument("--seed", type=int, default=0)
    _add_fields(check)
    add_options(check)
    return parser


def _add_fields(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--period", type=float, help="duration of a figure-eight [s]")
    parser.add_argument("--laps", type=int, help="laps of a race")
    parser.add_argument(
        "--randomize", type=Path, help="YAML file of what differs between drones and flights"
    )


def _given(arguments: argparse.Namespace, *names: str) -> dict[str, Any]:
    found = {name: getattr(arguments, name, None) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def _task(arguments: argparse.Namespace, name: str, drone: AnyDrone, **fields: Any) -> Task:
    from crazyflow_ros.learn.ready import READY

    given = _given(arguments, "period", "laps")
    try:
        return READY[name].task(drone, **given, **fields)
    except TypeError:
        raise ValueError(f"the task {name} has no {' or '.join(given)}") from None


def _ready(arguments: argparse.Namespace, name: str) -> Ready:
    """Return the settings of a task, with what the option --randomize declares."""
    from crazyflow_ros.learn.ready import READY

    ready, declared = READY[name], _declared(arguments)
    if not declared:
        return ready
    return replace(ready, quick=False, randomizers=(*ready.randomizers, *declared))


def _declared(arguments: argparse.Namespace) -> tuple[ResetStage, ...]:
    from crazyflow_ros.sim import randomizers

    return () if arguments.randomize is None else randomizers(arguments.randomize)


def _train(arguments: argparse.Namespace) -> None:
    name = arguments.command
    _say(f"{name}, {arguments.algorithm}: importing JAX")
    fuse_outputs()
    # After the arguments have been checked, so that the help is quick.
    import jax

    from crazyflow_ros.drones import DEFAULT_DRONE
    from crazyflow_ros.learn.training import learning_curve
    from crazyflow_ros.policy import save

    mesh = mesh_of(arguments)
    drone, ready = arguments.drone or DEFAULT_DRONE, _ready(arguments, name)
    task = _task(arguments, name, drone, **ready.training)
    given = _given(arguments, "seed", "updates", "horizon", "learning_rate", "shards", "worlds")
    if mesh is not None:
        given = {"shards": mesh.size, **given}
    out = arguments.out or Path(f"{name}.policy")
    for path in filter(None, (out, arguments.curve, arguments.checkpoint)):
        if not path.absolute().parent.is_dir():
            raise ValueError(f"there is no folder {path.absolute().parent} for {path.name}")
    teacher = None
    if ready.teacher is not None:
        teacher = _teacher(arguments, ready.teacher, task, drone, mesh, out)
    learner = ready.learner(arguments.algorithm, task, drone, mesh, teacher, **given)
    policy, progress = _trained(
        learner,
        arguments.checkpoint,
        arguments.resume,
        # The weights of a teacher are part of the code, and so too much to name.
        () if teacher is not None else _what(name, learner, task, drone, arguments),
        _logs(arguments, learner),
    )
    took = _passed()
    if jax.process_index() > 0:
        return
    save(policy, out)
    _say(f"wrote {out}")
    if arguments.curve:
        picture = io.BytesIO()
        figure = learning_curve(progress, f"{name}, {arguments.algorithm}: {took:.1f} s")
        figure.savefig(picture, format="png", dpi=120)
        write_file(arguments.curve, picture.getvalue())
        _say(f"wrote {arguments.curve}")


def _teacher(
    arguments: argparse.Namespace,
    ready: Ready,
    task: Task,
    drone: AnyDrone,
    mesh: Mesh | None,
    out: Path,
) -> Policy:
    """Return the given teacher, or a new one, which is also written to a file beside `out`."""
    import jax

    from crazyflow_ros.policy import load, save

    if arguments.teacher is not None:
        return load(arguments.teacher)
    given = _given(arguments, "seed", "shards")
    _say("the teacher, bptt")
    learner = ready.learner("bptt", task, drone, mesh, **given)
    policy, _ = _trained(
        learner, what=_what(f"teacher of {arguments.command}", learner, task, drone, arguments)
    )
    file = out.with_name(f"{out.stem}_teacher{out.suffix}")
    if jax.process_index() == 0:
        save(policy, file)
        _say(f"wrote {file}; with --teacher {file} it is not trained again")
    return policy


def _trained(
    learner: Learner,
    checkpoint: Path | None = None,
    resume: bool = False,
    what: tuple[object, ...] = (),
    logs: Sequence[Report] = (),
) -> Training:
    """Train, and say how far it has come; see `train`."""
    import jax

    from crazyflow_ros.learn.learner import CHUNK
    from crazyflow_ros.learn.logs import drawn
    from crazyflow_ros.learn.training import Progress, options_of, train
    from crazyflow_ros.xla.compiled_files import open_cache
    from crazyflow_ros.xla.start_up import telling

    mesh, settings = learner.worlds.mesh, learner.settings
    size, device = 1 if mesh is None else mesh.size, jax.devices()[0].device_kind
    drones, on = learner.worlds.n * size, device if size == 1 else f"{size} devices ({device})"
    _say(
        f"{settings.updates} updates of {settings.horizon} actions of {drones} drones, on {on}; "
        "compiling, which takes from some seconds to a minute"
    )
    _say(f"options: {options_of(learner)}")
    compilation = ExitStack()
    begun, resumed = 0.0, -1  # when the updates begin, and how many of them are done by then

    def note_compiled(seconds: float) -> None:
        nonlocal begun
        compilation.close()
        begun = time.perf_counter()
        _say(f"compiled in {seconds:.1f} s")

    def report(progress: Progress) -> None:
        nonlocal resumed
        done, total = progress.updates, settings.updates
        resumed = done - CHUNK if resumed < 0 else resumed
        left = (time.perf_counter() - begun) / (done - resumed) * (total - done)
        for log in logs:
            log(progress)
        terms = "".join(f"{name} {value:.3g}  " for name, value in progress.terms.items())
        _say(
            f"{progress.samples / 1e6:6.2f} M samples  cost {progress.cost:.4f}  {terms}"
            f"{done} of {total} updates{f', {left:.0f} s left' if done < total else ''}"
        )

    code = open_cache(_say)
    code.postpone()  # until the updates are done
    with compilation:
        compilation.enter_context(telling("compiling", _say))
        training = train(learner, report, checkpoint, resume, note_compiled, what)
    code.close()
    curves = {"cost": [p.cost for p in training.progress]}
    curves |= {x: [p.terms[x] for p in training.progress] for x in training.progress[-1].terms}
    for curve, values in curves.items() if len(training.progress) > 1 else ():
        _say(f"{curve:>12} {values[0]:9.3g} {drawn(values)} {values[-1]:.3g}")
    return training


def _logs(arguments: argparse.Namespace, learner: Learner) -> list[Report]:
    """Return what is told of the progress besides the terminal."""
    import jax

    from crazyflow_ros.learn import logs
    from crazyflow_ros.learn.training import options_of

    if jax.process_index() > 0:
        return []
    found: list[Report] = []
    if arguments.tensorboard:
        found.append(logs.tensorboard(arguments.tensorboard))
    if arguments.wandb:
        found.append(logs.wandb(arguments.wandb, options_of(learner)))
    return found


def _sweep(arguments: argparse.Namespace) -> None:
    """Train with each seed, fly each policy from the same starts, and print the results."""
    fuse_outputs()
    import numpy as np

    from crazyflow_ros.drones import DEFAULT_DRONE
    from crazyflow_ros.learn.evaluation import evaluate

    name, drone, shares = arguments.task, arguments.drone or DEFAULT_DRONE, []
    ready, goal = _ready(arguments, name), _task(arguments, name, drone)
    task = _task(arguments, name, drone, **ready.training)
    given, drawn = _given(arguments, "updates", "worlds"), _declared(arguments)
    for seed in arguments.seeds:
        learner = ready.learner(arguments.algorithm, task, drone, seed=seed, **given)
        policy, progress = _trained(learner, what=_what(name, learner, task, drone, arguments))
        what = "evaluate", goal, arguments.starts, None, _figures(drone, arguments)
        result = evaluate(policy, goal, arguments.starts, seed=1, what=what, randomizers=drawn)
        low, high = result.interval
        shares.append(result.success)
        seconds = f"{progress[-1].seconds:.1f} s"
        _say(f"seed {seed}: {result.success:.1%} ({low:.1%} to {high:.1%}), trained in {seconds}")
    spread = f", standard deviation {np.std(shares, ddof=1):.1%}" if len(shares) > 1 else ""
    least, most = min(shares), max(shares)
    _say(f"{len(shares)} seeds: mean {np.mean(shares):.1%}{spread}, {least:.1%} to {most:.1%}")


def _what(
    name: str, learner: Learner, task: Task, drone: AnyDrone, arguments: argparse.Namespace
) -> tuple[object, ...]:
    """Return all that the code of a learner depends on besides this package."""
    kind, worlds = type(learner).__name__, learner.worlds.n
    return "learn", name, kind, learner.settings, worlds, task, _figures(drone, arguments)


def _say(text: str) -> None:
    jax = sys.modules.get("jax")
    if jax is not None and jax.distributed.is_initialized() and jax.process_index() > 0:
        return
    print(f"{_passed():6.1f} s  {text}", flush=True)


def _passed() -> float:
    """Return the time since the command was started [s]."""
    return time.perf_counter() - _STARTED


def _evaluate(arguments: argparse.Namespace) -> None:
    import jax

    from crazyflow_ros.learn.evaluation import evaluate
    from crazyflow_ros.policy import load
    from crazyflow_ros.xla.compiled_files import open_cache

    mesh, policy = mesh_of(arguments), load(arguments.policy)
    task, a = _task(arguments, arguments.task, policy.drone), arguments
    what = "evaluate", task, a.starts, a.seconds, _figures(policy.drone, a)
    drawn = _declared(a)
    open_cache(_say)
    result = evaluate(
        policy, task, a.starts, a.seconds, a.seed, mesh=mesh, what=what, randomizers=drawn
    )
    if jax.process_index() == 0:
        print(result)


def _figures(drone: AnyDrone, arguments: argparse.Namespace) -> tuple[object, ...]:
    """Return a drone's name or folder, its file of figures, and the file of what is drawn."""
    from crazyflow_ros.drones import resolve
    from crazyflow_ros.drones.folders import FIGURES, folder_of

    drawn = b"" if arguments.randomize is None else arguments.randomize.read_bytes()
    return resolve(drone), (folder_of(drone) / FIGURES).read_bytes(), drawn


if __name__ == "__main__":
    sys.exit(quiet_if_unread(main))
