"""Draws the figures of these pages: python docs/figures.py [FOLDER], with matplotlib."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from math import pi, tau
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Circle
from scipy.signal import welch

from crazyflow_ros.doors.motors import BETAFLIGHT_X, QUAD_X, Order
from crazyflow_ros.drones import load_drone
from crazyflow_ros.dynamics import BodyState, ground_effect
from crazyflow_ros.sim import Dryden, Integrator, Sim
from crazyflow_ros.sim.motion import derivative
from crazyflow_ros.sim.wind import correlated, filtered, gust_of

DRONE = "cf2x_L250"
AUTOPILOTS_DRONE = "hb_x500"
STYLE = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.figsize": (6.0, 3.6),
    "font.size": 9,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "savefig.bbox": "tight",
    "svg.hashsalt": "crazyflow_ros",  # the same file from the same numbers
}


def integrators(axes: Axes) -> None:
    """Error of a tumbling flight of 0.2 s, by step, beside lines of the nominal order."""
    duration, counts = 0.2, np.array([10, 20, 40, 80, 160, 320])
    with jax.enable_x64(True):
        sim = Sim(drone=DRONE, control="rotor_vel")
        states, data = sim.data.states, sim.data
        data = data.replace(
            states=states.replace(
                ang_vel=states.ang_vel + jnp.array([6.0, -4.0, 3.0]),
                vel=states.vel + jnp.array([1.0, 2.0, -1.0]),
                rotor_vel=states.rotor_vel + 14_000.0,
            ),
            controls=data.controls.replace(
                actuators=data.controls.actuators + jnp.array([16e3, 12e3, 15e3, 13e3])
            ),
        )

        @partial(jax.jit, static_argnums=0)
        def fly(integrator: Integrator, dt: float, n: int) -> BodyState:
            def rate(state: BodyState) -> jax.Array:
                return derivative(data, state, ())

            def step(_: int, state: BodyState) -> BodyState:
                return integrator.fn(state, rate, dt)

            return jax.lax.fori_loop(0, n, step, data.states.components)

        def position(integrator: Integrator, n: int) -> np.ndarray:
            return np.ravel(fly(integrator, duration / n, n).pos)

        exact = position(Integrator.rk4, 5000)
        steps = 1e3 * duration / counts
        orders = {Integrator.euler: 1, Integrator.symplectic_euler: 1, Integrator.rk4: 4}
        for integrator, order in orders.items():
            errors = [np.linalg.norm(position(integrator, n) - exact) for n in counts]
            (line,) = axes.loglog(steps, errors, "o", label=f"{integrator}, order {order}")
            nominal = errors[-1] * (steps / steps[-1]) ** order
            axes.loglog(steps, nominal, "--", color=line.get_color(), lw=0.8)
    axes.axvline(2, color="grey", lw=0.8)
    axes.annotate("500 Hz", (2, axes.get_ylim()[0]), (4, 6), textcoords="offset points")
    axes.set(xlabel="step [ms]", ylabel="error of the position [m]")
    axes.legend()


def figure_eight(axes: Axes) -> None:
    """Setpoints along an eight, with their velocities, and what is flown."""
    periods, size, height = (8.0, 5.0), 1.0, 1.0
    sim = Sim(n_worlds=2, drone=DRONE, control="state", true_mass=True)
    rate = tau / np.array(periods)[:, None, None]

    def setpoint(time: float) -> np.ndarray:
        phase = rate * time
        a, b, zero = size * np.sin(phase), size / 2 * np.sin(2 * phase), 0 * phase
        da, db = rate * size * np.cos(phase), rate * size * np.cos(2 * phase)
        cmd = [a, b, zero + height, da, db, zero, -(rate**2) * a, -4 * rate**2 * b]
        return np.concatenate([*cmd, *[zero] * 5], axis=-1)

    states = sim.data.states
    start = setpoint(0.0)
    sim.data = sim.data.replace(
        states=states.replace(
            pos=jnp.asarray(start[..., :3]),
            vel=jnp.asarray(start[..., 3:6]),
            rotor_vel=states.rotor_vel + 15_000.0,
        )
    )
    flown, targets = [], []
    for i in range(1600):
        sim.state_control(setpoint(i / 100))
        sim.step(5)
        flown.append(np.asarray(sim.data.states.pos[:, 0]))
        targets.append(setpoint((i + 1) / 100)[:, 0, :2])
    path, target = np.array(flown)[800:], np.array(targets)[800:]
    axes.plot(*target[:, 0].T, color="black", lw=0.8, ls="--", label="commanded")
    for world, period in enumerate(periods):
        error = np.linalg.norm(path[:, world, :2] - target[:, world], axis=-1)
        axes.plot(*path[:, world, :2].T,
                  label=f"{period:g} s an eight: {100 * error.mean():.0f} cm off")  # fmt: skip
    axes.set(xlabel="x [m]", ylabel="y [m]", aspect="equal")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, columnspacing=1.2)


def dryden(axes: Axes) -> None:
    """Spectra of ten minutes of gusts beside the model's closed form."""
    wind, freq, n = Dryden(wind=(5.0, 0.0), altitude=6.0), 100, 60_000
    noise = jax.random.normal(jax.random.key(0), (n, 16, 5))

    def blow(filters: jax.Array, noise: jax.Array) -> tuple[jax.Array, tuple[jax.Array, ...]]:
        return wind.gust(filters, noise, 1 / freq)

    _, gusts = jax.lax.scan(blow, jnp.zeros((16, 5)), noise)
    names = ("along the wind", "across it", "vertical")
    forms: list[Callable[[np.ndarray], np.ndarray]] = [
        lambda x: 2 / (1 + x**2),
        *[lambda x: (1 + 3 * x**2) / (1 + x**2) ** 2] * 2,
    ]
    for name, gust, sigma, length, form in zip(names, gusts, wind.intensities, wind.lengths, forms):
        f, power = welch(np.asarray(gust), freq, nperseg=8192, axis=0)
        shown = slice(1, np.searchsorted(f, 10))
        (line,) = axes.loglog(f[shown], power.mean(axis=1)[shown], lw=0.8, alpha=0.6, label=name)
        # Per rad/m with the gusts blowing past at the speed of the wind, so per Hz 2 pi / V times.
        closed = sigma**2 * length / pi * form(tau * f / wind.speed * length) * tau / wind.speed
        axes.loglog(f[shown], closed[shown], "--", color=line.get_color())
    axes.plot([], [], "k--", label="closed form")
    axes.set(xlabel="frequency [Hz]", ylabel="spectrum of the gusts [m²/s² / Hz]")
    axes.legend()


