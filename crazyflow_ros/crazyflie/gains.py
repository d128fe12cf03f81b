"""Gains of the controllers by the names of the firmware's parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from math import pi
from typing import NamedTuple

import numpy as np

from crazyflow_ros.control import Controller, brescianini, indi, mellinger, pid
from crazyflow_ros.control.gains import Tuned, check_gain
from crazyflow_ros.drones import load_drone

_LARGEST = 1e7  # of a gain
_VELOCITY_MARGIN = 1.1  # factor on the limit of velocities in the firmware
_THOUSAND = 1000.0  # the firmware multiplies vertical gains by this


class _Gain(NamedTuple):
    controller: Controller
    stage: str
    name: str
    axes: tuple[int, ...] = ()
    """Empty for a number without axes."""
    factor: float = 1.0
    """Factor by which the parameter is multiplied before its units are converted."""


def _axes(
    controller: Controller,
    stage: str,
    group: str,
    names: str,
    gains: Mapping[str, str],
    factors: Sequence[float] = (1.0, 1.0, 1.0),
) -> dict[str, _Gain]:
    """Return the gains of axes that have separate parameters."""
    return {
        f"{group}.{axis}{suffix}": _Gain(controller, stage, gain, (i,), factors[i])
        for i, axis in enumerate(names.split())
        for suffix, gain in gains.items()
    }


def _shared(
    controller: Controller,
    stage: str,
    group: str,
    gains: Mapping[str, tuple[str, tuple[int, ...]]],
) -> dict[str, _Gain]:
    """Return gains that axes share."""
    return {
        f"{group}.{parameter}": _Gain(controller, stage, gain, axes)
        for parameter, (gain, axes) in gains.items()
    }


_XY, _Z = (0, 1), (2,)
_UPWARDS = (1.0, 1.0, _THOUSAND)
_TABLE: dict[str, _Gain] = {
    **_axes(
        *(Controller.pid, "attitude", "pid_attitude", "roll pitch yaw"),
        {f"_{gain}": gain for gain in ("kp", "ki", "kd", "kff")},
    ),
    **_axes(
        *(Controller.pid, "attitude", "pid_rate", "roll pitch yaw"),
        {f"_{gain}": f"rate_{gain}" for gain in ("kp", "ki", "kd", "kff")},
    ),
    **_axes(
        *(Controller.pid, "state", "velCtlPid", "vx vy vz"),
        {"Kp": "vel_kp", "Ki": "vel_ki", "Kd": "vel_kd", "KFF": "vel_kff"},
        _UPWARDS,
    ),
    **_axes(
        *(Controller.pid, "state", "posCtlPid", "x y z"),
        {"Kp": "kp", "Ki": "ki", "Kd": "kd", "Kff": "kff"},
    ),
    **_axes(
        *(Controller.pid, "state", "posCtlPid", "x y z"),
        {"VelMax": "vel_max"},
        (_VELOCITY_MARGIN,) * 3,
    ),
    **_axes(Controller.pid, "state", "posCtlPid", "r p", {"Limit": "tilt_max"}),
    "posCtlPid.thrustBase": _Gain(Controller.pid, "state", "thrust_base"),
    "posCtlPid.thrustMin": _Gain(Controller.pid, "state", "thrust_min"),
    **_shared(
        *(Controller.mellinger, "state", "ctrlMel"),
        {
            **{f"{gain}_xy": (gain, _XY) for gain in ("kp", "kd", "ki")},
            **{f"{gain}_z": (gain, _Z) for gain in ("kp", "kd", "ki")},
            "i_range_xy": ("int_err_max", _XY),
            "i_range_z": ("int_err_max", _Z),
            "mass": ("mass", ()),
            "massThrust": ("mass_thrust", ()),
        },
    ),
    **_shared(
        *(Controller.mellinger, "attitude", "ctrlMel"),
        {
            **{f"{gain}_xy": (gain, _XY) for gain in ("kR", "kw", "ki_m")},
            **{f"{gain}_z": (gain, _Z) for gain in ("kR", "kw", "ki_m")},
            "i_range_m_xy": ("int_err_max", _XY),
            "i_range_m_z": ("int_err_max", _Z),
            "kd_omega_rp": ("kd_omega", _XY),
        },
    ),
    **{
        f"ctrlINDI.ref_{parameter}_{axis}": _Gain(Controller.indi, "attitude", gain, (i,))
        for parameter, gain in (("err", "kR"), ("rate", "kw"))
        for i, axis in enumerate("pqr")
    },
    **{
        f"posCtrlIndi.K_{parameter}_{axis}": _Gain(Controller.indi, "state", gain, (i,))
        for parameter, gain in (("xi", "kp"), ("dxi", "kd"))
        for i, axis in enumerate("xyz")
    },
    "posCtrlIndi.pq_clamping": _Gain(Controller.indi, "state", "tilt_max", factor=pi / 180),
    **_shared(
        *(Controller.brescianini, "state", "ctrlAtt"),
        {
            **{f"{gain}_xy": (gain, _XY) for gain in ("tau", "zeta")},
            **{f"{gain}_z": (gain, _Z) for gain in ("tau", "zeta")},
            "coll_fairness": ("fairness", ()),
        },
    ),
    "ctrlAtt.tau_rp": _Gain(Controller.brescianini, "attitude", "tau"),
}
GAINS = tuple(_TABLE)
"""Full names of the parameters that are gains."""


class Gains:
    """The gains of one drone.

    Args:
        model: Drone model.
        freq: Rate of its attitude controller, Hz.
        true_mass: See `SimulationConfig`.
    """

    def __init__(self, model: str, freq: int, *, true_mass: bool) -> None:
        figures = load_drone(model)
        weight = -figures["mass"] * np.asarray(figures["gravity_vec"])[2:]
        self._params: dict[tuple[Controller, str], dict[str, np.ndarray]] = {}
        for controller, load, true_to_mass in _LOADED:
            for stage in ("state", "attitude"):
                params = load(stage, model, freq)
                if true_mass and stage == "state":
                    params = true_to_mass(params, weight)
                arrays = {name: np.array(value, float) for name, value in params.items()}
                self._params[controller, stage] = arrays
        self._own = deepcopy(self._params)
        self._units = {stage: pid.firmware_units(stage, model) for stage in ("state", "attitude")}

    def values(self) -> dict[str, float]:
        """Return the gains in force, by parameter, in the firmware's units."""
        values = {}
        for parameter, gain in _TABLE.items():
            array = self._params[gain.controller, gain.stage][gain.name]
            value = array[gain.axes[0]] if gain.axes else array
            # Rounded, because whole-number types cut off the fraction.
            values[parameter] = float(f"{float(value) / self._unit(gain):.9g}")
        return values

    @property
    def differ(self) -> bool:
        """Whether a gain is not the controller's own."""
        return any(
            not np.array_equal(value, self._own[key][name])
            for key, params in self._params.items()
            for name, value in params.items()
        )

    def take(self, tuned: Tuned) -> None:
        """Adopt the gains of a drone; all others return to the controllers' defaults."""
        self._params = deepcopy(self._own)
        for controller, gains in tuned.items():
            for name, values in gains.items():
                stage, _, gain = name.partition(".")
                array = self._params[Controller(controller), stage][gain]
                self._params[Controller(controller), stage][gain] = np.reshape(values, array.shape)

    def set(self, parameter: str, value: float) -> tuple[Controller, dict[str, np.ndarray]]:
        """Set a gain.

        Args:
            parameter: One of `GAINS`.
            value: In the firmware's unit.

        Returns:
            The controller whose gain it is, and the gain as `PhysicsThread.tune` takes it.

        Raises:
            ValueError: The value is impossible, or far too large.
        """
        if abs(value) > _LARGEST:
            raise ValueError(f"{parameter} must be within {_LARGEST:g}, got {value:g}")
        gain = _TABLE[parameter]
        array = self._params[gain.controller, gain.stage][gain.name].copy()
        array[list(gain.axes) if gain.axes else ()] = value * self._unit(gain)
        try:
            check_gain(gain.controller, f"{gain.stage}.{gain.name}", array)
        except ValueError as error:
            raise ValueError(f"{parameter}: {error}") from None
        self._params[gain.controller, gain.stage][gain.name] = array
        return gain.controller, {f"{gain.stage}.{gain.name}": array}

    def _unit(self, gain: _Gain) -> float:
        """Return the firmware's unit of a gain, expressed in the controller's unit."""
        if gain.controller is not Controller.pid:
            return gain.factor
        unit = np.asarray(self._units[gain.stage].get(gain.name, 1.0))
        return gain.factor * float(unit[gain.axes[0]] if unit.ndim else unit)


_Load = Callable[[str, str, int], Mapping[str, object]]
_TrueToMass = Callable[..., Mapping[str, object]]
_LOADED: tuple[tuple[Controller, _Load, _TrueToMass], ...] = (
    (Controller.pid, pid.load_params, pid.true_to_mass),
    (Controller.indi, indi.load_params, indi.true_to_mass),
    (Controller.brescianini, brescianini.load_params, brescianini.true_to_mass),
    (Controller.mellinger, lambda *args: mellinger.load_params(*args[:2]), mellinger.true_to_mass),
)
