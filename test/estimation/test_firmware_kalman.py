"""Our Kalman filter beside that of the Crazyflie's firmware, over random measurements.

The firmware is built from a checkout, see `firmware_filter`.
"""

from __future__ import annotations

import jax
import numpy as np
import pytest
from firmware_filter import Firmware
from firmware_source import sources
from kalman_flight import beliefs, flight


@pytest.fixture(scope="module")
def firmware(tmp_path_factory: pytest.TempPathFactory) -> Firmware:
    """The filter of the checkout in CRAZYFLIE_FIRMWARE."""
    return Firmware(sources(), tmp_path_factory.mktemp("firmware"))


@pytest.mark.parametrize("flies", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_the_filter_is_that_of_the_firmware(firmware: Firmware, seed: int, flies: bool) -> None:
    steps = list(flight(seed, 400))
    for step in steps:
        step.flies = flies
    firmware.start(np.array([0.0, 0, 1]))
    with jax.enable_x64(True):
        for step, ours in zip(steps, beliefs([steps])):
            mean, quat, cov = firmware.after(step)
            # The firmware adds 1e-6 to norms before it divides by them.
            np.testing.assert_allclose(ours[0][0], mean, atol=1e-4)
            np.testing.assert_allclose(ours[1][0], quat, atol=5e-6)
            np.testing.assert_allclose(ours[2][0], cov, rtol=1e-4, atol=1e-8)
