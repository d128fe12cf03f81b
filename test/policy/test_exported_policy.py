"""A policy as C for the Crazyflie's firmware: it acts and flies as here, or is refused.

The firmware is a stand-in here; test_firmware_policy.py flies with the firmware's own sources.
"""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exported_policy import FREQ, Exported, Kind
from paths import ROOT
from policies import GOAL, motions, overflowing, policy_of_layers, raptor, started

from crazyflow_ros.learn.ready import APPROACHING, FOLLOWING, MOVING, PASSING
from crazyflow_ros.policy import Observation, Policy, follow_policy, load, mlp, save
from crazyflow_ros.policy.action import Action
from crazyflow_ros.policy.firmware_app import (
    CYCLES,
    FLASH,
    PLATFORMS,
    RAM,
    UNMEASURED,
    main,
    sizes_of,
    write_app,
)
from crazyflow_ros.policy.network import ACTIVATIONS, Dense, Network
from crazyflow_ros.policy.observation import PARTS
from crazyflow_ros.sim import Sim

DRONE, FULL = "cf2x_L250", 65535
ROTORS = Action.of(DRONE, "rotor_vel")
MEASURED = tuple(part for part in PARTS if part not in UNMEASURED)
OFF = 0.002  # m, of two flights


def heading(yaw: float) -> np.ndarray:
    return np.array([0, 0, np.sin(yaw / 2), np.cos(yaw / 2)], np.float32)


