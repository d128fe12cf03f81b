"""Policies exported as C, compiled for this machine, and flown by it."""

from __future__ import annotations

import ctypes
import shutil
from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from firmware_source import build
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from crazyflow_ros.doors.motors import CompensatedRotors
from crazyflow_ros.dynamics import RPM
from crazyflow_ros.policy import Motion, Policy
from crazyflow_ros.policy.firmware_app import PLATFORMS, write_app
from crazyflow_ros.sim import Sim

HERE = Path(__file__).parent / "policy" / "firmware"
FREQ = 1000  # Hz, of the firmware's loop
STRICT = ("-Wall", "-Wextra", "-Wshadow", "-Wdouble-promotion", "-Werror", "-DSTAND_IN")
HEADERS = (
    *("autoconf.h", "controller.h", "controller_mellinger.h", "controller_pid.h", "debug.h"),
    *("log.h", "platform_defaults.h", "power_distribution.h", "stabilizer_types.h", "usec_time.h"),
)
FOLDERS = (
    *("config", "modules/interface", "modules/interface/controller", "modules/src/controller"),
    *("hal/interface", "drivers/interface", "utils/interface", "utils/interface/lighthouse"),
    "platform/interface",
)
FILES = (
    *("modules/src/controller/controller_pid", "modules/src/controller/controller_mellinger"),
    *("modules/src/controller/attitude_pid_controller", "utils/src/pid", "utils/src/filter"),
    *("modules/src/controller/position_controller_pid", "utils/src/num"),
    "modules/src/power_distribution_quadrotor",
)
ABSENT = ("autoconf.h", "log.h", "param.h", "commander.h", "debug.h")


class Kind(IntEnum):
    """Kinds of setpoints."""

    stop = 0
    position = 1
    full_state = 2
    manual = 3


class Exported:
    """The C of a policy.

    Args:
        policy: The policy.
        folder: An empty folder.
        source: Sources of the firmware, see `firmware_source.sources`; None for a stand-in.
    """

    def __init__(self, policy: Policy, folder: Path, source: Path | None = None) -> None:
        if not shutil.which("gcc"):
            pytest.skip("there is no gcc to compile the policy with")
        self.policy, app = policy, folder / "app"
        platform = write_app(policy, app)
        code = [str(app / "src" / name) for name in ("policy", "policy_controller")]
        option, own = f"-D{platform.option}=1", f"-I{app / 'src'}"
        if source is None:
            flags = (*STRICT, option, own)
            made = build(app, HERE, folder, folders=(), files=code, absent=HEADERS, flags=flags)
        else:
            flags = (
                "-w",
                "-DCRAZYFLIE_FW",
                f"-DCONFIG_PLATFORM_{platform.name.upper()}=1",
                option,
                own,
            )
            files = (*code, *FILES)
            made = build(
                source, HERE, folder, folders=FOLDERS, files=files, absent=ABSENT, flags=flags
            )
        self.library = made
        self._rotors = CompensatedRotors(next(k for k, v in PLATFORMS.items() if v == platform))
        self._control = (ctypes.c_float * 8)()
        self.begin()
        remembered = max(policy.network.memory.size, 1)
        self._memory = (ctypes.c_float * (policy.mean.size + 4 + remembered))()
        self.library.policy_begin(self._memory)

    def begin(self) -> None:
        """Start the firmware."""
        self.step = 0
        self.library.start()

    def act(self, motion: Motion, yaw: float) -> np.ndarray:
        """The command of the pure part, as `Policy.act_towards` gives it."""
        given = np.concatenate(
            [
                *(motion.pos, motion.quat, motion.vel, motion.ang_vel),
                *(motion.goal, motion.goal_vel, motion.goal_acc, [np.cos(yaw), np.sin(yaw)]),
            ]
        )
        command = (ctypes.c_float * 4)()
        self.library.policy_step(_floats(given), self._memory, command)
        return np.array(command)

    def fly(self, motion: Motion, yaw: float, kind: Kind = Kind.position) -> np.ndarray:
        """What the motors get from a call of the controller, shares of 65535."""
        gyro, angles = np.rad2deg(motion.ang_vel), Rotation.from_quat(motion.quat).as_euler("xyz")
        state = [motion.pos, motion.quat, motion.vel, gyro, np.rad2deg(angles)]
        goal = [motion.goal, motion.goal_vel, motion.goal_acc, [np.rad2deg(yaw)]]
        motors = (ctypes.c_uint16 * 4)()
        given = (_floats(np.concatenate(state)), _floats(np.concatenate(goal)))
        self.library.fly(*given, int(kind), ctypes.c_uint32(self.step), self._control, motors)
        self.step += 1
        return np.array(motors)

    def tilted(self) -> np.ndarray:
        """What the stand-in of the Mellinger controller was given last."""
        return np.array((ctypes.c_float * 7).in_dll(self.library, "tilted"))

    def flight(self, sim: Sim, goal: ArrayLike, yaw: float, ticks: int) -> np.ndarray:
        """Fly the drone of a simulation of 1000 Hz in control mode rotor_vel: positions."""
        places = []
        for _ in range(ticks):
            now, zeros = sim.data.states, np.zeros(3)
            own = [np.asarray(x, float)[0, 0] for x in (now.pos, now.quat, now.vel, now.ang_vel)]
            motion = Motion(*own, np.zeros(4), np.asarray(goal), zeros, zeros, np.zeros(4))
            speeds = self._rotors.speeds(self.fly(motion, yaw).tolist()) / RPM
            sim.rotor_vel_control(jnp.asarray(speeds[None, None], jnp.float32))
            sim.step(1)
            places.append(own[0])
        return np.array(places)


def _floats(values: Sequence[float] | np.ndarray) -> ctypes.Array[ctypes.c_float]:
    return (ctypes.c_float * len(values))(*values)
