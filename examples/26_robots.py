"""Drive a rover and move an arm beside a drone, with controllers in Python and without ROS.

    .venv/bin/python examples/26_robots.py

A hook is called before each tick of the physics. With ros2_control, stock controllers do the same:
ros2 launch crazyflow_ros robots.launch.py
"""

from __future__ import annotations

import mujoco
import numpy as np

from crazyflow_ros.runtime import PhysicsThread, SimulationConfig

SPEED, STEER = 8.0, 1.0  # rad/s, of the wheels and of their difference
POSTURE = (0.8, 0.5, -0.7)  # rad
P, D = 30.0, 1.0  # N m/rad, N m s/rad, of the arm's last joint, which has a motor


def control(model: mujoco.MjModel, data: mujoco.MjData) -> None:
    """Set the controls of rover and arm for the next tick."""
    del model
    data.actuator("left_wheel").ctrl[0] = SPEED - STEER
    data.actuator("right_wheel").ctrl[0] = SPEED + STEER
    data.actuator("arm_joint1").ctrl[0], data.actuator("arm_joint2").ctrl[0] = POSTURE[:2]
    last = data.joint("arm_joint3")
    data.actuator("arm_joint3").ctrl[0] = P * (POSTURE[2] - last.qpos[0]) - D * last.qvel[0]


def drive(seconds: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of the rover [m], (n, 3), ten times a second, and of the arm [rad]."""
    config = SimulationConfig(scene="robots", start_paused=True, real_time_factor=0.0)
    physics = PhysicsThread(config, ["cf0"])
    physics.world.before_tick(control, "robots")
    physics.start()
    path = []
    for _ in range(round(10 * seconds)):
        physics.step(physics.freq // 10).result()
        now = physics.mirror.copy_physics_data()
        path.append(now.body("rover").xpos.copy())
    arm = np.array([now.joint(f"arm_joint{i}").qpos[0] for i in (1, 2, 3)])
    physics.stop()
    return np.array(path), arm


def main() -> None:
    """Print where they are after six seconds."""
    path, arm = drive(6.0)
    print(f"the rover has driven to {path[-1, 0]:.2f}, {path[-1, 1]:.2f} m")
    print(f"the arm is at {', '.join(f'{angle:.2f}' for angle in arm)} rad")


if __name__ == "__main__":
    main()
