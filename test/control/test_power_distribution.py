"""Rotors that cannot give thrust and torque together: what gives way, and how drones fly then."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from control_helpers import array, components
from multirotors import QUADROTORS
from quadrotor_reference import Quadrotor

from crazyflow_ros.control import Controller, PowerDistribution, mellinger
from crazyflow_ros.drones import Drone, load_drone
from crazyflow_ros.drones.folders import FIGURES, folder_of
from crazyflow_ros.engine.disturbances import BatteryCharge
from crazyflow_ros.engine.engine import Engine
from crazyflow_ros.engine.interventions import disturb
from crazyflow_ros.engine.levels import Level
from crazyflow_ros.envs import Configuration
from crazyflow_ros.runtime import SimulationConfig
from crazyflow_ros.sim import Sim
from crazyflow_ros.sim.actuation import Battery
from crazyflow_ros.sim.compile.stepping import tick_of
from crazyflow_ros.sim.pipeline import insert_before, names

CAPPED = PowerDistribution.capped
HEIGHT = 8.0


def wrenches(drone: str, force: np.ndarray, torque: np.ndarray, **options) -> np.ndarray:
    """Thrust and torque, about x and y from the places of the rotors, and thrust of each rotor."""
    params = mellinger.load_params("force_torque", drone)
    speeds = array(
        mellinger.force_torque2rotor_vel(
            jnp.asarray(force), components(torque), params, CAPPED, **options
        )
    )
    quadrotor = Quadrotor(drone)
    forces = np.where(
        speeds > 0, np.polynomial.polynomial.polyval(speeds, quadrotor.thrust_curve), 0.0
    )
    moments = np.cross(quadrotor.rotors, forces[..., None] * [0, 0, 1.0]).sum(-2)
    yaw = float(params["thrust2torque"]) * forces @ [-1, 1, -1, 1]
    wrench = np.column_stack((forces.sum(-1), moments[:, :2], yaw))
    return np.hstack((wrench, forces))


@pytest.mark.parametrize("drone", QUADROTORS)
@pytest.mark.parametrize("share", [1.0, 0.7])
def test_saturated_rotors_keep_the_torque_and_lose_thrust(drone: str, share: float) -> None:
    """With a low battery, too: then they give `share` of their greatest thrust."""
    rng, figures = np.random.default_rng(2), load_drone(drone)
    most, lever = share * figures["thrust_max"], figures["L"]
    arm = float(mellinger.load_params("force_torque", drone)["thrust2torque"])
    force = rng.uniform(3.0, 6.0, 200) * most
    torque = rng.uniform(-0.3, 0.3, (200, 3)) * most * [lever, lever, arm]
    found = wrenches(drone, force, torque, thrust_max=jnp.asarray(most))
    levers = [lever, lever, arm]
    np.testing.assert_allclose(found[:, 1:4] / levers, torque / levers, atol=1e-5 * most)
    strongest = found[:, 4:].max(axis=1)
    assert (strongest <= most * (1 + 1e-5)).all()
    lowered = found[:, 0] < force * (1 - 1e-5)
    np.testing.assert_allclose(strongest[lowered], most, rtol=1e-5)
    assert 50 < lowered.sum() < 200


@pytest.mark.parametrize(("drone", "stops"), [("cf2x_L250", True), ("cf21B_500", False)])
def test_a_rotor_that_should_give_less_than_it_can_stops_or_idles(drone: str, stops: bool) -> None:
    """Those with brushes stop, brushless ones idle: they would take long to start again."""
    figures = load_drone(drone)
    weight = figures["mass"] * 9.81
    torque = np.array([[figures["L"] * weight * 1.2, 0.0, 0.0]])
    forces = wrenches(drone, np.array([weight]), torque)[0, 4:]
    least = 0.0 if stops else figures["thrust_min"]
    np.testing.assert_allclose(forces[:2], least, atol=1e-7)
    assert (forces[2:] > weight / 4).all()
    nothing = wrenches(drone, np.array([0.0]), np.zeros((1, 3)))
    assert not nothing.any()


def test_a_figure_for_idling_above_the_least_thrust_is_refused(tmp_path) -> None:
    text = (folder_of(Drone.cf2x_L250) / FIGURES).read_text()
    (tmp_path / FIGURES).write_text(text.replace("idle_thrust = 0.0", "idle_thrust = 0.05"))
    with pytest.raises(ValueError, match=r"idle_thrust .*0\.0128.*0\.05"):
        load_drone(tmp_path)


def commands(kind: str, time: float) -> np.ndarray:
    """A state command of 13 numbers, without a course, as a client of the firmware may send it."""
    command = np.zeros(13)
    command[2] = HEIGHT
    if kind == "step":
        command[0] = 5.0
    elif kind == "diagonal step":
        command[:3] = 3.0, -4.0, HEIGHT
    elif kind == "turn":
        command[9] = np.pi
    elif kind == "step and turn":
        command[1], command[9] = -5.0, -np.pi * 0.99
    else:  # "stick reversals": full speed ahead, then back, every 0.8 s
        k, since = divmod(time, 0.8)
        sign = 1.0 if k % 2 == 0 else -1.0
        command[3] = 2.0 * sign if time < 4.0 else 0.0
        command[0] = min(k % 2, 1) * 1.6 + sign * 2.0 * since if time < 4.0 else 0.0
    return command


KINDS = ("step", "diagonal step", "turn", "step and turn", "stick reversals")


def test_every_drone_flies_what_a_bare_state_controller_is_told() -> None:
    """Crazyflow's rule flips them, the firmware's does not."""
    drones = QUADROTORS
    upright, low, away = fly_bare(drones, CAPPED)
    assert np.degrees(np.arccos(upright)).max() < 80.0
    assert low.min() > HEIGHT - 2.0
    assert away.max() < 0.25
    upright, _, _ = fly_bare(drones[:1], PowerDistribution.clipped)
    assert upright[0].min() < -0.9  # of the first kind


def fly_bare(drones: list[str], distribution: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Least cosine of the tilt, least height, and final distance, each (kinds, drones)."""
    size = len(KINDS), len(drones)
    sim = Sim(*size, drone=drones, control="state", true_mass=True, power_distribution=distribution)
    pos = np.zeros((*size, 3))
    pos[..., 2] = HEIGHT
    states = sim.data.states.replace(pos=jnp.asarray(pos, sim.data.states.pos.dtype))
    sim.data = sim.data.replace(states=states)
    upright, low = np.ones(size), np.full(size, HEIGHT)

    def fly(times: np.ndarray) -> None:
        for time in times:
            given = np.array([commands(kind, time) for kind in KINDS])
            sim.state_control(np.broadcast_to(given[:, None], (*size, 13)))
            sim.step(25)
            quat = np.asarray(sim.data.states.quat)
            up = 1 - 2 * (quat[..., 0] ** 2 + quat[..., 1] ** 2)
            np.minimum(upright, up, out=upright)
            np.minimum(low, np.asarray(sim.data.states.pos)[..., 2], out=low)

    hover = commands("turn", 0.0)
    hover[9] = 0.0
    sim.state_control(np.broadcast_to(hover, (*size, 13)))
    sim.step(1000)
    fly(np.arange(0.0, 10.0, 0.05))
    final = np.array([commands(kind, 10.0) for kind in KINDS])[:, None, :3]
    away = np.linalg.norm(np.asarray(sim.data.states.pos) - final, axis=-1)
    return upright, low, away


