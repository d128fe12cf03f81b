"""Takes the picture of cameras' lenses, shutters and chips, lenses.jpg.

python -m docs.lenses_picture [FOLDER] takes it by rays; it needs no OpenGL.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from PIL import Image, ImageDraw

from crazyflow_ros import Sim
from crazyflow_ros.sensors import CameraSensorCfg, SimPictures

POSITIONS = [[0.9, 1.0, 0.9], [0.73, 1.4, 0.95]]  # m; the first drone looks at the second one
ATTITUDES = [[0, 0, 0.8, 0.6], [0.05, 0, 0, 1.0]]  # xyzw
VELOCITIES = [[0.6, 0.2, 0.0], [1.2, 0.1, 0.1]]  # m/s
TURNING = [[0.0, 0.0, 0.8], [0.0, 0.0, 2.0]]  # rad/s
PLAIN = CameraSensorCfg(
    name="eye", camera_name="fpv_cam:0", width=320, height=240, renderer="rays", use_shadows=True
)
HALF_CIRCLE = 240 / np.pi  # pixels per rad, with which 180 degrees are as high as the picture
PICTURES = {
    "no distortion": PLAIN,
    "plumb_bob": replace(PLAIN, distortion=(-0.25, 0.06, 0.0, 0.0)),
    "equidistant, 180 degrees": replace(
        PLAIN,
        distortion_model="equidistant",
        distortion=(0.0, 0.0, 0.0, 0.0),
        intrinsic_matrix=(HALF_CIRCLE, 0.0, 159.5, 0.0, HALF_CIRCLE, 119.5, 0.0, 0.0, 1.0),
    ),
    "noise": replace(PLAIN, full_well=100.0, read_noise=5.0),
    "readout": replace(PLAIN, readout=0.1, instants=32),
    "exposure": replace(PLAIN, exposure=0.05, instants=32),
}
"""By what is written on them."""
COLUMNS, GAP, QUALITY = 3, 2, 85  # GAP in pixels


def placed() -> Sim:
    """Return two drones that move through the room."""
    sim = Sim(n_drones=2, drone="cf2x_L250", scene="room")
    quat = np.array(ATTITUDES) / np.linalg.norm(ATTITUDES, axis=1, keepdims=True)
    fields = {"pos": POSITIONS, "quat": quat, "vel": VELOCITIES, "ang_vel": TURNING}
    arrays: dict[str, Any] = {
        name: jnp.asarray([value], jnp.float32) for name, value in fields.items()
    }
    sim.data = sim.data.replace(states=sim.data.states.replace(**arrays))
    return sim


def main() -> None:
    """Take the pictures, and join them."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    rows = len(PICTURES) // COLUMNS
    width, height = PLAIN.width + GAP, PLAIN.height + GAP
    whole = Image.new("RGB", (COLUMNS * width - GAP, rows * height - GAP), "white")
    sim, text = placed(), ImageDraw.Draw(whole)
    for number, (name, cfg) in enumerate(PICTURES.items()):
        row, column = divmod(number, COLUMNS)
        place = column * width, row * height
        picture = np.asarray(SimPictures(sim, cfg)(sim.data).rgb[0])
        whole.paste(Image.fromarray(picture), place)
        text.text((place[0] + 6, place[1] + PLAIN.height - 18), name, "white", font_size=12)
    sim.close()
    whole.save(folder / "lenses.jpg", quality=QUALITY)


if __name__ == "__main__":
    main()
