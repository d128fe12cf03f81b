"""`python -m crazyflow_ros.learn`: train a policy, or count its successful flights."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

_STARTED = time.perf_counter()


def main(words: list[str] | None = None) -> int:
    """Run the command.

    Returns:
        Exit code: 0 if it was carried out, 2 for wrong arguments or files.
    """
    arguments = _parser().parse_args(words)
    try:
        if arguments.command == "evaluate":
            _evaluate(arguments)
        else:
            _train(arguments)
    except (ValueError, OSError, FloatingPointError, ModuleNotFoundError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="learn", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    tasks = {"hover": "from any attitude to a point", "figure_eight": "along an eight"}
    for task, text in tasks.items():
        train = commands.add_parser(task, help=f"train a policy that flies {text}")
        train.add_argument("--algorithm", choices=("bptt", "ppo"), default="bptt")
        train.add_argument("--out", type=Path, help="policy file (default TASK.policy)")
        train.add_argument("--curve", type=Path, help="picture of the cost, a PNG")
        train.add_argument("--checkpoint", type=Path, help="file written during the training")
        train.add_argument("--resume", action="store_true", help="continue from the checkpoint")
        train.add_argument("--drone", help="model, or path of a drone's folder")
        for name in ("seed", "updates", "worlds", "horizon"):
            train.add_argument(f"--{name}", type=int)
        train.add_argument("--learning-rate", type=float)
        if task == "figure_eight":
            train.add_argument("--period", type=float, help="duration of an eight, s")
    check = commands.add_parser("evaluate", help="fly a policy from random starts in Sim")
    check.add_argument("policy", type=Path)
    check.add_argument("--task", choices=tuple(tasks), default="hover")
    check.add_argument("--period", type=float, help="duration of an eight, s")
    check.add_argument("--starts", type=int, default=1000)
    check.add_argument("--seconds", type=float, default=5.0)
    check.add_argument("--seed", type=int, default=0)
    return parser


def _given(arguments: argparse.Namespace, *names: str) -> dict[str, object]:
    found = {name: getattr(arguments, name, None) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def _train(arguments: argparse.Namespace) -> None:
    # After the arguments have been checked, so that the help is quick.
    from crazyflow_ros.learn.bptt import Bptt, BpttSettings
    from crazyflow_ros.learn.curve import draw
    from crazyflow_ros.learn.flight import Task
    from crazyflow_ros.learn.ppo import Ppo, PpoSettings
    from crazyflow_ros.learn.training import Learner, Progress, train
    from crazyflow_ros.policy.files import save

    task = Task(arguments.command, **_given(arguments, "period"))  # type: ignore[arg-type]
    names = ("seed", "updates", "worlds", "horizon", "learning_rate", "drone")
    given = {"task": task, **_given(arguments, *names)}
    learner: Learner
    if arguments.algorithm == "bptt":
        learner = Bptt(BpttSettings(**given))  # type: ignore[arg-type]
    else:
        learner = Ppo(PpoSettings(**given))  # type: ignore[arg-type]
    out = arguments.out or Path(f"{arguments.command}.policy")
    for path in filter(None, (out, arguments.curve, arguments.checkpoint)):
        if not path.absolute().parent.is_dir():
            raise ValueError(f"there is no folder {path.absolute().parent} for {path.name}")

    def report(progress: Progress) -> None:
        print(
            f"{time.perf_counter() - _STARTED:6.1f} s  {progress.samples / 1e6:6.2f} M samples  "
            f"cost {progress.cost:.4f}",
            flush=True,
        )

    policy, progress = train(learner, report, arguments.checkpoint, arguments.resume)
    save(policy, out)
    print(f"{time.perf_counter() - _STARTED:6.1f} s  wrote {out}")
    if arguments.curve:
        draw(progress, f"{task.name}, {arguments.algorithm}", arguments.curve)


def _evaluate(arguments: argparse.Namespace) -> None:
    from crazyflow_ros.learn.evaluate import evaluate
    from crazyflow_ros.learn.flight import Task
    from crazyflow_ros.policy.files import load

    task = Task(arguments.task, **_given(arguments, "period"))  # type: ignore[arg-type]
    policy = load(arguments.policy)
    print(evaluate(policy, task, arguments.starts, arguments.seconds, arguments.seed))


if __name__ == "__main__":
    sys.exit(main())
