"""After a crash, an emergency stop or wild parameters: cflib brings a drone back as a real one.

Time stands still but for steps, so that nothing depends on how fast the computer is.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest
from crazyflie_helpers import ECHO, MODEL, Crazyflies, Link, asked, connected, crazyflies, until

from crazyflow_ros.crazyflie.crtp import Packet, Port
from crazyflow_ros.crazyflie.pilot import CFLIB_ADVICE
from crazyflow_ros.dynamics.forces import rest_height
from crazyflow_ros.engine.disturbances import BatteryCharge
from crazyflow_ros.flight import FlightConfig, FlightState, Takeoff
from crazyflow_ros.runtime import DroneState, ResetScope
from crazyflow_ros.scene.frames import rpy

pytest.importorskip("cflib", reason="cflib is not installed")

import cflib.crtp
from cflib.crazyflie import Crazyflie
from cflib.crazyflie.log import LogConfig
from cflib.crtp.crtpstack import CRTPPacket, CRTPPort
from cflib.utils.power_switch import PowerSwitch

T = 60.0  # s
FREQ = 500
LIES = np.array([1.5, -0.4])  # m, where a drone falls down
PROBE = b"\xff"
VOLTAGE = Packet(Port.link, 3, b"\xfe\x04")
UPSIDE_DOWN = (np.sin(1.6), 0.0, 0.0, np.cos(1.6))
ON_ITS_SIDE = (np.sin(np.pi / 4), 0.0, 0.0, np.cos(np.pi / 4))
KP_Z = 1.25  # parameter ctrlMel.kp_z of the firmware


@pytest.fixture(scope="module")
def served() -> Iterator[Crazyflies]:
    cflib.crtp.init_drivers()
    flight = FlightConfig(exact_durations=True, advice=CFLIB_ADVICE)
    with crazyflies(2, flight=flight, battery=True, start_paused=True) as found:
        yield found


@pytest.fixture(autouse=True)
def on_the_floor(served: Crazyflies) -> None:
    served.physics.state.reset().result(T)
    served.log.clear()


def step(served: Crazyflies, seconds: float) -> None:
    served.physics.step(round(seconds * FREQ)).result(T)


def state(served: Crazyflies) -> FlightState:
    return served.physics.commands.states.get("cf0", FlightState.idle)


def hover(served: Crazyflies) -> None:
    assert not served.physics.fly({"cf0": Takeoff(1.0, 2.0)}).result(T).refused
    step(served, 3.0)
    assert served.physics.snapshot.pos[0, 2] == pytest.approx(1.0, abs=0.05)


def crash(served: Crazyflies, quat: tuple[float, ...] = UPSIDE_DOWN, height: float = 0.1) -> None:
    """Let cf0 fall down at a place, and lie there."""
    hover(served)
    fallen = DroneState(pos=(*LIES, height), quat=quat, vel=np.zeros(3), ang_vel=np.zeros(3))
    served.physics.state.set_drone_states({"cf0": fallen}).result(T)
    step(served, 2.0)
    assert state(served) is FlightState.crashed


def ask(cf: Crazyflie, send: Callable[[], object]) -> tuple[bool, bool]:
    """Send a request to recover, and return the two values of the answer."""
    answers: list[CRTPPacket] = []
    cf.add_port_callback(CRTPPort.SUPERVISOR, answers.append)
    cf.add_port_callback(CRTPPort.PLATFORM, answers.append)
    send()
    until(lambda: answers, "an answer")
    cf.remove_port_callback(CRTPPort.SUPERVISOR, answers.append)
    cf.remove_port_callback(CRTPPort.PLATFORM, answers.append)
    assert answers[0].data[0] in (0x82, 0x02)
    return bool(answers[0].data[1]), bool(answers[0].data[2])


def switch(served: Crazyflies, action: Callable[[PowerSwitch], None]) -> None:
    """Use cflib's switch; it waits no longer than 0.1 s for an answer, on whatever computer."""
    for _ in range(20):
        with closing(PowerSwitch(served.uris[0])) as power:
            try:
                return action(power)
            except Exception as error:
                if "Failed to connect" not in str(error):
                    raise
    raise AssertionError("cflib's switch heard no answer in time, 20 times")


def told(cf: Crazyflie, lines: list[str]) -> str:
    """What the drone says to an order to take off; it does not repeat itself within a second."""
    cf.high_level_commander.takeoff(1.0, 1.0)
    time.sleep(0.1)
    return "".join(lines)


