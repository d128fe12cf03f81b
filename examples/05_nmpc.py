"""Fly a figure-eight with a nonlinear model predictive controller (NMPC), over ROS topics.

Start a simulator whose drones take attitude commands, then this program:

    .venv/bin/python -m crazyflow_ros --ros-args -p control:=attitude -p real_time_factor:=0.0
    .venv/bin/python examples/05_nmpc.py
"""

from __future__ import annotations

import argparse
import time

import casadi as cs
import numpy as np
from nav_msgs.msg import Odometry
from scipy.spatial.transform import Rotation
from std_msgs.msg import Float64MultiArray

from crazyflow_ros.client import SimulatorClient
from crazyflow_ros.client.figure_eight import SHORTEST, FlightPath, plan_flight
from crazyflow_ros.compat.casadi import casadi_model

RATE = 50  # Hz, of the controller
STEP, STEPS = 0.04, 20  # s, number: the intervals that the controller looks ahead
MOST_TILT = 0.5  # rad
# Of pos, rpy, vel, rpy_rate and thrust, whose unit is the drone's weight.
STATE_WEIGHTS = [400, 400, 400, 1, 1, 10, 4, 4, 4, 0.2, 0.2, 0.2, 0.01]
INPUT_WEIGHTS = [10, 10, 20, 2]  # of roll, pitch, yaw and thrust
TERMINAL = 5  # times the weights of the other states
TRUST = 0.1  # share of an unexpected change of velocity that becomes an external force
MOST_FORCE = 0.3  # of the weight; the floor pushes harder


class Nmpc:
    """The controller: multiple shooting, one step of sequential quadratic programming each time.

    M. Diehl, H. Bock, J. Schlöder, "A real-time iteration scheme for nonlinear optimization in
    optimal feedback control", SIAM J. Control Optim. 43 (2005). An external force, estimated from
    the velocity, makes up for what the model lacks.

    Args:
        drone: Name of the drone, or path of its folder.
    """

    def __init__(self, drone: str) -> None:
        model = casadi_model("so_rpy_rotor_drag", drone, attitude="rpy", wrench=True)
        self._weight = model.hover_input[3]
        self._x, self._u, self._force = model.hover_state, model.hover_input, np.zeros(3)
        self._advance = runge_kutta(model.f)
        x, u = cs.MX.sym("x", len(self._x), STEPS + 1), cs.MX.sym("u", 4, STEPS)
        now, force = cs.MX.sym("now", len(self._x)), cs.MX.sym("force", 3)
        path = cs.MX.sym("path", 6, STEPS + 1)
        units = np.append(np.ones(12), self._weight)
        cost, gaps = 0, [x[:, 0] - now]
        for k in range(STEPS + 1):
            wanted = cs.vertcat(path[:3, k], np.zeros(3), path[3:, k], model.hover_state[9:])
            error = cs.dot(STATE_WEIGHTS, ((x[:, k] - wanted) / units) ** 2)
            cost += TERMINAL * error if k == STEPS else error
        for k in range(STEPS):
            cost += cs.dot(INPUT_WEIGHTS, ((u[:, k] - model.hover_input) / units[-4:]) ** 2)
            gaps.append(self._advance(x[:, k], u[:, k], force, STEP) - x[:, k + 1])
        problem = {"x": cs.veccat(x, u), "p": cs.veccat(now, force, path), "f": cost}
        self._solve = cs.nlpsol("nmpc", "sqpmethod", problem | {"g": cs.vertcat(*gaps)}, _OPTIONS)
        tilt = [MOST_TILT, MOST_TILT, np.inf, np.inf]
        least, most = model.input_limits.clip(np.negative(tilt), tilt)
        free = np.full(x.numel(), np.inf)
        self._bounds = {
            "lbx": np.concatenate([-free, *[least] * STEPS]),
            "ubx": np.concatenate([free, *[most] * STEPS]),
            "lbg": 0,
            "ubg": 0,
        }
        self._plan = np.concatenate([*[self._x] * (STEPS + 1), *[self._u] * STEPS])
        self._active = 0 * self._plan

    def __call__(self, odometry: Odometry, path: np.ndarray) -> np.ndarray:
        """Return the command: roll, pitch, yaw [rad] and thrust [N].

        Args:
            odometry: Where the drone is.
            path: (STEPS + 1, 6) positions [m] and velocities [m/s] at the ends of the intervals.
        """
        expected = np.array(self._advance(self._x, self._u, self._force, 1 / RATE))[:, 0]
        self._x = np.append(motion(odometry), expected[12])
        surprise = (self._x - expected)[6:9] * RATE * self._weight / 9.81
        most = MOST_FORCE * self._weight
        self._force = (self._force + TRUST * surprise).clip(-most, most)
        given = np.concatenate([self._x, self._force, path.ravel()])
        # Without multipliers of the gaps, the Hessian is that of the cost alone: Gauss-Newton.
        found = self._solve(x0=self._plan, lam_x0=self._active, lam_g0=0, p=given, **self._bounds)
        self._plan, self._active = (np.array(found[name])[:, 0] for name in ("x", "lam_x"))
        start = len(self._x) * (STEPS + 1)
        self._u = self._plan[start : start + 4]
        return self._u


