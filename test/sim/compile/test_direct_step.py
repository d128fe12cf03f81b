"""Steps called without JAX fly as those called by JAX, to the bit."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax_cache import without_jax_cache

from crazyflow_ros.sim import Sim, SimData
from crazyflow_ros.sim.compile import packed_step
from crazyflow_ros.sim.compile.direct_step import DirectStep
from crazyflow_ros.utils import enable_cache
from crazyflow_ros.xla import compiled_files

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64",
    reason="elsewhere, JAX calls all steps",
)

N, M = 3, 2
TREE = jax.tree.leaves_with_path


def is_direct(sim: Sim) -> bool:
    step = sim._live._step
    return step is not None and step.overwrites(sim._live._parts)


def share_nothing(patch: pytest.MonkeyPatch) -> None:
    """Else code would come from earlier simulations."""
    patch.setattr(packed_step, "_shared", {})


@pytest.fixture(scope="module")
def sims() -> tuple[Sim, Sim]:
    """The same simulation, called directly and by JAX."""
    direct, by_jax = (Sim(N, M, control="rotor_vel", rng_key=3) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        share_nothing(patch)
        direct.step()
        direct.step()
        patch.setattr(DirectStep, "of", lambda *_, **__: None)
        by_jax.step()
    by_jax.step()
    assert is_direct(direct) and not is_direct(by_jax)
    return direct, by_jax


@pytest.fixture
def both(sims: tuple[Sim, Sim]) -> tuple[Sim, Sim]:
    for sim in sims:
        sim.data = sim.default_data
    return sims


def commands(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(14e3, 18e3, (N, M, 4)).astype(np.float32)


def digest(data: SimData) -> dict[str, bytes]:
    return {
        jax.tree_util.keystr(path): np.asarray(
            jax.random.key_data(x) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else x
        ).tobytes()
        for path, x in TREE(data)
    }


def test_a_flight_is_the_same(both: tuple[Sim, Sim]) -> None:
    for sim in both:
        for i in range(40):
            sim.rotor_vel_control(commands(i))
            sim.step(1 + i % 7)
            if i == 20:
                sim.reset(np.array([True, False, True]))
            if i == 30:
                moved = sim.data.states.replace(vel=sim.data.states.vel + 0.5)
                sim.data = sim.data.replace(states=moved)
    direct, by_jax = both
    assert is_direct(direct) and not is_direct(by_jax)
    assert digest(direct.data) == digest(by_jax.data)


def test_data_stay_as_they_were_when_they_were_taken(both: tuple[Sim, Sim]) -> None:
    """Whether they have been read before the next call or not."""
    taken = []
    for sim in both:
        kept = []
        for i in range(4):
            sim.rotor_vel_control(commands(i))
            kept.append(sim.data)
            sim.step(3)
            kept += [sim.data, sim.data.states]
            np.asarray(sim.data.states.pos)
        kept.append(sim.data)
        sim.reset()
        sim.step()
        taken.append([digest(x) for x in kept])
    assert taken[0] == taken[1]
    assert len({str(x) for x in taken[0][1::3]}) == 4  # they do differ


def test_arrays_are_those_of_jax_and_stay(both: tuple[Sim, Sim]) -> None:
    direct, by_jax = both
    for sim in both:
        sim.step(5)
        sim.step(5)
    pos, view = direct.data.states.pos, np.asarray(direct.data.states.pos)
    assert isinstance(pos, jax.Array) and pos.committed == by_jax.data.states.pos.committed
    assert pos.sharding == by_jax.data.states.pos.sharding
    before = view.copy()
    direct.step(50)
    np.testing.assert_array_equal(view, before)
    np.testing.assert_array_equal(pos, before)


def test_what_jax_is_to_check_is_called_by_jax() -> None:
    sim = Sim(control="rotor_vel")
    with jax.debug_nans(True):
        sim.step()
        sim.step()
    assert not is_direct(sim)


def test_code_from_the_cache_of_jax_is_called_by_jax(
    both: tuple[Sim, Sim], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It cannot be read."""
    monkeypatch.setattr(compiled_files, "_files", None)
    _, by_jax = both
    with without_jax_cache():
        enable_cache(tmp_path)
        for is_new in (True, False):
            share_nothing(monkeypatch)
            cached = Sim(N, M, control="rotor_vel", rng_key=3)
            by_jax.data = by_jax.default_data
            for sim in (cached, by_jax):
                sim.step(3)
                sim.step(3)
            assert is_direct(cached) == is_new
            assert digest(cached.data) == digest(by_jax.data)


def test_another_precision_is_left_to_jax(both: tuple[Sim, Sim]) -> None:
    direct, by_jax = both
    for sim in both:
        sim.step(2)
        with jax.enable_x64(True):
            sim.step(3)
        sim.step(2)
    assert digest(direct.data) == digest(by_jax.data)


def test_a_refused_command_changes_nothing(both: tuple[Sim, Sim]) -> None:
    direct, _ = both
    direct.rotor_vel_control(commands(1))
    direct.step(2)
    before = digest(direct.data)
    wrong = commands(2)
    wrong[1, 1, 0] = np.nan
    with pytest.raises(ValueError, match="nan"):
        direct.rotor_vel_control(wrong)
    assert digest(direct.data) == before