@pytest.mark.parametrize(
    ("control", "controller"),
    [*(("attitude", c) for c in Controller), ("body_rate", "mellinger"), ("force_torque", "pid")],
)
def test_full_thrust_takes_no_torque(control: str, controller: str) -> None:
    """In every mode that mixes, with every controller."""
    moderate, full = torques(control, controller, CAPPED)
    assert moderate > 0.05 * load_drone("cf2x_T350")["L"] * load_drone("cf2x_T350")["thrust_max"]
    assert full == pytest.approx(moderate, rel=1e-3)
    if controller == "mellinger" or control == "force_torque":  # others leave it to the mixer
        # Limited one by one, rotors lose half.
        clipped = torques(control, controller, PowerDistribution.clipped)
        assert clipped == pytest.approx([moderate, moderate / 2], rel=0.02)


def torques(control: str, controller: str, distribution: str) -> np.ndarray:
    """Of a turn at 0.6 of full thrust, and at full thrust."""
    options = {} if control == "force_torque" else {"controller": controller}
    sim = Sim(2, drone="cf2x_T350", control=control, power_distribution=distribution, **options)
    turn = {"attitude": 0.2, "body_rate": 1.5, "force_torque": 1.5e-3}[control]
    command = np.zeros((2, 1, 4))
    thrusts = 4 * load_drone("cf2x_T350")["thrust_max"] * np.array([0.6, 1.0])
    command[:, 0, 0 if control == "force_torque" else 3] = thrusts
    command[:, 0, 1 if control == "force_torque" else 0] = turn
    getattr(sim, f"{control}_control")(command)
    stages = itertools.takewhile(lambda stage: names((stage,)) != ("integrate",), sim.step_pipeline)
    mixing = jax.jit(tick_of(tuple(stages)))
    speeds = np.asarray(mixing(sim.data).controls.rotor_vel)[:, 0]
    quadrotor = Quadrotor("cf2x_T350")
    forces = np.polynomial.polynomial.polyval(speeds, quadrotor.thrust_curve)
    return forces @ quadrotor.rotors[:, 1]