_OPTIONS = {
    "max_iter": 1, "expand": True, "qpsol": "qrqp", "error_on_fail": False,
    "print_time": False, "print_header": False, "print_iteration": False, "print_status": False,
    "qpsol_options": {"print_iter": False, "print_header": False, "error_on_fail": False},
}  # fmt: skip


def runge_kutta(f: cs.Function) -> cs.Function:
    """Return the state at the end of an interval with a constant input, by the classical method."""
    x, u, force = (cs.SX.sym(name, f.size1_in(name)) for name in ("x", "u", "p"))
    h = cs.SX.sym("h")
    a = f(x, u, force)
    b = f(x + h / 2 * a, u, force)
    c = f(x + h / 2 * b, u, force)
    d = f(x + h * c, u, force)
    return cs.Function("advance", [x, u, force, h], [x + h / 6 * (a + 2 * b + 2 * c + d)])


def motion(odometry: Odometry) -> np.ndarray:
    """Return position, roll, pitch, yaw and the derivatives of both, (12,)."""
    pose, twist = odometry.pose.pose, odometry.twist.twist
    quat = pose.orientation
    attitude = Rotation.from_quat([quat.x, quat.y, quat.z, quat.w])
    rpy = attitude.as_euler("xyz")
    pos, vel, (p, q, r) = (
        np.array([v.x, v.y, v.z]) for v in (pose.position, twist.linear, twist.angular)
    )
    roll, pitch, _ = rpy
    yaw_rate = (np.sin(roll) * q + np.cos(roll) * r) / np.cos(pitch)
    rates = p + np.sin(pitch) * yaw_rate, np.cos(roll) * q - np.sin(roll) * r, yaw_rate
    return np.concatenate([pos, rpy, attitude.apply(vel), rates])


def fly(simulation: SimulatorClient, nmpc: Nmpc, name: str, path: FlightPath) -> np.ndarray:
    """Fly a path, and return the distance from it in the air at each control period, m.

    Time advances between two commands only, so that each flight is the same.

    Args:
        simulation: Connection to the simulator, which steps.
        nmpc: The controller.
        name: Name of the drone.
        path: Where the drone has to be, by the time since the beginning.
    """
    drone = simulation.drone(name)
    commands = simulation.node.create_publisher(Float64MultiArray, f"{name}/command", 1)
    while not commands.get_subscription_count():  # the first command counts, too
        time.sleep(0.01)
    ahead, errors = np.arange(STEPS + 1) * STEP, []
    for tick in range(round(path.duration * RATE)):
        now = tick / RATE
        odometry, wanted = drone.odometry, path(now + ahead)
        command = nmpc(odometry, np.hstack([wanted.pos, wanted.vel]))
        commands.publish(Float64MultiArray(data=command))
        simulation.sleep(1 / RATE)
        if path.airborne[0] <= now <= path.airborne[1]:
            errors.append(np.linalg.norm(motion(odometry)[:3] - wanted.pos[0]))
    return np.array(errors)


def main() -> None:
    """Fly the first drone of a running simulator."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--drone", default="cf2x_L250", help="the simulator's drone_model")
    parser.add_argument("--duration", type=float, default=SHORTEST, help="of the flight [s]")
    arguments = parser.parse_args()
    nmpc = Nmpc(arguments.drone)
    with SimulatorClient(stepping=True) as simulation:
        name = simulation.drones[0]
        path = plan_flight(simulation.drone(name).position, arguments.duration)
        errors = fly(simulation, nmpc, name, path)
    print(f"distance from the path: mean {errors.mean():.4f} m, at most {errors.max():.4f} m")


if __name__ == "__main__":
    main()
