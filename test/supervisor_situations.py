"""Situations of a Crazyflie's supervisor, and what its state machine does in each of them.

The table is supervisor_situations.toml beside this file: what happens, and the states, console and
bits that the firmware's own sources answer with. With CRAZYFLIE_FIRMWARE set to a checkout,
`python test/supervisor_situations.py` writes these answers anew.

What happens, each after a time [ms] from the moment at which the drone is ready, or waits to be
armed:

    takeoff, land, go_to SECONDS   of the high-level commander
    stop                           of the high-level commander
    setpoint, thrust               one streamed setpoint with a height, or with a thrust
    stream MS                      setpoints with a height, 20 ms apart, for this long
    zero                           cflib's send_stop_setpoint
    notify                         the end of a stream
    arm, disarm, recover, emergency, watchdog
    set PARAMETER VALUE            a parameter of the firmware
    acc X Y Z                      what the accelerometer reads from now on [g]
    rpm A B C D                    speeds of the motors from now on; -1: idle
    end                            the last look
"""

from __future__ import annotations

import ctypes
import os
import shutil
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from firmware_source import build, sources

from crazyflow_ros.crazyflie.supervisor_states import (
    BRUSHED,
    BRUSHLESS,
    PARAMETERS,
    Seen,
    SetpointQueue,
    SupervisorMachine,
)
from crazyflow_ros.crazyflie.supervisor_transitions import State

TABLE = Path(__file__).with_name("supervisor_situations.toml")
READY = 1000  # tick at which time begins to count
STEP = 10  # ms
UPDATE = 40  # ms
FULL = 40000  # PWM
FLAGS = {
    "brushed": ["-DCONFIG_PLATFORM_CF2"],
    "brushless": [
        "-DCONFIG_PLATFORM_CF21BL",
        "-DCONFIG_MOTORS_REQUIRE_ARMING=1",
        "-DCONFIG_MOTORS_DEFAULT_IDLE_THRUST=7000",
        "-DCONFIG_MOTORS_ESC_PROTOCOL_DSHOT_BIDIRECTIONAL",
        "-DCONFIG_MOTORS_ARMING_RPM_MIN=1000",
        "-DCONFIG_MOTORS_ARMING_RPM_MAX=3500",
        "-DCONFIG_MOTORS_ARMING_RPM_DURATION_MS=200",
        "-DCONFIG_MOTORS_RPM_NOT_RESPONDING_THRESHOLD=500",
    ],
}
FOLDERS = (
    *("config", "modules/interface", "modules/interface/estimator", "hal/interface"),
    *("drivers/interface", "utils/interface", "utils/interface/lighthouse"),
    *("platform/interface", "modules/src"),
)
SOURCES = (
    *("supervisor_state_machine", "commander", "crtp_commander_high_level", "planner"),
    *("pptraj", "pptraj_compressed"),
)
ABSENT = (
    *("FreeRTOS.h", "task.h", "semphr.h", "queue.h", "arm_math.h", "autoconf.h", "static_mem.h"),
    *("motors.h", "deck_supervisor.h", "system.h", "param.h", "log.h", "cf_math.h"),
)


class Judge(Protocol):
    """A firmware to which things happen."""

    def happen(self, what: str, *values: float) -> str:
        """Let something happen; return the answer, if there is one."""

    def set(self, parameter: str, value: float) -> None:
        """Set a parameter."""

    def step(self) -> None:
        """Advance by `STEP`."""

    def look(self) -> tuple[str, int, list[str]]:
        """Return state and bits, and what the console has said since the last look."""


@dataclass
class Answers:
    """What a firmware does; each line begins with a time [ms]."""

    states: list[str] = field(default_factory=list)
    console: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    bits: list[str] = field(default_factory=list)


def events(situation: Mapping[str, Any]) -> Iterator[tuple[int, str, list[str]]]:
    """What happens in a situation, in order: time, what, and values."""
    for line in situation["events"]:
        time, what, *values = line.split()
        if what == "stream":
            for at in range(int(time), int(time) + int(values[0]), 20):
                yield at, "setpoint", []
        else:
            yield int(time), what, values


