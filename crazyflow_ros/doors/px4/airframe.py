"""PX4's airframe for each of our drones, from its figures."""

from __future__ import annotations

import numpy as np

from crazyflow_ros.doors.motors import QUAD_X, Motors
from crazyflow_ros.drones import load_drone, model_name
from crazyflow_ros.dynamics import RPM

NUMBER = 22_000
"""The first airframe number that PX4 leaves to others."""
_HOVER_LIMITS = 0.1, 0.8  # of MPC_THR_HOVER
_POINTS = np.linspace(0.1, 1.0, 50)  # of the thrust curve


def file_name(drone_model: str) -> str:
    """Return the name of the airframe's file, which ends with PX4_SIM_MODEL."""
    return f"{NUMBER}_{simulator_model(drone_model)}"


def simulator_model(drone_model: str) -> str:
    """Return PX4_SIM_MODEL; its first word means that PX4 does not start the simulator."""
    return f"none_{model_name(drone_model)}"


def airframe(drone_model: str) -> str:
    """Return the airframe, a script for `etc/init.d-posix/airframes`.

    It contains the places and directions of the rotors, the thrust curve and the hover thrust. The
    gains remain PX4's, which suit drones of a kilogram or two.
    """
    parameters = {"CA_AIRFRAME": 0, "CA_ROTOR_COUNT": 4} | _rotors(drone_model)
    parameters |= {f"PWM_MAIN_FUNC{i + 1}": 101 + i for i in range(4)}
    parameters |= _thrust(drone_model)
    lines = (f"param set-default {name} {value:.6g}" for name, value in parameters.items())
    return "\n".join(
        (
            "#!/bin/sh",
            "#",
            f"# @name {model_name(drone_model)} in crazyflow_ros",
            "#",
            "# @type Quadrotor x",
            "#",
            "",
            ". ${R}etc/init.d/rc.mc_defaults",
            "",
            *lines,
            "",
        )
    )


def _rotors(drone_model: str) -> dict[str, float]:
    """Return places [m, forward and right] and moments [N m for each N] of the rotors."""
    figures = load_drone(drone_model)
    roll, pitch, yaw = figures["mixing_matrix"] * ((figures["L"],), (figures["L"],), (1.0,))
    share = _hover_speed(figures)
    moment = np.polyval(figures["rpm2torque"][::-1], share) / np.polyval(
        figures["rpm2thrust"][::-1], share
    )
    found: dict[str, float] = {}
    for ours, output in enumerate(QUAD_X):
        # Thrust on the right, at -y, rolls to the left; one in front, at +x, pitches up, which is
        # a negative torque about y. What turns counter-clockwise pulls the body clockwise.
        found[f"CA_ROTOR{output}_PX"] = -float(pitch[ours])
        found[f"CA_ROTOR{output}_PY"] = -float(roll[ours])
        found[f"CA_ROTOR{output}_KM"] = -float(yaw[ours] * moment)
    return dict(sorted(found.items()))


def _hover_speed(figures: dict[str, np.ndarray]) -> float:
    """Return the rotor speed in hover [RPM], or the greatest one if the drone cannot hover."""
    k0, k1, k2 = figures["rpm2thrust"]
    wanted = min(figures["mass"] * -figures["gravity_vec"][2] / 4, figures["thrust_max"])
    return float((-k1 + np.sqrt(k1**2 - 4 * k2 * (k0 - wanted))) / (2 * k2))


def _thrust(drone_model: str) -> dict[str, float]:
    """Return THR_MDL_FAC, the f of PX4's curve f u² + (1 - f) u, and the thrust in hover."""
    figures = load_drone(drone_model)
    most, fastest = figures["thrust_max"], Motors(drone_model, QUAD_X).fastest / RPM
    thrust = np.polyval(figures["rpm2thrust"][::-1], fastest * _POINTS) / most
    curve = _POINTS**2 - _POINTS
    factor = float(curve @ (thrust - _POINTS) / (curve @ curve))
    hover = figures["mass"] * -figures["gravity_vec"][2] / (4 * most)
    return {
        "THR_MDL_FAC": min(1.0, max(0.0, factor)),
        "MPC_THR_HOVER": float(np.clip(hover, *_HOVER_LIMITS)),
    }
