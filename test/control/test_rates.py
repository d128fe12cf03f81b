"""Controllers run on exact multiples of the tick, and no rate is bent to fit."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from crazyflow_ros.control.rates import ticks_per_period
from crazyflow_ros.sim import Sim, SimData


def test_ticks_per_period() -> None:
    assert ticks_per_period(500, 100, "state_freq") == 5
    assert ticks_per_period(500, 500, "state_freq") == 1
    assert ticks_per_period(500, 1, "state_freq") == 500


@pytest.mark.parametrize(
    ("rate", "nearest"),
    [(300, "250 or 500"), (1000, "500"), (3, "2 or 4"), (0, "1"), (-5, "1"), (499, "250 or 500")],
)
def test_rates_that_do_not_divide_are_refused(rate: int, nearest: str) -> None:
    expected = f"state_freq must divide the physics rate of 500 Hz, got {rate}; try {nearest}$"
    with pytest.raises(ValueError, match=expected):
        ticks_per_period(500, rate, "state_freq")


@pytest.mark.parametrize("name", ["state_freq", "attitude_freq", "force_torque_freq"])
def test_a_simulation_refuses_rates_that_do_not_divide(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must divide .* 500 Hz, got 200; try 125 or 250"):
        Sim(control="state", **{name: 200})


def test_a_rate_that_the_control_mode_does_not_use_is_of_no_concern() -> None:
    assert Sim(control="rotor_vel", state_freq=300).control_freq == 500
    with pytest.raises(ValueError, match="body_rate_freq"):
        Sim(control="body_rate", body_rate_freq=300)


def spy(sim: Sim) -> None:
    """Store in `states.force` the ticks at which the first and the second controller ran.

    They have run if their memory of the previous run has changed since the tick's beginning.
    """
    pipeline = sim.step_pipeline

    def watched(data: SimData) -> SimData:
        after = data
        for stage in pipeline:
            after = stage(after)
        before, now = data.controls, after.controls
        ran = [
            (before.state.pos_err_i != now.state.pos_err_i).any(-1),
            (before.attitude.r_int_error != now.attitude.r_int_error).any(-1),
            (before.rotor_vel != now.rotor_vel).any(-1),
        ]
        return after.replace(states=after.states.replace(force=jnp.stack(ran, -1).astype(float)))

    sim.step_pipeline = (watched,)


def firing(sim: Sim, ticks: int) -> np.ndarray:
    """(ticks, n_worlds, 3) bool: which of the three controllers ran in each tick."""
    record = []
    for _ in range(ticks):
        sim.step()
        record.append(np.asarray(sim.data.states.force[:, 0]) > 0)
    return np.array(record)


@pytest.fixture(scope="module")
def compiled() -> Sim:
    """A drone whose errors, hence whose controllers' memories, change at every run."""
    sim = Sim(2, 1, control="state", state_freq=50, attitude_freq=100, force_torque_freq=250)
    states = sim.data.states
    sim.data = sim.data.replace(
        states=states.replace(
            pos=states.pos + jnp.array([0.1, 0.2, 3.0]),
            ang_vel=states.ang_vel + jnp.array([0.3, -0.4, 0.5]),
            rotor_vel=states.rotor_vel + 15_000,
        )
    )
    command = np.zeros((2, 1, 13))
    command[..., 2] = 3
    sim.state_control(command)
    sim.build_default_data()
    spy(sim)
    return sim


@pytest.fixture
def sim(compiled: Sim) -> Sim:
    compiled.reset()
    return compiled


def test_controllers_run_on_exact_multiples_of_their_period(sim: Sim) -> None:
    ran = firing(sim, 60)
    tick = np.arange(60)
    for controller, period in enumerate((10, 5)):
        for world in range(2):
            np.testing.assert_array_equal(ran[:, world, controller], tick % period == 0)
    mixed = np.flatnonzero(ran[:, 0, 2])
    assert (mixed % 2 == 0).all() and len(mixed) >= 12  # it has a new command every 5 ticks


def test_the_number_of_ticks_in_a_call_does_not_shift_the_controllers(sim: Sim) -> None:
    counts, ends = (1, 2, 3, 7, 11, 24), []
    for count in counts:
        sim.step(count)
        ends.append(sim.data.states)
    sim.reset()
    for count, end in zip(counts, ends):
        for _ in range(count):
            sim.step()
        jax.tree.map(np.testing.assert_array_equal, sim.data.states, end)


def test_each_world_has_its_own_phase(sim: Sim) -> None:
    sim.step(3)
    sim.reset([False, True])
    ran = firing(sim, 30)[..., 0]
    np.testing.assert_array_equal(ran[:, 0], (np.arange(30) + 3) % 10 == 0)
    np.testing.assert_array_equal(ran[:, 1], np.arange(30) % 10 == 0)


def test_a_command_waits_for_its_controller() -> None:
    sim = Sim(2, 1, control="force_torque", force_torque_freq=100)
    assert sim.control_freq == 100
    sim.step()
    sim.force_torque_control(np.tile([0.4, 0, 0, 0], (2, 1, 1)))
    for tick in range(1, 16):
        assert sim.controllable.shape == (2, 1)
        assert (np.asarray(sim.controllable) == (tick % 5 == 0)).all()
        sim.step()
        assert ((sim.data.controls.rotor_vel > 0) == (tick >= 5)).all(), tick
    rotor_vel = Sim(control="rotor_vel")
    assert rotor_vel.control_freq == 500 and bool(rotor_vel.controllable.all())


def test_time_counts_ticks() -> None:
    sim = Sim(3, 2, freq=250, control="rotor_vel")
    sim.step(10)
    sim.reset([True, False, True])
    sim.step(5)
    assert sim.data.core.steps.ravel().tolist() == [5, 15, 5]
    np.testing.assert_allclose(sim.time, [[0.02], [0.06], [0.02]], rtol=1e-6)