def assert_stands_where_it_lay(served: Crazyflies, at: np.ndarray) -> None:
    now = served.physics.snapshot
    np.testing.assert_allclose(now.pos[0, :2], at, atol=0.02)
    assert now.pos[0, 2] == pytest.approx(rest_height(MODEL), abs=0.002)
    np.testing.assert_allclose(rpy(now.quat[0])[:2], 0.0, atol=0.02)


def assert_flies_again(served: Crazyflies, cf: Crazyflie) -> None:
    cf.high_level_commander.takeoff(0.7, 2.0)
    until(lambda: state(served) is FlightState.taking_off, "a take-off")
    step(served, 4.0)
    assert served.physics.snapshot.pos[0, 2] == pytest.approx(0.7, abs=0.03)
    assert state(served) is FlightState.flying


@pytest.mark.parametrize("quat", [UPSIDE_DOWN, ON_ITS_SIDE])
def test_a_crashed_drone_recovers_and_flies(
    served: Crazyflies, tmp_path: Path, quat: tuple[float, ...]
) -> None:
    with connected(served.uris[0], tmp_path) as cf:
        console: list[str] = []
        cf.console.receivedChar.add_callback(console.append)
        crash(served, quat)
        until(lambda: cf.supervisor.is_crashed, "the state after a crash")
        assert not cf.supervisor.can_fly and cf.supervisor.is_tumbled
        lay = served.physics.snapshot.pos[0, :2].copy()
        until(lambda: "recover it (cf.supervisor" in told(cf, console), "advice on the console")
        # As on a drone that a person has set upright; nobody else is here to do so.
        assert ask(cf, cf.supervisor.send_crash_recovery_request) == (True, True)
        until(lambda: "set upright where it lay" in "".join(console), "what was done")
        step(served, 0.5)
        until(lambda: not cf.supervisor.is_crashed, "recovery")
        assert cf.supervisor.can_fly and cf.supervisor.is_armed
        assert_stands_where_it_lay(served, lay)
        assert_flies_again(served, cf)
        assert not [line for line in served.log if "cf0/reset" in line]


def test_it_has_to_lie_still(served: Crazyflies, tmp_path: Path) -> None:
    """The firmware refuses while a drone is tumbled; nobody can set one upright in the air."""
    with connected(served.uris[0], tmp_path) as cf:
        crash(served)
        falls = DroneState(pos=(*LIES, 2.2), quat=UPSIDE_DOWN, ang_vel=(3.0, 1.0, 0.0))
        served.physics.state.set_drone_states({"cf0": falls}).result(T)
        step(served, 0.2)
        assert state(served) is FlightState.crashed and served.physics.snapshot.pos[0, 2] > 1.5
        recover = cf.supervisor.send_crash_recovery_request
        assert ask(cf, recover) == (False, False)
        assert state(served) is FlightState.crashed
        assert "cf0: it does not stand upright, and cannot recover" in served.log
        step(served, 5.0)
        assert ask(cf, recover) == (True, True)
        assert state(served) is FlightState.landed


def test_a_drone_that_fell_on_its_feet_recovers_as_it_is(
    served: Crazyflies, tmp_path: Path
) -> None:
    """By the old request to the platform, too, which older programs send."""
    with connected(served.uris[0], tmp_path) as cf:
        crash(served)
        there = DroneState(pos=(*LIES, rest_height(MODEL)), quat=(0.0, 0.0, 0.0, 1.0))
        served.physics.state.set_drone_states({"cf0": there}).result(T)
        request = CRTPPacket()
        request.set_header(CRTPPort.PLATFORM, 0)
        request.data = (2,)
        assert ask(cf, lambda: cf.send_packet(request)) == (True, True)
        assert not [line for line in served.log if "upright" in line]
        assert_flies_again(served, cf)