def answers(judge: Judge, situation: Mapping[str, Any]) -> Answers:
    """What a firmware does in a situation."""
    found, todo, time, last = Answers(), sorted(events(situation), key=lambda e: e[0]), 0, ("", -1)
    for _ in range(READY // STEP):
        judge.step()
    judge.look()
    while todo:
        while todo and todo[0][0] <= time:
            _, what, values = todo.pop(0)
            if what == "set":
                judge.set(values[0], float(values[1]))
            elif what != "end" and (answer := judge.happen(what, *map(float, values))):
                found.answers.append(f"{time} {what}: {answer}")
        judge.step()
        state, bits, said = judge.look()
        if state != last[0]:
            found.states.append(f"{time} {state}")
        if bits != last[1]:
            found.bits.append(f"{time} 0x{bits:03x}")
        found.console += [f"{time} {line}" for line in said]
        last, time = (state, bits), time + STEP
    return found


class Ours:
    """Our machine and queue, in the order of the firmware's stabilizer loop."""

    def __init__(self, platform: str) -> None:
        self._parameters, self._said = dict(PARAMETERS), list[str]()
        self._platform = {"brushed": BRUSHED, "brushless": BRUSHLESS}[platform]
        self._machine = SupervisorMachine(
            self._platform, self._parameters.__getitem__, self._said.append
        )
        self._queue, self._tick = SetpointQueue(), 0
        self._acc, self._rpm = (0.0, 0.0, 1.0), (-1.0,) * 4
        self._asks = False  # whether the streamed setpoint asks for thrust
        self._thrust = 0.0
        self._plan = ""  # of the high-level commander
        self._end = 0.0  # of its trajectory

    def happen(self, what: str, *values: float) -> str:
        machine, queue = self._machine, self._queue
        if what in ("setpoint", "thrust", "zero"):
            queue.stream(self._tick)
            self._asks, self._plan = what != "zero", ""
        elif what == "notify":
            queue.relax()
        elif what in ("takeoff", "land", "go_to"):
            if machine.can_fly and not (what == "takeoff" and self._plan):
                self._plan, self._end = what, self._tick + 1000 * values[0]
        elif what == "stop":
            self._plan = ""
        elif what in ("arm", "disarm"):
            return f"{machine.request_arming(what == 'arm'):d} {machine.is_armed:d}"
        elif what == "recover":
            return f"{machine.request_recovery():d} {not machine.is_crashed:d}"
        elif what == "emergency":
            machine.stop_requested = True
        elif what == "watchdog":
            machine.watchdog_tick = self._tick
        elif what == "acc":
            self._acc = values  # type: ignore[assignment]
        elif what == "rpm":
            self._rpm = values  # type: ignore[assignment]
        return ""

    def set(self, parameter: str, value: float) -> None:
        assert parameter in self._parameters or parameter == "supervisor.infdmp"
        if parameter == "supervisor.infdmp":
            self._machine.dumps = bool(value)
        self._parameters[parameter] = value

    def step(self) -> None:
        machine, queue, tick = self._machine, self._queue, self._tick
        could = machine.can_fly
        if not could:
            self._plan = ""
        if could:
            if self._plan == "land" and tick >= self._end:
                self._plan = ""
            queue.plan(tick)
        thrusts = could and (self._asks if queue.is_streamed else bool(self._plan))
        if tick % UPDATE == 0:
            idle = 2000 if machine.runs_motors else 0
            rpm = [idle if speed < 0 else speed for speed in self._rpm]
            seen = Seen(
                acc=self._acc,
                thrust=self._thrust,
                setpoint_tick=queue.tick if could else 0,
                rpm=rpm,
                plans=bool(self._plan),
                finished=tick >= self._end,
            )
            machine.update(tick, seen)
        self._thrust = self._platform.idle if machine.runs_motors else 0
        if machine.runs_motors and thrusts:
            self._thrust = FULL
        self._tick += STEP

    def look(self) -> tuple[str, int, list[str]]:
        said = self._said.copy()
        self._said.clear()
        return self._machine.state.value, self._machine.info, said


class Firmware:
    """The firmware's own sources. Each instance needs a library of its own."""

    def __init__(self, library: Path) -> None:
        self._c = ctypes.CDLL(str(library))
        self._now = ctypes.c_uint32.in_dll(self._c, "host_tick")
        self._console = (ctypes.c_char * 100000).in_dll(self._c, "host_console")
        seconds = ctypes.c_float
        self._commands = {
            "takeoff": lambda s: self._c.crtpCommanderHighLevelTakeoff(seconds(0.5), seconds(s)),
            "land": lambda s: self._c.crtpCommanderHighLevelLand(seconds(0), seconds(s)),
            "go_to": lambda s: self._c.crtpCommanderHighLevelGoTo(
                *map(seconds, (1, 0, 1, 0, s)), False
            ),
            "stop": self._c.crtpCommanderHighLevelStop,
            "setpoint": lambda: self._c.host_setpoint(1, seconds(0)),
            "thrust": lambda: self._c.host_setpoint(0, seconds(FULL)),
            "zero": lambda: self._c.host_setpoint(0, seconds(0)),
            "notify": self._c.host_relax,
            "emergency": self._c.host_emergency,
            "watchdog": self._c.host_watchdog,
        }

    def happen(self, what: str, *values: float) -> str:
        asked = {"arm": (self._c.host_arm, 1), "disarm": (self._c.host_arm, 0)}
        asked["recover"] = (self._c.host_recover,)  # type: ignore[assignment]
        if what in asked:
            ask, *arguments = asked[what]
            answer = ask(*arguments)
            return f"{answer >> 1} {answer & 1}"
        if what == "acc":
            (ctypes.c_float * 3).in_dll(self._c, "host_acc")[:] = list(values)
        elif what == "rpm":
            (ctypes.c_int * 4).in_dll(self._c, "host_rpm")[:] = list(map(int, values))
        else:
            self._commands[what](*values)
        return ""

    def set(self, parameter: str, value: float) -> None:
        name = parameter.rpartition(".")[2].encode()
        assert self._c.host_set(name, ctypes.c_double(value)), parameter

    def step(self) -> None:
        for _ in range(STEP):
            self._c.host_step()
            self._now.value += 1

    def look(self) -> tuple[str, int, list[str]]:
        said = self._console.value.decode().splitlines()
        self._console.value = b""
        return list(State)[self._c.host_state()].value, self._c.host_info(), said


class Firmwares:
    """Builds the firmware for each platform once; its variables begin anew for each situation."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._built, self._n = folder, dict[str, Path](), 0

    def new(self, platform: str) -> Firmware:
        if platform not in self._built:
            folder = self._folder / platform
            folder.mkdir()
            flags = ["-w", "-DCONFIG_SUPERVISOR_CRASH_DETECTION_G=0", *FLAGS[platform]]
            harness = Path(__file__).parent / "crazyflie" / "firmware_supervisor"
            build(
                sources(),
                harness,
                folder,
                folders=FOLDERS,
                files=[f"modules/src/{name}" for name in SOURCES],
                absent=ABSENT,
                flags=flags,
            )
            self._built[platform] = folder / "firmware.so"
        self._n += 1
        return Firmware(shutil.copy(self._built[platform], self._folder / f"{self._n}.so"))


def situations() -> list[dict[str, Any]]:
    """The table."""
    found: list[dict[str, Any]] = tomllib.loads(TABLE.read_text())["situation"]
    return found


def _written(found: Sequence[Mapping[str, Any]]) -> str:
    """The table as text."""
    lines = [line for line in TABLE.read_text().splitlines() if line.startswith("#")]
    for situation in found:
        lines += ["", "[[situation]]"]
        for key, value in situation.items():
            if isinstance(value, str):
                lines.append(f'{key} = "{value}"')
            elif len(text := ", ".join(f'"{each}"' for each in value)) < 88:
                lines.append(f"{key} = [{text}]")
            else:
                lines += [f"{key} = [", *(f'    "{each}",' for each in value), "]"]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the firmware's answers into the table."""
    table = situations()
    with tempfile.TemporaryDirectory() as folder:
        firmwares = Firmwares(Path(folder))
        for situation in table:
            found = answers(firmwares.new(situation["platform"]), situation)
            situation.update(vars(found))
    TABLE.write_text(_written(table))


if __name__ == "__main__":
    assert os.environ.get("CRAZYFLIE_FIRMWARE"), "CRAZYFLIE_FIRMWARE names no checkout"
    main()
