"""One Crazyflie: its firmware answers packets, and packets command the drone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np

from crazyflow_ros import flight
from crazyflow_ros.control import Controller
from crazyflow_ros.control.gains import Tuned
from crazyflow_ros.control.pid import firmware_units
from crazyflow_ros.crazyflie.app import CHANNEL, AppTask, Onboard
from crazyflow_ros.crazyflie.crtp import DATA_SIZE, Packet, Port
from crazyflow_ros.crazyflie.gains import GAINS, Gains
from crazyflow_ros.crazyflie.lights import RGB, colours
from crazyflow_ros.crazyflie.localisation import Localisation
from crazyflow_ros.crazyflie.log_blocks import LogBlocks
from crazyflow_ros.crazyflie.memory_port import CrazyflieMemories
from crazyflow_ros.crazyflie.overseer import Overseer
from crazyflow_ros.crazyflie.parameters import CrazyflieParameters, Number
from crazyflow_ros.crazyflie.pilot import Pilot
from crazyflow_ros.crazyflie.power import TARGET, Power, PowerState
from crazyflow_ros.crazyflie.setpoint_ports import SetpointPorts
from crazyflow_ros.crazyflie.setpoints import Decoder
from crazyflow_ros.crazyflie.supervision import Info, Send, Supervision
from crazyflow_ros.crazyflie.telemetry import EXACT, Cell, Telemetry, supervisor_info
from crazyflow_ros.drones import check_quadrotor, load_drone
from crazyflow_ros.dynamics import RPM
from crazyflow_ros.engine.form import GROUPS
from crazyflow_ros.estimation.decks import LOCO
from crazyflow_ros.flight.commander import FlightStatus
from crazyflow_ros.runtime import Snapshot

_PROTOCOL = 12  # version of CRTP in the firmware of 2026
_FIRMWARE = b"2026.08"
_DEVICE = b"CF21"
_MAGIC = b"Bitcraze Crazyflie"
_KALMAN = 2
_CONTROLLER = "stabilizer.controller"
_INITIAL = tuple(f"kalman.initial{name}" for name in ("X", "Y", "Z", "Yaw"))
_FLOW = tuple(f"motion.{name}" for name in ("disable", "adaptive", "flowStdFixed"))
_RATE = 500  # Hz of the attitude controller, on which no gain depends
# Beginnings of the names of parameters that change the flight, or that pilots know not to.
_EXPECTED_NAMES = """
stabilizer.estimator stabilizer.controller stabilizer.stop hlCommander.groupmask
hlCommander.vtoff hlCommander.vland flightmode.althold flightmode.poshold flightmode.posSet
flightmode.stabModeRoll flightmode.stabModePitch cppm. kalman.resetEstimation kalman.initial
memTst.resetW system.testLogParam led. ring. led_deck_ctrl. colorLedBot. colorLedTop.
usd.logging commander.enHighLevel locSrv.ext sound.effect supervisor. motion.
"""
_EXPECTED = tuple(_EXPECTED_NAMES.split())
_NOTHING = np.zeros(sum(GROUPS["desired"].values()))


class Crazyflie:
    """The firmware of one drone. One thread calls `receive`; any thread may set parameters.

    Args:
        number: Last byte of its radio address.
        model: Drone model.
        decks: Names of its decks, see `estimation.decks.DECKS`.
        controller: Initial controller.
        pilot: Commands the drone.
        report: Logs refusals with their reasons, and shows them on the console.
        on_change: Called with the name of a parameter that has changed, and whether someone set
            it, in any thread.
        save: Saves the values of all stored parameters, by name.
        overseer: The firmware's supervisor; None if the commander flies the drone in its own way.
        app: Class of its app.

    Attributes:
        app: Runs its app.
        parameters: Its parameters.
        memories: Its memories.
        supervision: Its supervisor.
        power: Its power.
        localisation: Takes external poses.
        received, rssi: Packets and power [-dBm] received; a server with a radio sets both.
    """

    def __init__(
        self,
        number: int,
        model: str,
        decks: Sequence[str],
        controller: Controller,
        pilot: Pilot,
        report: Callable[[str], None],
        on_change: Callable[[str, bool], None],
        save: Callable[[Mapping[str, Number]], None],
        overseer: Overseer | None,
        app: Callable[[Onboard], Any] | None = None,
    ) -> None:
        self._overseer = overseer
        self._number, self._pilot, self._report = number, pilot, report
        self.memories = CrazyflieMemories(number, decks, pilot, report)
        self._decks = tuple(decks)
        self.supervision = Supervision(pilot, report, overseer)
        self._setpoints = SetpointPorts(pilot, self.supervision, report, overseer)
        self.power = Power(number, pilot, report)
        radio = LOCO if set(LOCO) & set(decks) else ()
        self._own: dict[str, Number] = {f"deck.{deck}": 1 for deck in (*decks, *radio)}
        self._own["stabilizer.controller"] = controller.number
        self._gains = Gains(model, _RATE, true_mass=pilot.physics.config.true_mass)
        self._own |= self._gains.values()
        values = self._own | self._place()
        self.parameters = CrazyflieParameters(values, self._on_set, report, on_change, save)
        memory = self.memories.lighthouse
        self.localisation = Localisation(
            number, pilot, self.parameters.get, self.supervision, memory
        )
        self.received, self.rssi = 0, 0.0
        self.app = AppTask(app, Onboard(pilot.name, self.parameters, self.supervision), report)
        self._noted: set[str] = set()
        check_quadrotor(model, "CRTP")
        figures = load_drone(model)
        self._thrust = np.polynomial.Polynomial(figures["rpm2thrust"])
        self._most_thrust = float(figures["thrust_max"])
        self._cell = Cell.of(model)
        most, trajectories = 4 * self._most_thrust, self.memories.trajectories
        units = {**firmware_units("state", model), **firmware_units("attitude", model)}
        self._units = np.array([units["thrust_max"], *units["torque_max"]])
        self._decoder = Decoder(self.parameters.get, most, trajectories, gentle=overseer is None)
        if overseer is not None:
            overseer.parameter = self.parameters.get
            overseer.is_on = lambda: self.power.state is PowerState.on

    def _place(self) -> dict[str, Number]:
        """Return the parameters with the estimator's initial position and heading."""
        return dict(zip(_INITIAL, self._pilot.place())) if self._pilot.estimates else {}

    def restarted(self) -> None:
        """Restart the firmware after a reset or power-up of the drone. From any thread.

        Parameters return to their stored values or defaults, except for the controller, which all
        drones share.
        """
        pilot = self._pilot

        def forget_gains() -> None:
            if self._gains.differ:
                self._gains.take({})
                pilot.physics.firmware.untune(pilot.name)

        self.parameters.restart(self._own | self._place(), (_CONTROLLER,), forget_gains)
        self.memories.restart()
        self._decoder.lock()
        self.localisation.restart()
        self.received = 0
        self.app.restart()
        self.supervision.watchdog_ms = None
        self.power.restarted()

    def telemetry(
        self, snapshot: Snapshot, row: int, flight: FlightStatus, ranges: np.ndarray | None
    ) -> Telemetry:
        """Return the data from which the drone's log variables are computed.

        Args:
            snapshot: The state of all drones.
            row: Row of this drone.
            flight: Flight state and order of this drone.
            ranges: Readings of its decks, see `Telemetry`.
        """
        rpm = snapshot.rotor_vel[row] / RPM
        _, adapts, fixed = (float(self.parameters.get(name)) for name in _FLOW)
        known = snapshot.known
        return Telemetry(
            time_ns=snapshot.time_ns,
            pos=known.pos[row],
            quat=known.quat[row],
            vel=known.vel[row],
            acc=snapshot.acc[row],
            ang_vel=snapshot.ang_vel[row],
            specific_force=snapshot.specific_force[row],
            thrusts=self._thrust(rpm) / self._most_thrust,
            rpm=rpm,
            battery=None if snapshot.battery is None else snapshot.battery[row],
            cell=self._cell,
            flight=flight,
            external=self.localisation.pose,
            desired=_NOTHING if snapshot.desired is None else snapshot.desired[row],
            units=self._units,
            variances=EXACT if snapshot.believed is None else snapshot.believed.variances[row],
            decks=ranges,
            flow_std=None if adapts else fixed,
            heard=None if snapshot.heard is None else snapshot.heard[row],
            sources=self._pilot.sources,
            stations_valid=self.memories.lighthouse.valid,
            test_value=int(self.parameters.get("system.testLogParam")),
            write_errors=self.memories.tester.errors,
            info=self.info(flight, snapshot, row),
            received=self.received,
            rssi=self.rssi,
        )

    def info(self, flight: FlightStatus, snapshot: Snapshot, row: int) -> int:
        """Return the supervisor's bits, see `telemetry`."""
        if self._overseer is not None:
            return self._overseer.machine.info
        return supervisor_info(flight, snapshot.quat[row], snapshot.time_ns)

    def receive(
        self, packet: Packet, blocks: LogBlocks, info: Info, time_ms: int, send: Send
    ) -> None:
        """Carry out a packet and answer it; without power, do nothing.

        Args:
            packet: The packet.
            blocks: Log blocks of the client that sent it.
            info: Returns the supervisor's bits.
            time_ms: Simulated time.
            send: Sends an answer, possibly later and from another thread.

        Raises:
            ValueError: The packet is malformed, or its request is impossible.
        """
        answer: Packet | None = None
        if _is_for_the_radio(packet):
            answer = packet._replace(data=self.power.answer(packet.data))
        elif self.power.state is PowerState.on:
            self.received += 1
            answer = self._carry_out(packet, blocks, info, time_ms, send)
        if answer is not None:
            send(answer)

    def is_early(self, packet: Packet) -> bool:
        """Return whether a packet has to wait for the start of the firmware."""
        return self.power.state is PowerState.booting and not _is_for_the_radio(packet)

    def _carry_out(
        self, packet: Packet, blocks: LogBlocks, info: Info, time_ms: int, send: Send
    ) -> Packet | None:
        """Carry out a packet as `receive` does, and return the answer to it."""
        answer: Packet | None = None
        if packet.port == Port.link:
            answer = self._link(packet)
        elif packet.port == Port.platform:
            answer = self._platform(packet, send)
        elif packet.port == Port.parameters:
            answer = self.parameters.answer(packet)
        elif packet.port == Port.log:
            answer = blocks.answer(packet)
        elif packet.port == Port.memory:
            answer = self.memories.answer(packet)
        elif packet.port == Port.attitude_setpoint:
            self._setpoints.stream(self._decoder.attitude(packet))
        elif packet.port == Port.setpoint:
            self._setpoints.stream(self._decoder.generic(packet))
        elif packet.port == Port.high_level:
            self._setpoints.high_level(packet, self._decoder, send)
        elif packet.port == Port.localisation:
            answer = self.localisation.answer(packet, time_ms)
        elif packet.port == Port.supervisor:
            answer = self.supervision.answer(packet, info, time_ms, send)
        else:
            raise ValueError(f"there is no port {packet.port}")
        return answer

    def _link(self, packet: Packet) -> Packet | None:
        """Answer as the echo, source or sink of the link port."""
        if packet.channel == 1:
            return packet._replace(data=_MAGIC.ljust(DATA_SIZE, b"\0"))
        return packet if packet.channel == 0 else None

    def _platform(self, packet: Packet, send: Send) -> Packet | None:
        command, values = packet.data[:1], packet.data[1:]
        if packet.channel == 1:
            found = {0: _PROTOCOL.to_bytes(4, "little"), 1: _FIRMWARE, 2: _DEVICE}
            if command and command[0] in found:
                return packet._replace(data=command + found[command[0]])
        if packet.channel == 0 and command == b"\x01" and values:
            self.supervision.arm(packet, send, armed=bool(values[0]))
            return None
        if packet.channel == 0 and command == b"\x02":
            self.supervision.recover(packet, send)
            return None
        if packet.channel == CHANNEL:
            self.app.receive(packet.data)
            return None
        if packet.channel == 0 and command == b"\x03":  # a light or a sound
            return None
        raise ValueError(f"unknown request to the platform, {packet.data.hex() or 'empty'}")

    def take_gains(self, tuned: Tuned) -> None:
        """Adopt the gains of the drone in a checkpoint, from any thread."""

        def values() -> Mapping[str, Number]:
            self._gains.take(tuned)
            return self._gains.values()

        self.parameters.note_all(values)

    def _refused(self, future: Future[Snapshot]) -> None:
        """Report why gains were not changed."""
        if not future.cancelled() and (error := future.exception()) is not None:
            self._report(str(error))

    def _on_set(self, name: str, value: Number) -> None:
        """Apply the effect of a parameter.

        Raises:
            ValueError: The simulator does not support the value.
        """
        firmware = self._pilot.physics.firmware
        if name in GAINS and value != self.parameters.get(name):
            gain = self._gains.set(name, float(value))
            tuned = firmware.tune(self._pilot.name, *gain)
            tuned.add_done_callback(self._refused)
        if name == _CONTROLLER and value != self.parameters.get(name):
            controller = Controller.of_number(int(value)) if value else Controller.default
            self._pilot.set_controller(controller)
        if name == "stabilizer.estimator" and value not in (0, _KALMAN):
            raise ValueError(f"{name} must be {_KALMAN} (Kalman), got {value}")
        if self._pilot.estimates:
            self._tune_estimator(name, value)
        if name == "supervisor.infdmp" and value and self._overseer is not None:
            self._overseer.machine.dumps = True
        if name == "stabilizer.stop" and value and self._overseer is None:
            self.supervision.stop()
        elif name == "hlCommander.groupmask":
            self.supervision.ask(flight.SetGroups(int(value)))
        elif name == "memTst.resetW" and value:
            self.memories.tester.errors = 0
        if name == RGB:
            for light, colour in colours(self._decks, int(value)).items():
                self.parameters.note(light, colour)
        has_effect = name in GAINS or name.startswith(_EXPECTED) or name in self._pilot.beacons
        if not has_effect and name not in self._noted:
            self._noted.add(name)
            self._report(f"parameter {name} is kept, and has no effect in the simulator")

    def _tune_estimator(self, name: str, value: Number) -> None:
        """Apply the effect of a parameter on the estimator."""
        firmware, drone = self._pilot.physics.firmware, self._pilot.name
        if name == "kalman.resetEstimation" and value:
            start = np.array([self.parameters.get(initial) for initial in _INITIAL], float)
            self._pilot.restart_estimate(start, self._report)
        if name in _FLOW:
            values = {flow: float(self.parameters.get(flow)) for flow in _FLOW} | {name: value}
            tuned = firmware.tune_flow(drone, [values[flow] for flow in _FLOW])
            tuned.add_done_callback(self._refused)
        if name in self._pilot.beacons:
            self._pilot.tell_beacons(self._report, name, value)


def _is_for_the_radio(packet: Packet) -> bool:
    """Return whether a packet is for the radio chip, which may have power alone."""
    return packet.port == Port.link and packet.channel == 3 and packet.data[:1] == bytes([TARGET])
