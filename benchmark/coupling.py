"""Two ways to move a drone and a load on a cable together, beside the exact period of the load.

    python -m benchmark.coupling

Coupled: MuJoCo integrates drone and load, as `engine.moving_bodies` does. Staggered: each is
integrated alone, the load under a drone whose motion is given, and the drone under the force that
the load exerted on it in the tick before. The drone's thrust carries both, so that the load swings
about it with the period 2 pi sqrt(L / (g (1 + M / m))), for the masses m of drone and M of load.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import mujoco
import numpy as np

DRONE, LENGTH, G, DT, SECONDS, ANGLE = 0.0319, 0.3, 9.81, 0.002, 60, 0.02
_CABLE = (
    f'<tendon><spatial limited="true" range="0 {LENGTH}"><site site="a"/><site site="b"/>'
    "</spatial></tendon>"
)


def model(load: float, drone: str) -> mujoco.MjModel:
    """Return a model of a drone, with this joint or property, and a load on a cable."""
    x, z = LENGTH * math.sin(ANGLE), 10 - LENGTH * math.cos(ANGLE)
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="{DT}"/><worldbody><body {drone} name="drone" pos="0 0 10">'
        f'{"" if "mocap" in drone else "<freejoint/>"}<site name="a"/><geom size="0.02" '
        f'mass="{DRONE}" contype="0" conaffinity="0"/></body><body name="load" pos="{x} 0 {z}">'
        f'<freejoint/><site name="b"/><geom size="0.01" mass="{load}" contype="0" '
        f'conaffinity="0"/></body></worldbody>{_CABLE}</mujoco>'
    )


def coupled(load: float) -> Callable[[], np.ndarray]:
    """Return a function that advances both by a tick and returns where the load is seen from it."""
    world = model(load, "")
    data = mujoco.MjData(world)
    data.xfrc_applied[1, 2] = (DRONE + load) * G

    def tick() -> np.ndarray:
        mujoco.mj_step(world, data)
        return data.qpos[7:10] - data.qpos[:3]

    return tick


def staggered(load: float) -> Callable[[], np.ndarray]:
    """Return the same for a drone and a load that are integrated one after the other."""
    world = model(load, 'mocap="true"')
    data = mujoco.MjData(world)
    vel, pull, up = np.zeros(3), np.zeros(3), np.array([0.0, 0.0, 1.0])

    def tick() -> np.ndarray:
        nonlocal vel, pull
        vel = vel + DT * ((pull + (DRONE + load) * G * up) / DRONE - G * up)
        data.mocap_pos[0] += DT * vel
        mujoco.mj_step(world, data)
        pull = -data.qfrc_constraint[:3]
        return data.qpos[:3] - data.mocap_pos[0]

    return tick


def landing(*, is_coupled: bool) -> str:
    """Let a drone fall 5 cm onto a box of 5 g that stands on the floor; return how it rests."""
    drone, own = ("<freejoint/>", "") if is_coupled else ("", 'mocap="true"')
    world = mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="{DT}"/><worldbody><geom type="plane" size="1 1 1"/>'
        f'<body name="box" pos="0 0 0.05"><freejoint/><geom type="box" size="0.05 0.05 0.05" '
        f'mass="0.005"/></body><body name="drone" pos="0 0 0.16" {own}>'
        f'{drone}<geom type="box" size="0.04 0.04 0.01" mass="{DRONE}"/></body></worldbody>'
        "</mujoco>"
    )
    data, speed = mujoco.MjData(world), 0.0
    height, force = np.zeros(5000), np.zeros(6)
    for i in range(len(height)):
        mujoco.mj_step(world, data)
        if is_coupled:
            height[i] = data.qpos[9]
            continue
        push = 0.0
        for k, contact in enumerate(data.contact):
            if 2 in world.geom_bodyid[contact.geom]:
                mujoco.mj_contactForce(world, data, k, force)
                push += force[0] * abs(contact.frame[2])
        speed += DT * (push / DRONE - G)
        data.mocap_pos[0, 2] += DT * speed
        height[i] = data.mocap_pos[0, 2]
    rest = height[-500:]
    if abs(0.11 - rest.mean()) > 0.05:
        return f"is {0.11 - rest.mean():+.2f} m deep after 9 s"
    return (
        f"at most {1e3 * (0.11 - height.min()):.1f} mm deep, rests "
        f"{1e3 * (0.11 - rest.mean()):.2f} mm deep and moves by {1e6 * np.ptp(rest):.1f} um"
    )


def judged(tick: Callable[[], np.ndarray], load: float) -> str:
    """Return the error of the period, the growth of the swings, and the time of a tick."""
    start = time.perf_counter()
    place = np.array([tick() for _ in range(round(SECONDS / DT))])
    took = (time.perf_counter() - start) / len(place)
    if not np.isfinite(place).all() or np.abs(place).max() > 2 * LENGTH:
        away = np.flatnonzero(~(np.abs(place).max(axis=1) < 2 * LENGTH))[0] * DT
        return f"the cable is longer than twice its length after {away:.2f} s"
    x = place[:, 0]
    rises = np.flatnonzero((x[:-1] < 0) & (x[1:] >= 0))
    crossing = (rises - x[rises] / (x[rises + 1] - x[rises])) * DT
    exact = 2 * math.pi * math.sqrt(LENGTH / (G * (1 + load / DRONE)))
    period = np.diff(crossing).mean() / exact - 1
    swing = np.abs(x[-5000:]).max() / np.abs(x[:5000]).max()
    stretch = np.linalg.norm(place, axis=1).max() / LENGTH - 1
    return (
        f"period {period:+.2%}, swings x {swing:.3f} in {SECONDS} s, cable +{stretch:.2%}, "
        f"{took * 1e6:.1f} us a tick"
    )


def main() -> None:
    """Print the table."""
    for load in (0.005, 0.03, 0.1):
        for way in (coupled, staggered):
            print(f"load of {load * 1e3:g} g, {way.__name__}: {judged(way(load), load)}")
    print("lands on a box of 5 g, coupled:", landing(is_coupled=True))
    print("lands on a box of 5 g, staggered:", landing(is_coupled=False))


if __name__ == "__main__":
    main()