def gusts_apart(axes: Axes) -> None:
    """Correlations of the gusts of two drones by their distance, beside those of the field."""
    wind, n = Dryden(wind=(5.0, 0.0), altitude=6.0), 4000
    away = np.array([0, 0.5, 1, 2, 4, 7, 11, 16])
    numbers = wind.numbers(2.0).tolist()

    def blow(pos: jax.Array, filters: jax.Array, key: jax.Array) -> tuple[jax.Array, None]:
        noise = correlated(jax.random.normal(key, filters.shape), pos, numbers)
        return filtered(filters, noise, numbers), None

    for axis, mark in ((0, "o"), (1, "s")):  # places along the wind, and across it
        pos = np.zeros((n, len(away), 3))
        pos[..., axis] = away

        keys, calm = jax.random.split(jax.random.key(axis), 40), jnp.zeros((n, len(away), 5))
        filters, _ = jax.lax.scan(partial(blow, jnp.asarray(pos)), calm, keys)
        gust = gust_of(filters, numbers)
        for name, which in (("horizontal gusts", 0), ("vertical gusts", 2)):
            length, fine = wind.lengths[which], np.linspace(0, 16, 200)
            closed = np.exp(-fine / length)
            closed *= 1 if axis == which else 1 - fine / (2 * length)
            found = np.corrcoef(np.asarray(gust[which]).T)[0]
            place = ("along", "across")[axis]
            (line,) = axes.plot(away, found, mark, ms=4, label=f"{name}, places {place} the wind")
            axes.plot(fine, closed, "--", lw=0.8, color=line.get_color())
    axes.plot([], [], "k--", lw=0.8, label="closed form")
    axes.set(xlabel="distance [m]", ylabel="correlation of gusts")
    axes.legend()


def near_the_ground(axes: Axes) -> None:
    """Thrust of a level drone by the height of its rotors, beside the paper's formula."""
    figures, effect = load_drone(DRONE)["geometry"], ground_effect(DRONE)
    radius, above = figures["rotor_radius"], figures["rotor_z"]
    heights = np.linspace(0.5, 4, 15)  # of the rotors, in radii
    sim = Sim(n_worlds=len(heights), drone=DRONE, control="rotor_vel")
    pos = jnp.asarray(heights * radius - above)[:, None]
    state = sim.data.states.components
    state = state._replace(
        pos=(*state.pos[:2], pos), rotor_vel=tuple(r + 15_000 for r in state.rotor_vel)
    )
    thrust = sum(sim.data.params.rotor_thrust(state))
    ratio = 1 + effect(state, sim.data.params).force[2] / thrust
    fine, d = np.linspace(0.5, 4, 200), 2 * load_drone(DRONE)["L"] / radius
    single, around = 1 / (4 * fine) ** 2, (d**2 + 4 * fine**2, 2 * d**2 + 4 * fine**2)
    near, across = (fine / square**1.5 for square in around)
    published = 1 / (1 - single - near - across / 2 - 4 * across)
    axes.plot(fine, published, label="Sanchez-Cuevas et al. 2017")
    axes.plot(heights, np.ravel(ratio), "o", ms=4, label=f"four rotors of {DRONE}")
    axes.plot(fine, 1 / (1 - single), ":", label="one rotor, Cheeseman and Bennett 1955")
    axes.set(xlabel="height of the rotors [radii]", ylabel="thrust [of that far away]")
    axes.legend()


