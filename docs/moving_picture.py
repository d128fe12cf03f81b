"""Draws the moving picture of the README: python docs/moving_picture.py [FILE]."""

from __future__ import annotations

import sys
from math import tau
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from PIL import Image

from crazyflow_ros.sim import Sim

# After crazyflow_ros, which chooses what MuJoCo draws with.
import mujoco  # isort: skip

N_DRONES = 4
PERIOD = 10.0  # s for one round
FRAMES_PER_SECOND = 15
SIZE = np.array([1.9, 1.4, 0.25])  # m, half extents of the round between the pillars and the walls
WIDTH, HEIGHT, QUALITY = 560, 315, 70
EYE = (1.95, 0.6, 0.3)  # the camera flies behind [s], outside and above [m]


def place(
    time: float, ahead: float | np.ndarray = 0.0, out: float | np.ndarray = 0.0
) -> np.ndarray:
    """A point of the round, (..., 3) [m].

    Args:
        time: Simulated time [s].
        ahead: How far ahead on the round [s].
        out: How far outside [m].
    """
    phase = tau * (time + np.asarray(ahead)) / PERIOD
    radii = SIZE[:2] + np.asarray(out)[..., None]
    height = 1.1 + SIZE[2] * np.sin(2 * phase)
    return np.stack([radii[..., 0] * np.cos(phase), radii[..., 1] * np.sin(phase), height], -1)


def setpoints(time: float) -> np.ndarray:
    """Commands of all drones, (1, N_DRONES, 13): position, velocity, acceleration, yaw, rates."""
    ahead = -0.42 * np.arange(N_DRONES)
    out = 0.16 * (-1.0) ** np.arange(N_DRONES)
    step = 1e-3  # s
    before, now, after = (place(time + dt, ahead, out) for dt in (-step, 0.0, step))
    vel, acc = (after - before) / (2 * step), (after - 2 * now + before) / step**2
    yaw = np.arctan2(vel[:, 1], vel[:, 0])[:, None]
    return np.concatenate([now, vel, acc, yaw, np.zeros((N_DRONES, 3))], axis=-1)[None]


def scene() -> tuple[Sim, int]:
    """Drones in the room with a camera that can be moved, and the index of the camera's body."""
    sim = Sim(n_drones=N_DRONES, control="state", scene="room", true_mass=True)
    eye = sim.spec.worldbody.add_body(name="eye", mocap=True)
    eye.add_camera(
        name="eye", mode=mujoco.mjtCamLight.mjCAMLIGHT_TARGETBODY, targetbody="drone:1", fovy=34
    )
    sim.spec.site("start").group = 5  # not drawn
    states, begin = sim.data.states, setpoints(0.0)
    sim.data = sim.data.replace(
        states=states.replace(
            pos=jnp.asarray(begin[..., :3]),
            vel=jnp.asarray(begin[..., 3:6]),
            rotor_vel=states.rotor_vel + 15_000.0,
        )
    )
    return sim, sim.mj_model.body("eye").mocapid.item()


def main() -> None:
    """Fly two rounds and draw the second."""
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("room.webp")
    sim, eye = scene()
    rate, pictures = 100, []
    drawn = {round(rate * (PERIOD + i / FRAMES_PER_SECOND))
             for i in range(int(PERIOD * FRAMES_PER_SECOND))}  # fmt: skip
    for i in range(int(2 * PERIOD * rate)):
        time = i / rate
        sim.state_control(setpoints(time))
        sim.step(sim.freq // rate)
        if i in drawn:
            behind, outside, above = EYE
            sim.mj_data.mocap_pos[eye] = place(time, -behind, outside)
            sim.mj_data.mocap_pos[eye, 2] += above
            pixels = sim.render("rgb_array", camera="eye", width=WIDTH, height=HEIGHT)
            pictures.append(Image.fromarray(pixels))
    first, *rest = pictures
    first.save(
        file,
        save_all=True,
        append_images=rest,
        duration=round(1000 / FRAMES_PER_SECOND),
        loop=0,
        quality=QUALITY,
        method=4,
    )
    sim.close()


if __name__ == "__main__":
    main()