def test_a_drone_that_did_not_crash_has_nothing_to_recover_from(
    served: Crazyflies, tmp_path: Path
) -> None:
    """A flying one flies on; one that is locked stays so, and is to be restarted."""
    with connected(served.uris[0], tmp_path) as cf:
        hover(served)
        assert ask(cf, cf.supervisor.send_crash_recovery_request) == (True, True)
        step(served, 0.5)
        assert state(served) is FlightState.flying
        cf.supervisor.send_emergency_stop()
        until(lambda: state(served) is FlightState.locked, "an emergency stop")
        assert ask(cf, cf.supervisor.send_crash_recovery_request) == (True, True)
        assert state(served) is FlightState.locked
        advice = "it is locked: switch it off and on (cflib.utils.power_switch.PowerSwitch)"
        until(lambda: advice in told(cf, served.log), "advice")
        switch(served, PowerSwitch.reboot_to_fw)
        until(lambda: state(served) is FlightState.idle, "a restart")
    with connected(served.uris[0], tmp_path) as cf:
        assert not cf.supervisor.is_locked
        step(served, 1.0)
        assert_flies_again(served, cf)


def put(cf: Crazyflie, name: str, value: float) -> None:
    """Set a parameter, and wait for its value in force."""
    cf.param.set_value(name, value)
    until(lambda: float(cf.param.get_value(name)) == pytest.approx(value), name)


@contextmanager
def stored(served: Crazyflies, folder: Path, name: str, value: float) -> Iterator[None]:
    """A parameter is stored meanwhile."""
    with connected(served.uris[0], folder) as cf:
        put(cf, name, value)
        assert asked(cf.param.persistent_store, name) is True
    yield
    with connected(served.uris[0], folder) as cf:
        assert asked(cf.param.persistent_clear, name) is True


def test_a_restarted_drone_lies_where_it_lay_and_knows_what_it_stored(
    served: Crazyflies, tmp_path: Path
) -> None:
    """All else that its firmware knew is gone. It keeps the charge of its battery."""
    served.physics.world.disturb(BatteryCharge("cf0", 0.6)).result(T)
    with stored(served, tmp_path, "ctrlMel.kd_xy", 0.31):
        with connected(served.uris[0], tmp_path) as cf:
            put(cf, "ctrlMel.kp_z", 0.4)
            put(cf, "hlCommander.groupmask", 3)
            log = LogConfig("height", 10)
            log.add_variable("stateEstimate.z", "float")
            heights: list[int] = []
            log.data_received_cb.add_callback(lambda stamp, *_: heights.append(stamp))
            cf.log.add_config(log)
            log.start()
            crash(served)
            until(lambda: heights, "values of the log")
            lay = served.physics.snapshot.pos[0, :2].copy()
            drawn = served.physics.snapshot.battery[0, 2]
            assert drawn > 0.05
            switch(served, PowerSwitch.stm_power_down)
            until(lambda: state(served) is FlightState.locked, "no power")
            (refused,) = served.physics.fly({"cf0": Takeoff(1.0)}).result(T).refused
            assert "cf0: it is locked (it is switched off): switch it off and on" in refused
            assert any("stm_power_up" in line for line in served.log)
            switch(served, PowerSwitch.stm_power_up)
        # At once, without the time that a real one needs to start.
        with connected(served.uris[0], tmp_path) as cf:
            assert state(served) is FlightState.idle
            assert float(cf.param.get_value("ctrlMel.kd_xy")) == pytest.approx(0.31)
            assert float(cf.param.get_value("ctrlMel.kp_z")) == pytest.approx(KP_Z)
            assert int(cf.param.get_value("hlCommander.groupmask")) == 0
            assert_stands_where_it_lay(served, lay)
            assert served.physics.snapshot.battery[0, 2] == pytest.approx(drawn, abs=1e-4)
            n = len(heights)
            assert_flies_again(served, cf)
            assert len(heights) == n  # the block was in the memory of the firmware


def test_a_drone_that_loses_its_power_in_flight_falls(served: Crazyflies, tmp_path: Path) -> None:
    """Until it has power again it answers nothing, and also after that it lies where it fell."""
    hover(served)
    switch(served, PowerSwitch.stm_power_down)
    until(lambda: state(served) is FlightState.locked, "no power")
    step(served, 1.5)
    now = served.physics.snapshot
    assert now.pos[0, 2] < 0.1 and now.rotor_vel[0].max() < 500
    with closing(Link(served.uris[0])) as link:
        link.send(PROBE)
        assert link.receive_any() == PROBE
        link.send(ECHO)  # which the firmware would send back
        link.send(VOLTAGE)
        assert link.receive_any().startswith(bytes(VOLTAGE))  # the radio chip is alone
    switch(served, PowerSwitch.stm_power_up)
    until(lambda: state(served) is FlightState.idle, "a restart")
    with connected(served.uris[0], tmp_path) as cf:
        assert_flies_again(served, cf)