def rotors(axes: Axes) -> None:
    """Numbers of the rotors of each autopilot, where they are, how they turn, and the axes."""
    axes.figure.set_size_inches(7.2, 4.8)
    axes.set_axis_off()
    axes.set_aspect("equal")
    ours, flu, frd = (0, 1, 2, 3), "body FLU, world ENU", "body FRD, world NED"
    autopilots: list[tuple[str, str, Order, int]] = [  # with the number of the first output
        ("crazyflow_ros", flu, ours, 0),
        ("PX4", frd, QUAD_X, 1),
        ("ArduPilot", frd, QUAD_X, 1),
        ("Betaflight, April 2026", "body FRD, world ENU", BETAFLIGHT_X, 1),
        ("Betaflight 4.6 and older", "body FRD, world ENU", QUAD_X, 1),
        ("Crazyflie", flu, ours, 1),
    ]
    for panel, (title, frames, order, first) in enumerate(autopilots):
        centre = np.array([4.2 * (panel % 3), -4.6 * (panel // 3)])
        axes.text(*np.add(centre, (0, 2.2)), title, ha="center", weight="bold")
        axes.text(*np.add(centre, (0, 1.8)), frames, ha="center", fontsize=8)
        _quadrotor(axes, centre, [first + output for output in order])
        _body_axes(axes, centre, "FRD" in frames)
    axes.set(xlim=(-1.8, 10.2), ylim=(-6.4, 2.7))


def _quadrotor(axes: Axes, centre: np.ndarray, numbers: list[int]) -> None:
    """Draw a quadrotor from above, its front at the top, with numbers of our rotors 0 to 3."""
    roll, pitch, yaw = load_drone(AUTOPILOTS_DRONE)["mixing_matrix"]
    for number, left, back, turn in zip(numbers, roll, pitch, yaw):
        # Thrust on the left rolls to the right, which is positive; in front it pitches up. A rotor
        # that turns counter-clockwise pulls the body clockwise.
        place, ccw = np.add(centre, (-left, -back)), turn < 0
        axes.plot(*zip(centre, place), color="0.6", lw=3, zorder=0)
        colour = "tab:blue" if ccw else "tab:orange"
        axes.add_patch(Circle(place, 0.55, facecolor="white", edgecolor=colour, lw=1.5))
        axes.text(*place, str(number), ha="center", va="center", fontsize=10)
        ends = [place + 0.55 * np.array([np.cos(a), np.sin(a)]) for a in (0.3, 0.7)]
        style = {"arrowstyle": "-|>,head_width=0.35,head_length=0.6", "color": colour, "lw": 0}
        axes.annotate("", *(ends[::-1] if ccw else ends), arrowprops=style)


def _body_axes(axes: Axes, centre: np.ndarray, down: bool) -> None:
    """Draw x, which is forward, y, to the left or right, and z, up or down."""
    style = {"arrowstyle": "-|>", "color": "black", "shrinkA": 0, "shrinkB": 0}
    side = 1.0 if down else -1.0
    for name, tip in (("x", (0, 0.75)), ("y", (0.75 * side, 0))):
        axes.annotate("", centre + tip, centre, arrowprops=style)
        axes.text(*(centre + np.multiply(tip, 1.3)), name, ha="center", va="center")
    axes.plot(*centre, "o", ms=9, mfc="white", mec="black")
    axes.plot(*centre, "kx" if down else "ko", ms=6 if down else 3)
    axes.text(*np.add(centre, (-0.3 * side, -0.3)), "z", ha="center", va="center")


FIGURES = {
    "rotors": rotors,
    "integrators": integrators,
    "figure_eight": figure_eight,
    "dryden": dryden,
    "gusts_apart": gusts_apart,
    "ground_effect": near_the_ground,
}


def main() -> None:
    """Write the figures as SVG files."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    plt.rcParams.update(STYLE)
    for name, draw in FIGURES.items():
        figure, axes = plt.subplots()
        draw(axes)
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
        plt.close(figure)


if __name__ == "__main__":
    main()
