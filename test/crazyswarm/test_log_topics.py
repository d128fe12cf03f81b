"""What logged messages say of how sure a drone is."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from scipy.spatial.transform import Rotation

from crazyflow_ros.crazyswarm.log_topics import variances
from crazyflow_ros.engine.snapshot import Believed


def seen(n: int, believed: Believed | None) -> SimpleNamespace:
    return SimpleNamespace(names=[f"cf{i}" for i in range(n)], believed=believed)


def test_variances_are_in_the_axes_of_the_message() -> None:
    """Errors turn the drone about its own axes; the message is about those of the world."""
    rng = np.random.default_rng(0)
    rot = Rotation.random(5, random_state=1)
    own = rng.uniform(1e-5, 1e-4, (5, 9))
    believed = Believed(np.zeros((5, 3)), rot.as_quat(), np.zeros((5, 3)), own, np.zeros((5, 4)))
    place, vel = variances(seen(5, believed))  # type: ignore[arg-type]
    np.testing.assert_array_equal(place[:, :3], own[:, :3])
    np.testing.assert_array_equal(vel, own[:, 3:6])
    for i in range(5):
        errors = rng.normal(0, np.sqrt(own[i, 6:]), (200_000, 3))
        turned = rot[i] * Rotation.from_rotvec(errors)
        about_world = (turned * rot[i].inv()).as_rotvec()
        np.testing.assert_allclose(place[i, 3:], about_world.var(axis=0), rtol=0.02)


def test_what_is_exact_has_the_least_variance() -> None:
    place, vel = variances(seen(2, None))  # type: ignore[arg-type]
    assert place.shape == (2, 6) and (place == 1e-9).all()  # zero would mean: unknown
    assert vel.shape == (2, 3) and (vel == 1e-9).all()
