"""Bodies that come close, and the names that motion capture gives them."""

from __future__ import annotations

import numpy as np

from crazyflow_ros.crazyswarm.identities import Identities


def met(identities: Identities, n: int) -> list[list[int]]:
    """Names after each of n meetings of the first two of three bodies."""
    apart = np.array([[0.0, 0, 1], [1, 0, 1], [5, 0, 1]])
    close = apart * [0.1, 1, 1]
    found = []
    for _ in range(n):
        found.append(identities.see(close).tolist())
        assert identities.see(close).tolist() == found[-1]  # no new meeting
        assert identities.see(apart).tolist() == found[-1]  # the names stay
    return found


def test_half_of_the_meetings_exchange_two_names_and_the_seed_says_which() -> None:
    runs = [met(Identities(3, 0.2, seed), 400) for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]
    changes = sum(a != b for a, b in zip(runs[0], runs[0][1:]))
    assert 150 < changes < 250
    assert all(sorted(names) == [0, 1, 2] and names[2] == 2 for names in runs[0])


def test_bodies_that_are_not_seen_or_never_confused_keep_their_names() -> None:
    assert met(Identities(3, 0.0, 1), 5) == [[0, 1, 2]] * 5
    identities = Identities(2, 1.0, 1)
    for _ in range(20):
        hidden = np.array([[0.0, 0, 1], [np.nan] * 3])
        assert identities.see(hidden).tolist() == [0, 1]
