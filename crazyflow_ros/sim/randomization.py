"""What differs between drones and flights, declared once, in a mapping or a YAML file.

The stages of a declaration are for `Sim.reset_pipeline` and for the option `randomizers` of
environments; `learn --randomize` and the node's parameter `randomize` read the same file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.checks.limits import shown, unknown
from crazyflow_ros.checks.yaml_files import load_yaml
from crazyflow_ros.sim import randomize
from crazyflow_ros.sim.data import SimData
from crazyflow_ros.sim.hanging import hang_payload
from crazyflow_ros.sim.identified import randomize_identified
from crazyflow_ros.sim.randomize import ResetStage, in_worlds, randomize_param, randomize_payload

DELAY = "delay_ticks"
"""Plugin (N, M, 1) int: by how many ticks actions of a drone are late."""
NOISE = "noise_gain"
"""Plugin (N, M, 1): factor of the noise of a drone's observations."""

_MOST_DELAY, _MOST_NOISE = 10.0, 100.0
_STATES: dict[str, Callable[[Any], ResetStage]] = {
    "pos": randomize.randomize_pos,
    "vel": randomize.randomize_vel,
    "ang_vel": randomize.randomize_ang_vel,
    "attitude": randomize.randomize_attitude,
}


def randomizers(declaration: str | Path | Mapping[str, Any]) -> tuple[ResetStage, ...]:
    """Return the stages that draw what a declaration names, in its order.

    The keys of a declaration, and their values, are

    - a parameter of the dynamics, such as `mass`: a spread, or a mapping of the arguments of
      `randomize_param`, such as `{spread: [0.9, 1.05], per: rotor}`;
    - `payload`: a mapping of the arguments of `randomize_payload`;
    - `pos`, `vel`, `ang_vel`, `attitude`: the argument of `randomize_pos` and so on;
    - `identified`: the folder of `randomize_identified`, from that of the file if it is relative;
    - `action_delay`: see `randomize_delay`;
    - `observation_noise`: see `randomize_noise`.

    Args:
        declaration: The mapping, or the path of a YAML file that contains it.

    Raises:
        ValueError: It is something else, a key or a value is wrong, or the file cannot be read; the
            message names file and key. What a drone lacks is refused where stages are assigned.
    """
    if isinstance(declaration, Mapping):
        found, where, folder = declaration, "", Path()
    else:
        found, where = load_yaml(declaration), f"{declaration}: "
        folder = Path(declaration).expanduser().parent
    if not isinstance(found, Mapping) or not all(isinstance(key, str) for key in found):
        raise ValueError(f"{where}expected names of what is drawn, got {shown(found)}")
    try:
        return tuple(
            stage for name, given in found.items() for stage in _stages(name, given, folder)
        )
    except (ValueError, TypeError) as error:
        raise ValueError(f"{where}{error}") from None


def _stages(name: str, given: Any, folder: Path) -> Iterator[ResetStage]:
    if name in _STATES:
        yield _STATES[name](given)
    elif name == "action_delay":
        yield randomize_delay(given)
    elif name == "observation_noise":
        yield randomize_noise(given)
    elif name == "identified":
        yield randomize_identified(folder / Path(str(given)).expanduser())
    elif name == "payload":
        if not isinstance(given, Mapping):
            raise ValueError(f"payload: expected a mapping of spreads, got {shown(given)}")
        yield from (randomize_payload(figure, spread) for figure, spread in given.items())
        if "length" in given:
            yield hang_payload
    else:
        yield _of_parameter(name, given)


def _of_parameter(name: str, given: Any) -> ResetStage:
    options = given if isinstance(given, Mapping) else {"spread": given}
    for key in options:
        if key not in (known := ("spread", "operation", "distribution", "per")):
            raise ValueError(f"{name}: {unknown('option', key, known)}")
    if "spread" not in options:
        raise ValueError(f"{name}: expected a spread, got {shown(given)}")
    spread = options["spread"]
    others = {key: value for key, value in options.items() if key != "spread"}
    return randomize_param(name, tuple(spread) if isinstance(spread, list) else spread, **others)


