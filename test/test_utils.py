"""Helpers under Crazyflow's names."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from crazyflow_ros import Sim
from crazyflow_ros.utils import enable_cache, leaf_replace


def test_arrays_are_replaced_in_the_worlds_of_a_mask() -> None:
    states = Sim(n_worlds=3, n_drones=2).data.states
    pos = jnp.arange(18.0).reshape(3, 2, 3)
    mask = jnp.array([True, False, True])
    replaced = jax.jit(lambda s: leaf_replace(s, mask, pos=pos, vel=-pos))(states)
    for i, changed in enumerate(mask):
        np.testing.assert_array_equal(replaced.pos[i], pos[i] if changed else states.pos[i])
        np.testing.assert_array_equal(replaced.vel[i], -pos[i] if changed else states.vel[i])
    np.testing.assert_array_equal(replaced.quat, states.quat)
    np.testing.assert_array_equal(leaf_replace(states, pos=pos).pos, pos)
    with pytest.raises(TypeError, match="SimState has no"):
        leaf_replace(states, mask, position=pos)
    with pytest.raises(ValueError, match=r"pos must have 3 worlds, got shape \(2, 3\)"):
        leaf_replace(states, mask, pos=pos[0])


def test_a_parameter_shared_by_all_worlds_gets_one_value_for_each() -> None:
    params = Sim(n_worlds=2).data.params
    masses = jnp.array([1.0, 2.0])[:, None, None]
    replaced = leaf_replace(params, jnp.array([False, True]), mass=masses)
    np.testing.assert_allclose(replaced.mass[:, 0, 0], [params.mass[0], 2.0])


def test_a_folder_that_others_can_write_to_is_not_used(tmp_path) -> None:
    before = jax.config.jax_compilation_cache_dir
    (tmp_path / "code").mkdir()
    (tmp_path / "code").chmod(0o775)
    with pytest.warns(UserWarning, match=r"code is writable for others .*: nothing is kept"):
        enable_cache(tmp_path / "code")
    assert jax.config.jax_compilation_cache_dir == before


def test_compiled_code_is_kept_in_the_folder(tmp_path) -> None:
    options = [name for name in dir(jax.config) if "persistent_cache" in name]
    names = ["jax_compilation_cache_dir", *options]
    before = {name: getattr(jax.config, name) for name in names}
    try:
        enable_cache(tmp_path / "code", enable_xla_caches=False)
        assert jax.config.jax_compilation_cache_dir == str(tmp_path / "code")
        jax.jit(lambda x: x * 3.25 + 1)(jnp.arange(7.0)).block_until_ready()
        kept = list((tmp_path / "code").rglob("*-cache"))
        assert kept and (tmp_path / "code").stat().st_mode & 0o077 == 0
    finally:
        for name, value in before.items():
            jax.config.update(name, value)
