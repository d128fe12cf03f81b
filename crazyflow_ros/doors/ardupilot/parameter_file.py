"""ArduPilot's parameters for each of our drones, from its figures."""

from __future__ import annotations

import numpy as np

from crazyflow_ros.doors.motors import Motors, frame_of
from crazyflow_ros.drones import load_drone, model_name, rotors_of
from crazyflow_ros.drones.instruments import VL53L1X_MAX_RANGE
from crazyflow_ros.dynamics import RPM

_SPIN_ARM, _SPIN_MIN, _SPIN_MAX = 0.1, 0.15, 0.95  # outputs; ArduPilot's defaults
_HOVER_LIMITS = 0.125, 0.6875  # of MOT_THST_HOVER
_POINTS = np.linspace(0.0, 1.0, 50)  # of the thrust curve
_FIXED = {
    "FRAME_TYPE": 1,  # X
    "MOT_PWM_MIN": 1000,
    "MOT_PWM_MAX": 2000,
    "MOT_SPIN_ARM": _SPIN_ARM,
    "MOT_SPIN_MIN": _SPIN_MIN,
    "MOT_SPIN_MAX": _SPIN_MAX,
    "BATT_MONITOR": 4,
    # The offsets that its simulated sensors have, as after their calibration.
    **{
        f"COMPASS_OFS{n}_{axis}": offset
        for n in ("", "2", "3")
        for axis, offset in zip("XYZ", (5, 13, -18))
    },
    **{f"INS_ACC{n}OFFS_{axis}": 0.001 for n in ("", "2") for axis in "XYZ"},
    **{f"INS_ACC{n}SCAL_{axis}": 1.001 for n in ("", "2") for axis in "XYZ"},
}
_RANGE_FINDER = {
    "RNGFND1_TYPE": 100,  # that of the simulator
    "RNGFND1_ORIENT": 25,  # down
    "RNGFND1_MAX": VL53L1X_MAX_RANGE,  # since version 4.7
    "RNGFND1_MAX_CM": 100 * VL53L1X_MAX_RANGE,  # earlier; of the two, a version does not know one
}


def parameters(drone_model: str, loop_rate: int, *, range_finder: bool) -> str:
    """Return a file for ArduPilot's option --defaults.

    It contains the frame, the thrust curve and the hover thrust. The gains remain ArduPilot's,
    which suit drones of a kilogram or two.

    Args:
        drone_model: Name of the drone model.
        loop_rate: Loops of ArduPilot a second [Hz].
        range_finder: Whether the drone has one.

    Raises:
        ValueError: ArduPilot has no frame for the drone.
    """
    values: dict[str, float] = {"SCHED_LOOP_RATE": loop_rate}
    values |= {"FRAME_CLASS": frame_class(drone_model)} | _FIXED | _thrust(drone_model)
    if range_finder:
        values |= _RANGE_FINDER
    lines = (f"{name} {value:.6g}" for name, value in values.items())
    return "\n".join((f"# {model_name(drone_model)} in crazyflow_ros", *lines, ""))


def frame_class(drone_model: str) -> int:
    """Return FRAME_CLASS of a drone.

    Raises:
        ValueError: ArduPilot has no frame for it.
    """
    found = frame_of(drone_model)
    if found is None:
        name, rotors = model_name(drone_model), rotors_of(drone_model)
        raise ValueError(
            f"ArduPilot has no frame for {name}, whose {len(rotors)} rotors are not those of a "
            "quadrotor X, hexarotor X or octaquad X"
        )
    return found[0].number


def _thrust(drone_model: str) -> dict[str, float]:
    """Return MOT_THST_EXPO, the e of ArduPilot's curve (1 - e) u + e u², and the thrust in hover.

    Both refer to the thrust between the outputs MOT_SPIN_MIN (u = 0) and MOT_SPIN_MAX (u = 1).
    """
    figures = load_drone(drone_model)
    fastest = Motors(drone_model).fastest / RPM

    def thrust(u: np.ndarray | float) -> np.ndarray:
        output = _SPIN_MIN + (_SPIN_MAX - _SPIN_MIN) * np.asarray(u)
        return np.asarray(np.polyval(figures["rpm2thrust"][::-1], fastest * output))

    least, most = thrust(0.0), thrust(1.0)
    shares = (thrust(_POINTS) - least) / (most - least)
    curve = _POINTS**2 - _POINTS
    weight = figures["mass"] * -figures["gravity_vec"][2]
    return {
        "MOT_THST_EXPO": float(np.clip(curve @ (shares - _POINTS) / (curve @ curve), -1.0, 1.0)),
        "MOT_THST_HOVER": float(np.clip((weight / 4 - least) / (most - least), *_HOVER_LIMITS)),
    }