def test_a_drone_that_is_off_is_not_found_and_comes_back_charged(
    served: Crazyflies, tmp_path: Path
) -> None:
    served.physics.world.disturb(BatteryCharge("cf0", 0.3)).result(T)
    step(served, 0.1)
    with closing(Link(served.uris[0])) as link:
        link.send(PROBE)
        assert link.receive_any() == PROBE
        (volts,) = struct.unpack("<f", link.ask(VOLTAGE).data[2:])
        assert volts == pytest.approx(served.physics.snapshot.battery[0, 0], abs=0.01)
    switch(served, PowerSwitch.platform_power_down)
    with closing(Link(served.uris[0])) as link:
        link.send(PROBE)
        link.send(VOLTAGE)
        assert link.receive_any() != PROBE
    switch(served, PowerSwitch.stm_power_up)
    until(lambda: state(served) is FlightState.idle, "a restart")
    assert served.physics.snapshot.battery[0, 2] == 0.0
    with connected(served.uris[0], tmp_path) as cf:
        assert_flies_again(served, cf)


def test_the_boot_loader_has_nothing_to_load(served: Crazyflies) -> None:
    """A reset without its beginning does nothing, as on the radio chip."""
    with closing(Link(served.uris[0])) as link:
        link.ask(Packet(Port.link, 3, b"\xfe\xf0\x00"))
        assert state(served) is FlightState.idle
    switch(served, PowerSwitch.reboot_to_bootloader)
    until(lambda: state(served) is FlightState.locked, "no power")
    assert any("nothing to load in the simulator" in line for line in served.log)
    switch(served, PowerSwitch.reboot_to_fw)
    until(lambda: state(served) is FlightState.idle, "a restart")


WILD = {"ctrlMel.kp_xy": 9.0, "ctrlMel.kd_omega_rp": 4e4, "ctrlMel.kR_xy": 9e5, "ctrlMel.mass": 0.2}


@pytest.mark.parametrize("drones", [None, ["cf0"]])
def test_a_reset_is_a_power_cycle_for_parameters(
    served: Crazyflies, tmp_path: Path, drones: list[str] | None
) -> None:
    """Drones with wild gains fly after a reset as they did before anybody changed their gains."""

    def flown(cf: Crazyflie) -> np.ndarray:
        served.physics.state.reset(drones=drones).result(T)
        until(lambda: float(cf.param.get_value("ctrlMel.kp_z")) == pytest.approx(KP_Z), "a gain")
        assert not served.physics.fly({"cf0": Takeoff(0.6, 1.0)}).result(T).refused
        way = []
        for _ in range(10):
            step(served, 0.2)
            way.append(served.physics.snapshot.pos[0].copy())
        return np.array(way)

    with connected(served.uris[0], tmp_path) as cf:
        before = flown(cf)
        served.physics.state.reset().result(T)
        for name, value in {**WILD, "ctrlMel.kp_z": 30.0}.items():
            put(cf, name, value)
        served.physics.fly({"cf0": Takeoff(0.6, 1.0)}).result(T)
        step(served, 2.0)
        assert not np.allclose(served.physics.snapshot.pos[0], before[-1], atol=0.05)
        np.testing.assert_array_equal(flown(cf), before)
        assert served.physics.state.checkpoint().result(T).about["gains"] == {}


def test_a_reset_of_one_drone_leaves_the_gains_of_others(
    served: Crazyflies, tmp_path: Path
) -> None:
    with connected(served.uris[0], tmp_path) as cf:
        put(cf, "ctrlMel.kp_z", 1.6)
        served.physics.state.reset(drones=["cf1"]).result(T)
        served.physics.state.reset(ResetScope.time).result(T)
        kept = served.physics.state.checkpoint().result(T).about["gains"]
        assert kept["cf0"]["mellinger"]["state.kp"][2] == pytest.approx(1.6)
        assert float(cf.param.get_value("ctrlMel.kp_z")) == pytest.approx(1.6)


def test_stored_gains_act_after_a_reset(served: Crazyflies, tmp_path: Path) -> None:
    with stored(served, tmp_path, "ctrlMel.kp_z", 1.6):
        served.physics.state.reset().result(T)
        gains = served.physics.state.checkpoint().result(T).about["gains"]
        assert gains["cf0"]["mellinger"]["state.kp"][2] == pytest.approx(1.6)
        assert set(gains) == {"cf0"}
