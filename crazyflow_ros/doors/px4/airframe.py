"""PX4's airframe for each of our drones, from its figures."""

from __future__ import annotations

import numpy as np

from crazyflow_ros.doors.motors import Motors, order_of
from crazyflow_ros.drones import load_drone, model_name, rotors_of
from crazyflow_ros.dynamics import RPM

NUMBER = 22_000
"""The first airframe number that PX4 leaves to others."""
_HOVER_LIMITS = 0.1, 0.8  # of MPC_THR_HOVER
_TYPES = {4: "Quadrotor x", 6: "Hexarotor x", 8: "Octorotor Coaxial"}
_CT = 6.5  # PX4's default of CA_ROTOR0_CT
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
    n_rotors = len(rotors_of(drone_model))
    parameters = {"CA_AIRFRAME": 0, "CA_ROTOR_COUNT": n_rotors} | _rotors(drone_model)
    parameters |= {f"PWM_MAIN_FUNC{i + 1}": 101 + i for i in range(n_rotors)}
    parameters |= _thrust(drone_model)
    lines = (f"param set-default {name} {value:.6g}" for name, value in parameters.items())
    return "\n".join(
        (
            "#!/bin/sh",
            "#",
            f"# @name {model_name(drone_model)} in crazyflow_ros",
            "#",
            f"# @type {_TYPES.get(n_rotors, 'Multirotor')}",
            "#",
            "",
            ". ${R}etc/init.d/rc.mc_defaults",
            "",
            *lines,
            "",
        )
    )


def _rotors(drone_model: str) -> dict[str, float]:
    """Return places [m, forward, right and down], moments [N m for each N] and axes of the rotors.

    Heights matter only where axes are tilted, and quadrotors leave them and the axes out.
    """
    rotors, share = rotors_of(drone_model), _hover_speed(load_drone(drone_model))
    most = rotors.thrust_limits[1].max()
    found: dict[str, float] = {}
    for ours, output in enumerate(order_of(drone_model)):
        moment = np.polyval(rotors.rpm2torque[ours, ::-1], share) / np.polyval(
            rotors.rpm2thrust[ours, ::-1], share
        )
        x, y, z = (float(value) for value in rotors.position[ours])
        # What turns counter-clockwise pulls the body clockwise.
        found[f"CA_ROTOR{output}_PX"] = x
        found[f"CA_ROTOR{output}_PY"] = -y
        found[f"CA_ROTOR{output}_KM"] = float(rotors.spin[ours] * moment)
        if rotors.has_tables:
            found[f"CA_ROTOR{output}_PZ"] = -z
            found[f"CA_ROTOR{output}_CT"] = _CT * float(rotors.thrust_limits[1, ours] / most)
            forward, left, up = (float(value) for value in rotors.axis[ours])
            axis = zip("XYZ", (forward, -left, -up))
            found |= {f"CA_ROTOR{output}_A{name}": value for name, value in axis}
    return dict(sorted(found.items()))


def _hover_speed(figures: dict[str, np.ndarray]) -> float:
    """Return the rotor speed in hover [RPM], or the greatest one if the drone cannot hover."""
    k0, k1, k2 = figures["rpm2thrust"]
    wanted = min(figures["mass"] * -figures["gravity_vec"][2] / 4, figures["thrust_max"])
    return float((-k1 + np.sqrt(k1**2 - 4 * k2 * (k0 - wanted))) / (2 * k2))


def _thrust(drone_model: str) -> dict[str, float]:
    """Return THR_MDL_FAC, the f of PX4's curve f u² + (1 - f) u, and the thrust in hover."""
    figures = load_drone(drone_model)
    most, fastest = figures["thrust_max"], Motors(drone_model).fastest / RPM
    thrust = np.polyval(figures["rpm2thrust"][::-1], fastest * _POINTS) / most
    curve = _POINTS**2 - _POINTS
    factor = float(curve @ (thrust - _POINTS) / (curve @ curve))
    hover = figures["mass"] * -figures["gravity_vec"][2] / (4 * most)
    return {
        "THR_MDL_FAC": min(1.0, max(0.0, factor)),
        "MPC_THR_HOVER": float(np.clip(hover, *_HOVER_LIMITS)),
    }
