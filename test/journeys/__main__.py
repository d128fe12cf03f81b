"""Walks at random across the features of simulators: `make journeys`.

    make journeys ARGS="--steps 5000 --seed 7"
    make journeys ARGS="--replay out/journeys/seed7.walk"

A simulator runs as its users start it, beside other processes that come and go. Each step is drawn
from all that fits; after each, the simulator is compared with a model of what has to hold. What
fails is printed with the shortest walk that repeats it. CONTRIBUTING.md explains
more.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ros_client import own_domain

from journeys.shrink import Shrinking
from journeys.step import Broken, Step, load, save
from journeys.walk import Walk


def main(words: Sequence[str] | None = None) -> int:
    """Walk, and return the exit code: 1 if something fails."""
    options = _parser().parse_args(words)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # its processes end with it
    with ExitStack() as stack:
        journeys = Journeys(_browser(stack), quiet=options.quiet)
        if options.replay:
            for _ in range(options.times):
                if failure := journeys.attempt(load(options.replay)):
                    print(failure)
                    return 1
            return 0
        failed = journeys.random(options)
        if failed is None:
            return 0
        failure, steps = failed
        print(f"seed {options.seed}, step {len(steps)}: {failure}\n")
        path = options.out / f"seed{options.seed}.walk"
        save(path, steps)
        path.with_suffix(".log").write_text(journeys.log)
        shortest = Shrinking(failure.what, journeys.attempt, options.shrink).shortest(steps)
        save(path, shortest)
        print(f"seed {options.seed}: {failure.what}\nthe shortest walk that was found:")
        print(*(f"  {step}" for step in shortest), sep="\n")
        print(f'walk it again: make journeys ARGS="--replay {path}"; log: {path.stem}.log')
    return 1


class Journeys:
    """Walks, one after the other.

    Args:
        browser: Of Playwright; None: there is none.
        quiet: Whether steps are not printed.
    """

    def __init__(self, browser: Any = None, *, quiet: bool = False) -> None:
        self._browser, self._quiet = browser, quiet
        self._domain = own_domain("journeys")
        self._began = time.monotonic()
        self.log = ""
        """Of the last simulator of the last walk that failed."""

    @contextmanager
    def _walk(self) -> Iterator[Walk]:
        with TemporaryDirectory() as folder, Walk(Path(folder), self._domain, self._tell) as walk:
            walk.browser = self._browser
            yield walk

    def _tell(self, text: str) -> None:
        if not self._quiet:
            print(f"{time.monotonic() - self._began:7.1f} s  {text}", flush=True)

    def random(self, options: argparse.Namespace) -> tuple[Broken, list[Step]] | None:
        """Walk at random; return what failed, and the steps up to there."""
        rng = random.Random(options.seed)
        with self._walk() as walk:
            try:
                while len(walk.taken) < options.steps:
                    walk.take(walk.draw(rng, options.without))
                walk.end("SIGTERM")
            except Broken as failure:
                self.log = walk.node.log if walk.node else ""
                return failure, walk.taken
            print(f"{len(walk.taken)} steps, seed {options.seed}, nothing failed")
            print(*(f"{kind} {count}" for kind, count in sorted(walk.counts.items())), sep=", ")
        return None

    def attempt(self, steps: Sequence[Step]) -> Broken | None:
        """Take steps again; return what failed."""
        with self._walk() as walk:
            try:
                for step in steps:
                    walk.take(step)
                if walk.node is not None:
                    walk.end("SIGTERM")
            except Broken as failure:
                self.log = walk.node.log if walk.node else ""
                return failure
        return None


def _browser(stack: ExitStack) -> Any:
    """A browser, where there is one."""
    from browser import missing

    from benchmark.chromium import open_chromium

    return None if missing() else stack.enter_context(open_chromium())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="make journeys", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=300, help="steps to take")
    parser.add_argument("--seed", type=int, default=0, help="of all that is drawn")
    parser.add_argument("--replay", type=Path, help="file of a walk, to walk it again")
    parser.add_argument("--times", type=int, default=1, help="how often to walk it again")
    parser.add_argument("--shrink", type=float, default=10.0, help="minutes to look for less")
    parser.add_argument(
        "--out", type=Path, default=Path("out/journeys"), help="for walks that fail"
    )
    parser.add_argument("--quiet", action="store_true", help="print no steps")
    parser.add_argument(
        "--without",
        nargs="*",
        default=[],
        metavar="NAME",
        help="steps, simulators, sensors and worlds to leave out",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
