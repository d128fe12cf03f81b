"""The controllers' gains under the names of the firmware's parameters."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from itertools import product

import numpy as np

from crazyflow_ros.control import Controller
from crazyflow_ros.control.firmware_parameters import FirmwareParameter
from crazyflow_ros.control.gains import Tuned, check_gain
from crazyflow_ros.drones import load_drone

_LARGEST = 1e7  # of a gain
_STAGES = ("state", "attitude")
_TABLE: dict[str, tuple[Controller, FirmwareParameter]] = {
    name: (controller, parameter)
    for controller in Controller
    for name, parameter in controller.cascade.PARAMETERS.items()
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
        self._units: dict[tuple[Controller, str], Mapping[str, np.ndarray]] = {}
        for controller, stage in product(Controller, _STAGES):
            cascade = controller.cascade
            params = cascade.load_params(stage, model, freq)
            if true_mass and stage == "state":
                params = cascade.true_to_mass(params, weight)
            arrays = {name: np.array(value, float) for name, value in params.items()}
            self._params[controller, stage] = arrays
            self._units[controller, stage] = cascade.firmware_units(stage, model)
        self._own = deepcopy(self._params)

    def values(self) -> dict[str, float]:
        """Return the active gains by parameter, in the firmware's units."""
        values = {}
        for name, (controller, parameter) in _TABLE.items():
            array = self._params[controller, parameter.stage][parameter.gain]
            value = array[parameter.axes[0]] if parameter.axes else array
            # Rounded, because whole-number types cut off the fraction.
            values[name] = float(f"{float(value) / self._unit(controller, parameter):.9g}")
        return values

    @property
    def differ(self) -> bool:
        """Whether any gain differs from the controller's own."""
        return any(
            not np.array_equal(value, self._own[key][name])
            for key, params in self._params.items()
            for name, value in params.items()
        )

    def take(self, tuned: Tuned) -> None:
        """Adopt tuned gains; all others return to the controllers' defaults."""
        self._params = deepcopy(self._own)
        for controller, gains in tuned.items():
            for name, values in gains.items():
                stage, _, gain = name.partition(".")
                array = self._params[Controller(controller), stage][gain]
                self._params[Controller(controller), stage][gain] = np.reshape(values, array.shape)

    def set(self, name: str, value: float) -> tuple[Controller, dict[str, np.ndarray]]:
        """Set a gain.

        Args:
            name: One of `GAINS`.
            value: In the firmware's unit.

        Returns:
            The controller that has the gain, and the gain as `PhysicsThread.tune` takes it.

        Raises:
            ValueError: The value is impossible, or far too large.
        """
        if abs(value) > _LARGEST:
            raise ValueError(f"{name} must be within {_LARGEST:g}, got {value:g}")
        controller, parameter = _TABLE[name]
        path, params = (
            f"{parameter.stage}.{parameter.gain}",
            self._params[controller, parameter.stage],
        )
        array = params[parameter.gain].copy()
        where = list(parameter.axes) if parameter.axes else ()
        array[where] = value * self._unit(controller, parameter)
        try:
            check_gain(controller, path, array)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
        params[parameter.gain] = array
        return controller, {path: array}

    def _unit(self, controller: Controller, parameter: FirmwareParameter) -> float:
        """Return the firmware's unit of a parameter, expressed in the controller's unit."""
        unit = np.asarray(self._units[controller, parameter.stage].get(parameter.gain, 1.0))
        return parameter.factor * float(unit[parameter.axes[0]] if unit.ndim else unit)