def test_whoever_flies_as_the_firmware_keeps_the_torque() -> None:
    """The node and the Crazyflie door have a configuration, environments and learn another."""
    assert SimulationConfig().power_distribution == CAPPED
    assert Configuration().power_distribution == CAPPED
    assert Sim().data.controls.power_distribution is PowerDistribution.clipped


def test_a_battery_lowers_what_the_rotors_keep_to() -> None:
    """A drone whose battery runs low climbs more slowly, and still turns as it should."""
    battery, rates = Battery.of("cf2x_P250"), {}
    for charge in (1.0, 0.03):
        sim = Sim(drone="cf2x_P250", control="force_torque", power_distribution="capped")
        sim.step_pipeline = insert_before(sim.step_pipeline, "integrate", battery)
        drawn = jnp.full((1, 1, 1), (1 - charge) * battery.capacity)
        sim.data = sim.data.replace(plugins=sim.data.plugins | {"battery": drawn})
        sim.force_torque_control([[[0.6, 0.0, 0.0, 0.0]]])
        sim.step(250)
        sim.force_torque_control([[[0.6, 1e-4, 0.0, 0.0]]])
        before = float(sim.data.states.ang_vel[0, 0, 0])
        sim.step(50)
        turned = float(sim.data.states.ang_vel[0, 0, 0]) - before
        rates[charge] = turned, float(sim.data.states.vel[0, 0, 2])
    (full, fast), (low, slow) = rates.values()
    assert low == pytest.approx(full, rel=0.15)
    assert slow < 0.7 * fast


def test_a_heavy_drone_lifts_off_with_its_own_battery() -> None:
    config = SimulationConfig(drone_model="hb_x500", battery=True, control="attitude")
    engine = Engine(config, ["cf0"])
    weight = load_drone("hb_x500")["mass"] * 9.81
    engine.set_commands(["cf0"], np.array([[0.0, 0.0, 0.0, 1.1 * weight, Level.attitude]]))
    snapshot = engine.advance(1, [1000], 0)[-1]
    assert snapshot.pos[0, 2] > 0.5
    assert snapshot.battery is not None
    assert 15.0 < snapshot.battery[0, 0] < 16.8
    disturb(engine, BatteryCharge("cf0", 0.5))
    battery = engine.advance(1, [0], 0)[-1].battery
    assert battery is not None
    assert battery[0, 2] == pytest.approx(2.5)
