"""Gains of single drones: the flight is that of a `Sim` with these gains."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from crazyflow_ros.control import Controller
from crazyflow_ros.control.gains import check_gain
from crazyflow_ros.crazyflie.gains import GAINS as PARAMETERS
from crazyflow_ros.crazyflie.gains import Gains
from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.engine.engine import Engine
from crazyflow_ros.engine.levels import Level, rows
from crazyflow_ros.sim import Sim

DRONE = "cf2x_L250"
NEW = {
    Controller.mellinger: {
        "state.kp": np.array([0.9, 0.6, 2.0]),
        "state.mass": np.array(0.031),
        "attitude.kR": np.array([50_000.0, 60_000.0, 40_000.0]),
    },
    Controller.pid: {
        "state.vel_kp": np.array([0.3, 0.2, 0.1]),
        "state.vel_kd": np.array([0.02, 0.03, 0.01]),
        "state.kff": np.array([0.3, 0.2, -0.01]),
        "state.tilt_max": np.array([0.1, 0.2]),
        "attitude.rate_kff": np.array([2e-4, 1e-4, 3e-4]),
        "state.thrust_base": np.array(0.3),
        "attitude.rate_kp": np.array([2e-3, 1e-3, 3e-3]),
    },
    Controller.indi: {
        "state.kp": np.array([2.0, 1.5, 3.0]),
        "state.tilt_max": np.array(0.1),
        "attitude.kw": np.array([20.0, 15.0, 30.0]),
    },
    Controller.brescianini: {
        "state.tau": np.array([0.5, 0.4, 0.6]),
        "state.fairness": np.array(0.5),
        "attitude.tau": np.array(0.3),
    },
}


def command() -> np.ndarray:
    found = np.zeros(16)
    found[:3], found[12] = (0.2, -0.1, 3.1), 1.0
    return found


def reference(controller: Controller, gains: dict[str, np.ndarray]) -> np.ndarray:
    """Place of a drone after half a second in a `Sim`."""
    sim = Sim(
        drone=DRONE,
        control="state",
        controller=controller,
        true_mass=True,
        power_distribution=SimulationConfig.power_distribution,
    )
    controls = sim.data.controls
    for name, value in gains.items():
        stage, _, gain = name.partition(".")
        level: Any = getattr(controls, stage)
        params = {**level.params, gain: jnp.asarray(value)}
        controls = controls.replace(**{stage: level.replace(params=params)})
    states = sim.data.states
    up = states.replace(pos=jnp.zeros((1, 1, 3)).at[..., 2].set(3.0))
    sim.data = sim.data.replace(controls=controls, states=up)
    sim.state_control(command()[None, None])
    sim.step(sim.freq // 2)
    return np.asarray(sim.data.states.pos)[0, 0]


def tune(engine: Engine, controller: Controller) -> None:
    for name, values in NEW[controller].items():
        engine.gains.tune("tuned", controller, {name: values})


@pytest.mark.parametrize("controller", list(NEW))
def test_gains_act_on_their_drone_alone(controller: Controller) -> None:
    config = SimulationConfig(drone_model=DRONE, controller=controller, true_mass=True)
    engine = Engine(config, ("own", "tuned"))
    tune(engine, controller)
    with pytest.raises(ValueError, match=r"there is no gain 'state\.no', only state\."):
        engine.gains.tune("tuned", controller, {"state.no": np.zeros(3)})
    other = next(c for c in NEW if c is not controller)
    engine.gains.tune("own", other, NEW[other])  # of a controller that does not fly

    def flown() -> np.ndarray:
        at = {"pos": np.array([[0.0, 0.0, 3.0]]), "quat": np.array([[0.0, 0.0, 0.0, 1.0]])}
        for name in engine.names:
            engine.put([name], at)
        engine.set_commands(engine.names, rows(Level.state, np.array([command()] * 2)))
        (snapshot,) = engine.advance(0, [250], 0)
        return snapshot.pos

    expected = [reference(controller, {}), reference(controller, NEW[controller])]
    assert np.linalg.norm(expected[0] - expected[1]) > 0.005
    np.testing.assert_allclose(flown(), expected, atol=1e-4)
    for reset in (None, ["own"], ["tuned"]):  # only those that are reset lose their gains
        tune(engine, controller)
        engine.reset(reset)
        gains = 1 if reset == ["own"] else 0
        np.testing.assert_allclose(flown(), [expected[0], expected[gains]], atol=1e-4)
        engine.reset()
    tune(engine, controller)
    engine.remove(["tuned"])
    engine.add("new", np.array([0.0, 0.0, 3.0, 0.0, 0.0, 0.0, 1.0]))
    np.testing.assert_allclose(flown(), [expected[0]] * 2, atol=1e-4)


def test_firmware_parameters_cover_the_gains_in_the_units_of_the_firmware() -> None:
    gains = Gains(DRONE, 500, true_mass=False)
    values = gains.values()
    assert tuple(values) == PARAMETERS
    # The defaults of the firmware, platform cf2.
    defaults = {
        "pid_rate.roll_kp": 250,
        "pid_rate.yaw_ki": 16.7,
        "pid_attitude.yaw_kd": 0.35,
        "velCtlPid.vzKp": 25,
        "velCtlPid.vxKi": 1,
        "posCtlPid.xVelMax": 1,
        "posCtlPid.thrustBase": 36000,
        "posCtlPid.thrustMin": 20000,
        "posCtlPid.rLimit": 20,
        "velCtlPid.vzKd": 0,
        "ctrlINDI.ref_err_r": 5,
        "ctrlINDI.ref_rate_q": 24,
        "posCtrlIndi.K_xi_z": 1,
        "posCtrlIndi.K_dxi_x": 5,
        "posCtrlIndi.pq_clamping": 10,
        "ctrlAtt.tau_z": 0.3,
        "ctrlAtt.zeta_xy": 0.85,
        "ctrlAtt.tau_rp": 0.25,
        "ctrlAtt.coll_fairness": 0.25,
        "ctrlMel.kp_z": 1.25,
        "ctrlMel.kR_xy": 70000,
        "ctrlMel.i_range_m_z": 1500,
        "ctrlMel.massThrust": 132000,
    }
    for name, value in defaults.items():
        assert values[name] == pytest.approx(value), name
    changed = {c: set[str]() for c in NEW}
    for name, value in values.items():
        controller, new = gains.set(name, 2 * value + 1)
        changed[controller] |= new.keys()
        assert gains.values()[name] == pytest.approx(2 * value + 1), name
    assert changed == {c: set(c.cascade.GAINS) for c in Controller}
    before = gains.values()
    with pytest.raises(ValueError, match=r"ctrlMel.mass must be within 1e\+07, got -1e\+08"):
        gains.set("ctrlMel.mass", -1e8)
    with pytest.raises(ValueError, match=r"ctrlAtt.tau_xy: state.tau must be 0.001 s or longer"):
        gains.set("ctrlAtt.tau_xy", 0.0)
    assert gains.values() == before


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("state.no", 1.0, "pid: there is no gain 'state.no', only state.kp"),
        ("state.kp", [1.0, 2.0], "state.kp must be 3 finite numbers"),
        ("state.kp", [1.0, 2.0, np.nan], "state.kp must be 3 finite numbers"),
        ("state.thrust_base", 1e8, "state.thrust_base must be within 1e.07, got"),
    ],
)
def test_impossible_gains_are_refused(name: str, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_gain(Controller.pid, name, value)
