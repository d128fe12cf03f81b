"""Random numbers of a script in simulated time: the same each time."""

from __future__ import annotations

import random
import secrets
from typing import Any

from .locks import replace


def install(seed: int) -> None:
    """Seed the generators of Python and NumPy that are not seeded by the script."""
    source = random.Random(seed)
    begin = random.Random.seed

    def begin_known(self: random.Random, a: Any = None, version: int = 2) -> None:
        begin(self, source.getrandbits(64) if a is None else a, version)

    replace(random.Random, seed=begin_known)
    replace(random, seed=random._inst.seed)
    random.seed()
    # NumPy takes the numbers of generators without a seed from here.
    replace(secrets, randbits=source.getrandbits)