def randomize_delay(seconds: tuple[float, float]) -> RandomDelay:
    """Draw how late the actions of each drone are, in each reset world.

    An environment then delays actions by that time, in place of `action_delay`. In a `Sim`, the
    stage `ActionDelay(ticks, each=True)` of the step pipeline does.

    Args:
        seconds: Shortest and longest delay, s, from 0 to 10; rounded to ticks.

    Raises:
        ValueError: They are no such numbers.
    """
    return RandomDelay(_between("action_delay", seconds, _MOST_DELAY))


@dataclass(frozen=True)
class RandomDelay:
    """A stage that draws delays, see `randomize_delay`."""

    seconds: tuple[float, float]

    def ticks(self, freq: int) -> tuple[int, int]:
        """Return the least and the most ticks at `freq` ticks per second."""
        low, high = (round(x * freq) for x in self.seconds)
        return low, high

    def check(self, data: SimData) -> None:
        """Check that something delays actions.

        Raises:
            ValueError: Nothing does, or not by as much.
        """
        most = self.ticks(data.core.freq)[1]
        if DELAY not in data.plugins:
            raise ValueError(
                "action_delay: nothing delays each drone's actions by its own time; in a Sim, "
                f"ActionDelay({max(most, 1)}, each=True) before integrate does"
            )
        waiting = data.plugins.get("action_delay")
        if waiting is not None and waiting.shape[2] < most:
            raise ValueError(
                f"action_delay: up to {most} ticks, but ActionDelay has {waiting.shape[2]}"
            )

    def __call__(self, data: SimData, default_data: SimData, mask: Array) -> SimData:
        """Draw the delays in the worlds of the mask."""
        del default_data
        low, high = self.ticks(data.core.freq)
        return _drawn(data, DELAY, low - 0.5, high + 0.5, mask)


def randomize_noise(gain: tuple[float, float]) -> RandomNoise:
    """Draw a factor of the noise of each drone's observations, in each reset world.

    It is for environments, whose option `observation_noise` is multiplied by it, and the noise of
    observation terms, too.

    Args:
        gain: Least and greatest factor, from 0 to 100.

    Raises:
        ValueError: They are no such numbers.
    """
    return RandomNoise(_between("observation_noise", gain, _MOST_NOISE))


@dataclass(frozen=True)
class RandomNoise:
    """A stage that draws factors of noise, see `randomize_noise`."""

    gain: tuple[float, float]

    def check(self, data: SimData) -> None:
        """Check that observations have noise.

        Raises:
            ValueError: They have none.
        """
        if NOISE not in data.plugins:
            raise ValueError("observation_noise: there is no noise to multiply; set that option")

    def __call__(self, data: SimData, default_data: SimData, mask: Array) -> SimData:
        """Draw the factors in the worlds of the mask."""
        del default_data
        return _drawn(data, NOISE, *self.gain, mask)


def _drawn(data: SimData, plugin: str, low: float, high: float, mask: Array) -> SimData:
    """Draw a plugin between two numbers, uniformly; whole numbers are rounded."""
    key, subkey = jax.random.split(data.core.rng_key)
    now = data.plugins[plugin]
    new = jax.random.uniform(subkey, now.shape, data.states.pos.dtype, low, high)
    if jnp.issubdtype(now.dtype, jnp.integer):
        new = jnp.clip(jnp.round(new), low + 0.5, high - 0.5)
    plugins = data.plugins | {plugin: in_worlds(mask, new.astype(now.dtype), now)}
    return data.replace(plugins=plugins, core=data.core.replace(rng_key=key))


def _between(name: str, pair: Any, most: float) -> tuple[float, float]:
    """Return two numbers in order.

    Raises:
        ValueError: They are not, or not from 0 to `most`.
    """
    try:
        numbers = np.asarray(pair, float)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if numbers.shape != (2,) or not 0 <= numbers[0] <= numbers[1] <= most:
        raise ValueError(f"{name}: expected two numbers from 0 to {most:g}, got {shown(pair)}")
    low, high = numbers.tolist()
    return low, high
