"""The quadrotor's equations of motion once more, in matrices and NumPy, for tests to compare with.

Written from Newton's and Euler's laws with rotor positions and spins, not with mixing signs, and
sharing nothing with the package but the figures in `drone.toml`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from crazyflow_ros.drones import load_drone

UP = np.array([0.0, 0.0, 1.0])
SPIN = np.array([1, -1, 1, -1])  # seen from above: counter-clockwise is positive
CORNERS = np.array([[1, -1, 0], [-1, -1, 0], [-1, 1, 0], [1, 1, 0]])  # FR, RR, RL, FL


@dataclass
class State:
    """Of one drone: arrays of 3, 4 (quaternion xyzw), 3, 3 (body frame), 4 (RPM)."""

    pos: np.ndarray = field(default_factory=lambda: np.zeros(3))
    quat: np.ndarray = field(default_factory=lambda: np.array([0.0, 0, 0, 1]))
    vel: np.ndarray = field(default_factory=lambda: np.zeros(3))
    ang_vel: np.ndarray = field(default_factory=lambda: np.zeros(3))
    rotor_vel: np.ndarray = field(default_factory=lambda: np.zeros(4))

    @property
    def vector(self) -> np.ndarray:
        """All 17 numbers."""
        return np.concatenate([self.pos, self.quat, self.vel, self.ang_vel, self.rotor_vel])

    @staticmethod
    def from_vector(x: np.ndarray) -> State:
        """Inverse of `vector`."""
        return State(*np.split(x, [3, 7, 10, 13]))

    @property
    def attitude(self) -> Rotation:
        """Body to world."""
        return Rotation.from_quat(self.quat)


class Quadrotor:
    """One drone model."""

    def __init__(self, drone: str) -> None:
        figures = load_drone(drone)
        self.mass, self.J, self.Jp = figures["mass"], figures["J"], figures["prop_inertia"]
        self.rotors = CORNERS * figures["L"]
        self.thrust_curve, self.torque_curve = figures["rpm2thrust"], figures["rpm2torque"]
        self.response, self.drag = figures["rotor_dyn_coef"], figures["drag_matrix"]
        self.gravity = figures["gravity_vec"]

    def hover_speed(self) -> float:
        """RPM at which the rotors carry the weight."""
        k0, k1, k2 = self.thrust_curve
        return float(max(np.roots([k2, k1, k0 - self.mass * 9.81 / 4])))

    def rotor_acceleration(self, speed: np.ndarray, command: np.ndarray) -> np.ndarray:
        """RPM/s."""
        a, b, c, d = self.response
        linear, quadratic = command - speed, command**2 - speed**2
        return np.where(command > speed, a * linear + b * quadratic, c * linear + d * quadratic)

    def aerodynamic(self, state: State) -> tuple[np.ndarray, np.ndarray]:
        """Force and torque (body frame) of the air on rotors and body."""
        thrust = np.polynomial.polynomial.polyval(state.rotor_vel, self.thrust_curve)
        resistance = np.polynomial.polynomial.polyval(state.rotor_vel, self.torque_curve)
        force = thrust.sum() * UP + self.drag @ state.attitude.inv().apply(state.vel)
        torque = np.cross(self.rotors, thrust[:, None] * UP).sum(0) - (SPIN @ resistance) * UP
        return force, torque

    def derivative(
        self, state: State, command: np.ndarray, force: np.ndarray, torque: np.ndarray
    ) -> State:
        """Time derivative; command in RPM, wrench on the centre of mass in the world frame."""
        R, w = state.attitude.as_matrix(), state.ang_vel
        rotor_acc = self.rotor_acceleration(state.rotor_vel, command)
        to_momentum = self.Jp * SPIN * 2 * np.pi / 60
        h, h_dot = to_momentum @ state.rotor_vel * UP, to_momentum @ rotor_acc * UP
        air_force, air_torque = self.aerodynamic(state)
        momentum = self.J @ w + h
        return State(
            pos=state.vel,
            quat=0.5 * quat_product(state.quat, np.append(w, 0.0)),
            vel=self.gravity + (R @ air_force + force) / self.mass,
            ang_vel=np.linalg.solve(
                self.J, air_torque + R.T @ torque - np.cross(w, momentum) - h_dot
            ),
            rotor_vel=rotor_acc,
        )

    def solve(
        self,
        state: State,
        command: np.ndarray,
        duration: float,
        force: np.ndarray | None = None,
        torque: np.ndarray | None = None,
    ) -> State:
        """The state after `duration` s, to about 12 digits."""
        force, torque = (np.zeros(3) if v is None else v for v in (force, torque))
        solution = solve_ivp(
            lambda _, x: self.derivative(State.from_vector(x), command, force, torque).vector,
            (0, duration),
            state.vector,
            method="DOP853",
            rtol=1e-13,
            atol=1e-13,
        )
        assert solution.success
        return State.from_vector(solution.y[:, -1])


def quat_product(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Hamilton product of quaternions xyzw."""
    vector = p[3] * q[:3] + q[3] * p[:3] + np.cross(p[:3], q[:3])
    return np.append(vector, p[3] * q[3] - p[:3] @ q[:3])


def angle_between(p: np.ndarray, q: np.ndarray) -> float:
    """Angle in rad between two attitudes (quaternions xyzw); precise for small ones."""
    return float((Rotation.from_quat(p).inv() * Rotation.from_quat(q)).magnitude())


def tumbling(quadrotor: Quadrotor, seed: int = 0) -> State:
    """A drone that turns, drifts, and has its rotors at various speeds."""
    rng = np.random.default_rng(seed)
    return State(
        pos=rng.normal(size=3),
        quat=Rotation.random(rng=rng).as_quat(),
        vel=rng.normal(0, 2, 3),
        ang_vel=rng.normal(0, 4, 3),
        rotor_vel=quadrotor.hover_speed() * rng.uniform(0.7, 1.0, 4),
    )