def acts_alike(policy: Policy, folder: Path, n: int = 12) -> None:
    exported, state = Exported(policy, folder), policy.initial_state()
    act = jax.jit(Policy.act_towards)
    for motion, yaw in zip(motions(n), np.random.default_rng(1).uniform(-3, 3, n)):
        state, expected = act(policy, state, motion, heading(yaw))
        scale = np.array(policy.action.scale)  # of commands in their units
        found = exported.act(motion, yaw)
        np.testing.assert_allclose(found / scale, expected / scale, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("group", range(3))
def test_the_c_acts_as_the_policy_with_each_activation(group: int, tmp_path: Path) -> None:
    observation = Observation(("position_error", "attitude"))
    acts_alike(policy_of_layers([*ACTIVATIONS][group::3], observation, ROTORS), tmp_path)


@pytest.mark.parametrize(
    "parts", [APPROACHING, FOLLOWING, PASSING, MOVING], ids=["hover", "eight", "race", "velocity"]
)
def test_the_c_acts_as_policies_of_the_ready_tasks(parts: tuple[str, ...], tmp_path: Path) -> None:
    acts_alike(policy_of_layers(["tanh", "tanh"], Observation(parts), ROTORS, units=64), tmp_path)


@pytest.mark.parametrize("control", ["attitude", "body_rate", "force_torque", "rotor_vel"])
def test_the_c_acts_as_policies_that_remember(control: str, tmp_path: Path) -> None:
    observation = Observation(MEASURED, history=3, largest_errors=(0.5, 1.0))
    layers = ["relu", "gru", "silu", "gru"]
    policy = policy_of_layers(layers, observation, Action.of(DRONE, control))
    first, *others = policy.network.layers
    assert isinstance(first, Dense)
    wide = np.random.default_rng(0).normal(size=(24, 8 + 5)).astype(np.float32)
    second = others[0].replace(input_weights=jnp.asarray(wide))
    network = Network((first.replace(kept=5), second, *others[1:]))
    acts_alike(policy.replace(network=network), tmp_path)


def test_the_c_acts_as_a_trained_policy(tmp_path: Path) -> None:
    acts_alike(load(raptor(), DRONE), tmp_path, 50)


def shares(command: np.ndarray) -> np.ndarray:
    """The motors' outputs for speeds of rotors [RPM], from the figures of the drone's makers."""
    thrust = 2.4582929831265485e-10 * command**2 - 5.382196214637237e-07 * command
    return np.maximum(thrust / 0.12 * FULL, 0.012817578393224994 / 0.12 * FULL)


@pytest.mark.parametrize("kind", [Kind.position, Kind.full_state])
def test_the_controller_runs_the_rotors_at_the_policys_rate(kind: Kind, tmp_path: Path) -> None:
    policy = policy_of_layers(["tanh"], Observation(FOLLOWING, history=2), ROTORS)
    exported, state = Exported(policy, tmp_path), policy.initial_state()
    act = jax.jit(Policy.act_towards)
    for motion, yaw in zip(motions(4), (0.0, -0.7, 2.0, 3.0)):
        state, command = act(policy, state, motion, heading(yaw))
        for later in [motion, *motions(FREQ // policy.freq - 1, seed=3)]:
            np.testing.assert_allclose(
                exported.fly(later, yaw, kind), shares(np.asarray(command)), atol=1.5, rtol=1e-5
            )


def test_the_slowest_rotor_turns(tmp_path: Path) -> None:
    """The firmware stops a motor below THRUST_MIN, after it has rounded."""
    policy = policy_of_layers([], Observation(("position_error",)), ROTORS)
    (last,) = policy.network.layers
    slow = last.replace(weights=0 * last.weights, bias=jnp.full(4, -2.0))
    exported = Exported(policy.replace(network=Network((slow,))), tmp_path)
    motors = exported.fly(next(motions(1)), 0.0)
    assert (motors / FULL * 0.12 >= 0.012817578393224994).all() and (motors < 7003).all()


def test_each_flight_begins_anew_and_others_are_flown_by_pid(tmp_path: Path) -> None:
    policy = policy_of_layers(["gru"], Observation(("previous_action",), history=2), ROTORS)
    exported, (motion,) = Exported(policy, tmp_path), motions(1)
    ticks = 3 * FREQ // policy.freq
    flown = [exported.fly(motion, 0.0) for _ in range(ticks)]
    assert any((x != flown[0]).any() for x in flown)
    exported.step = 10_001  # in which the stand-in of PID computes nothing of itself
    for kind, motors in ((Kind.stop, 0), (Kind.manual, 0)):
        assert (exported.fly(motion, 0.0, kind) == motors).all()
    exported.step = 10_010
    assert (exported.fly(motion, 0.0, Kind.manual) == 30000).all()
    for again in flown:
        np.testing.assert_array_equal(exported.fly(motion, 0.0), again)


def test_pid_flies_where_the_output_is_no_number(tmp_path: Path) -> None:
    exported, (motion,) = Exported(overflowing(ROTORS), tmp_path), motions(1)
    near = motion._replace(goal=motion.pos, goal_vel=np.zeros(3))
    far = near._replace(goal=motion.pos + np.float32([2, 0, 0]))
    hover = exported.fly(near, 0.0)
    assert (hover > 20_000).all()
    for _ in range(9):
        exported.fly(near, 0.0)
    for motion in (far, near, near):  # whose setpoint has no thrust of its own
        assert (exported.fly(motion, 0.0) == 0).all()
    exported.fly(near, 0.0, Kind.stop)
    np.testing.assert_array_equal(exported.fly(near, 0.0), hover)


@pytest.mark.parametrize("control", ["attitude", "body_rate"])
def test_attitudes_and_rates_are_setpoints_of_the_firmware(control: str, tmp_path: Path) -> None:
    policy = policy_of_layers(["tanh"], Observation(MEASURED), Action.of(DRONE, control))
    exported, state, motion = Exported(policy, tmp_path), policy.initial_state(), next(motions(1))
    _, command = policy.act_towards(state, motion, heading(0.5))
    exported.fly(motion, 0.5)
    x, y, z = np.rad2deg(command[:3])
    *_, yaw = np.rad2deg(jnp.asarray(_rpy(motion.quat)))
    angles, rates = ([x, -y, z], [0, 0, 0]) if control == "attitude" else ([0, 0, yaw], [x, y, z])
    thrust = command[3] / 4 / 0.12 * FULL
    np.testing.assert_allclose(exported.tilted(), [thrust, *angles, *rates], rtol=1e-4, atol=1e-3)


def _rpy(quat: np.ndarray) -> tuple[float, float, float]:
    x, y, z, w = quat
    return 0.0, 0.0, float(np.arctan2(2 * (x * y + w * z), 1 - 2 * (y * y + z * z)))


def test_the_c_hovers_as_the_policy_does_here(tmp_path: Path) -> None:
    """With the door's rotors, which turn the firmware's outputs into speeds."""
    policy, ticks, yaw = load(raptor(), DRONE), 2500, 0.6
    exported = Exported(policy, tmp_path)
    sim = Sim(1, drone=DRONE, control="state", state_freq=policy.freq, freq=FREQ)
    follow_policy(sim, policy)
    own = Sim(1, drone=DRONE, control="rotor_vel", freq=FREQ)
    for seed in range(2):
        exported.begin()
        flown = exported.flight(started(own, seed), GOAL, yaw, ticks)
        assert np.linalg.norm(flown[0] - GOAL) > 0.05
        assert np.linalg.norm(flown[-500:] - GOAL, axis=-1).max() < 0.1  # its steady error: 7 cm
        sim.reset()
        sim.state_control(np.array([[[*GOAL, *[0] * 6, yaw, 0, 0, 0]]]))
        started(sim, seed).step(ticks - 1)
        assert np.linalg.norm(np.asarray(sim.data.states.pos)[0, 0] - flown[-1]) < OFF


def refused(policy: Policy | Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    path = policy
    if isinstance(policy, Policy):
        path = folder / "some.policy"
        save(policy, path)
    assert main([str(path), "--out", str(folder / "app")]) == 1
    assert not (folder / "app").exists()
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("16_race_by_depth/race_by_depth", "sees pictures, and the firmware has no camera"),
        ("21_slung_load/carry", "observes body_load_position: the firmware does not know where"),
        ("28_swap_places/swap", "which only environments tell"),
        ("28_swap_places/none", "is not a policy that can be read"),
    ],
)
def test_what_the_firmware_does_not_know_is_refused(
    name: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert why in refused(ROOT / "examples" / f"{name}.policy", tmp_path, capsys)


def test_rates_sizes_and_drones_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    observation = Observation(("position_error",))
    policy = policy_of_layers(["tanh"], observation, ROTORS)
    key = jax.random.key(0)
    heavy = policy.replace(network=mlp(key, [3, 184, 184, 4]))
    forgetful = Observation(("rotation",), history=400)
    long = policy_of_layers([], forgetful, ROTORS)
    for given, why in (
        (replace(policy, freq=60), "has 60 actions a second, expected a divisor of"),
        (replace(policy, drone="hb_x500"), "hb_x500 has not the motors of a Crazyflie, expected"),
        (replace(policy, drone="mine"), "with --drone"),
        (heavy, "an action takes at least 1.05 ms at 168 MHz, expected at most 1 ms"),
        (long, f"bytes of RAM, expected at most {RAM}"),
    ):
        assert why in refused(given, tmp_path, capsys)
    assert sizes_of(heavy).flash < FLASH and CYCLES * (3 + 4) * 184 < 168e3


def test_the_folder_is_what_the_program_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = policy_of_layers(["gru", "gelu"], Observation(MEASURED, history=4), ROTORS)
    hostile = replace(policy, about='a\\" */ #define x %s ??/', drone=DRONE)
    save(hostile, tmp_path / "some.policy")
    for drone, platform in PLATFORMS.items():
        out = tmp_path / drone
        assert main([str(tmp_path / "some.policy"), "--out", str(out), "--drone", drone]) == 0
        said = capsys.readouterr().out
        assert f"{platform.name}_defconfig" in said
        assert f"{platform.option}=y" in (out / "app-config").read_text()
    code = out / "src" / "policy.c"
    command = ["gcc", "-std=gnu11", "-Os", "-c", str(code), "-o", str(tmp_path / "policy.o")]
    subprocess.run([*command, "-Wall", "-Wextra", "-Werror"], check=True)
    listed = subprocess.run(["size", "-A", str(tmp_path / "policy.o")], capture_output=True)
    bss = next(x for x in listed.stdout.decode().splitlines() if x.startswith(".bss"))
    sizes = sizes_of(policy)
    memory = 4 * (policy.mean.size + 4 + policy.network.memory.size + 4)
    assert sizes.ram == int(bss.split()[1]) + memory
    write_app(policy, out)  # again
