"""Drones that hover on the estimate of their Kalman filter: how far they drift, and processor time.

    python -m benchmark.estimator

Prints Markdown tables. Drones are to hover at a height of 1 m for a minute. Times are those of one
call of many ticks, the shortest of ten in turns. The second table compares the errors of estimates
with their variances, in hover and along circles.
"""

from __future__ import annotations

import time

import numpy as np
from scipy.spatial.transform import Rotation

from crazyflow_ros.estimation import Positioning, Ranging
from crazyflow_ros.estimation.base_stations import USUAL_STATIONS
from crazyflow_ros.sim import Sim

FREQ, SECONDS, FLIGHTS = 500, 60, 64
HOVER_SPEED = 19_000.0  # RPM, about
RADIUS, SPEED = 0.8, 1.0  # m, m/s, of circles
CIRCLES = 10  # s; later, drones without a horizontal position know too little of their velocity
BATCHES = {1: 20_000, 1024: 200}
"""Ticks of a call by number of worlds."""
ROUNDS = 10
QUANTITIES = {
    "x, y": [0, 1],
    "z": [2],
    "velocity, x and y": [3, 4],
    "velocity, z": [5],
    "roll, pitch": [6, 7],
    "yaw": [8],
}
CORNERS = tuple(
    (x, y, z) for x, y in ((-3.0, -3.0), (3.0, -3.0), (3.0, 3.0), (-3.0, 3.0)) for z in (0.2, 2.5)
)
KINDS: dict[str, Positioning | None] = {
    "true state": None,
    "Flow deck": Positioning(),
    "Lighthouse": Positioning(flow=False, range=False, stations=USUAL_STATIONS),
    "eight anchors, TWR": Positioning(flow=False, range=False, anchors=CORNERS),
    "eight anchors, TDoA3": Positioning(
        flow=False, range=False, anchors=CORNERS, ranging=Ranging.tdoa3
    ),
    "motion capture": Positioning(flow=False, range=False, motion_capture=True),
    "height only": Positioning(flow=False),
    "nothing": Positioning(flow=False, range=False),
}


def hovering(positioning: Positioning | None, n_worlds: int) -> Sim:
    """Return drones that hover."""
    estimator = "none" if positioning is None else "kalman"
    sim = Sim(
        n_worlds, control="state", freq=FREQ, true_mass=True,
        estimator=estimator, positioning=positioning,
    )  # fmt: skip
    states = sim.data.states
    pos, rotor_vel = states.pos.at[..., 2].set(1.0), states.rotor_vel + HOVER_SPEED
    sim.data = sim.data.replace(states=states.replace(pos=pos, rotor_vel=rotor_vel))
    command = np.zeros((n_worlds, 1, 13))
    command[..., 2] = 1.0
    sim.state_control(command)
    return sim


def drift(sim: Sim) -> tuple[float, float]:
    """Return the root mean square of the distance from the setpoint, across and in height [m]."""
    sim.step(FREQ * SECONDS)
    error = np.asarray(sim.data.states.pos)[:, 0] - [0, 0, 1]
    across = np.sqrt(np.square(error[:, :2]).sum(axis=1).mean())
    return float(across), float(np.sqrt(np.square(error[:, 2]).mean()))


def shares(sim: Sim, speed: float) -> np.ndarray:
    """Fly circles; return the root mean square of errors over their standard deviations.

    Args:
        sim: The simulation, as `hovering` returns it.
        speed: Speed, m/s; 0 hovers.

    Returns:
        (9,) of position, velocity (body axes) and attitude (body axes).
    """
    rate, found = speed / RADIUS, []
    command = np.zeros((sim.n_worlds, 1, 13))
    command[..., 2] = 1.0
    for tick in range(0, CIRCLES * FREQ, FREQ // 20):
        time = tick / FREQ
        size, angle = RADIUS * min(time / 2, 1), rate * time
        out = np.array([np.cos(angle), np.sin(angle)])
        if speed:
            command[..., :2] = size * (out - [1, 0])
            command[..., 3:5] = size * rate * out[::-1] * [-1, 1]
            command[..., 6:8] = -size * rate**2 * out
        sim.state_control(command)
        sim.step(FREQ // 20 + (tick == 0))  # one more, to the tick after a prediction
        if time > 3:
            found.append(_errors(sim))
    return np.sqrt(np.mean(found, axis=(0, 1)))


def _errors(sim: Sim) -> np.ndarray:
    """Return the squares of errors over their variances, (worlds, 9)."""
    estimate = sim.data.estimate
    assert estimate is not None
    true, quat = np.array(estimate.seen[:, 0]), np.array(estimate.quat[:, 0])
    rot = Rotation.from_quat(true[:, 3:7])
    vel = rot.inv().apply(true[:, 7:]) - np.array(estimate.body_vel[:, 0])
    turn = (Rotation.from_quat(quat).inv() * rot).as_rotvec()
    errors = np.hstack([true[:, :3] - np.array(estimate.pos[:, 0]), vel, turn])
    return np.square(errors) / np.array(estimate.variances[:, 0])


def seconds_of(sims: dict[str, Sim], ticks: int) -> dict[str, float]:
    """Return the processor time of a tick for each simulation."""
    best = dict.fromkeys(sims, np.inf)
    for _ in range(1 + ROUNDS):
        for name, sim in sims.items():
            began = time.process_time()
            sim.step(ticks)
            sim.data.states.pos.block_until_ready()
            best[name] = min(best[name], (time.process_time() - began) / ticks)
    return best


def main() -> None:
    """Print the table."""
    times = {
        n: seconds_of({kind: hovering(given, n) for kind, given in KINDS.items()}, ticks)
        for n, ticks in BATCHES.items()
    }
    print("| positions from | across | in height | time of a tick, 1 and 1024 worlds |")
    print("|---|---:|---:|---:|")
    for kind, given in KINDS.items():
        across, up = drift(hovering(given, FLIGHTS))
        ratios = ", ".join(f"{times[n][kind] / times[n]['true state']:.2f}" for n in BATCHES)
        print(f"| {kind} | {100 * across:.1f} cm | {100 * up:.1f} cm | {ratios} |")
    for n in BATCHES:
        print(f"{n}: {1e6 * times[n]['true state']:.2f} us with the true state")
    print()
    print(f"| positions from | m/s | {' | '.join(QUANTITIES)} |")
    print(f"|---|---:|{'---:|' * len(QUANTITIES)}")
    for kind, given in KINDS.items():
        for speed in (0.0, SPEED) if given else ():
            found = shares(hovering(given, FLIGHTS), speed)
            each = [f"{np.sqrt(np.mean(found[i] ** 2)):.2f}" for i in QUANTITIES.values()]
            print(f"| {kind} | {speed:g} | {' | '.join(each)} |")


if __name__ == "__main__":
    main()
