"""The program `export-firmware`: writes a policy as C for the Crazyflie's firmware.

python -m crazyflow_ros export-firmware hover.policy --out hover_app

The folder is an out-of-tree build of the firmware. Its code is that of `firmware/`, beside two
headers with the figures and weights of the policy.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from crazyflow_ros.checks.files import write_file
from crazyflow_ros.checks.limits import shown, shown_path
from crazyflow_ros.checks.program_end import in_words
from crazyflow_ros.control import Control
from crazyflow_ros.drones import load_drone
from crazyflow_ros.policy.checked import layer_arrays
from crazyflow_ros.policy.network import ACTIVATIONS, Dense, Gru, Layer
from crazyflow_ros.policy.observation import PARTS
from crazyflow_ros.policy.policy import Policy
from crazyflow_ros.policy.policy_files import load

RATE = 1000
"""Calls of a controller a second: the firmware's RATE_MAIN_LOOP, stabilizer_types.h."""
FLASH = 814_060
"""Bytes that the firmware leaves of 1008 KiB: its docs/development/howto.md."""
RAM = 29_044
"""Bytes that the firmware leaves of 128 KiB, built for cf2: its pull request 1700, 2026-08-31."""
CLOCK = 168e6  # Hz
CYCLES = 5
"""Fewest cycles for a weight: VLDR has 2, VFMA has 3; Cortex-M4 Technical Reference Manual, 7.2."""
CALL = 1e-3
"""s in which an action has to be chosen: the period of the controller."""

UNMEASURED = {
    "rotor_speeds": "the firmware does not measure speeds of rotors",
    "body_load_position": "the firmware does not know where a load is",
    "body_load_velocity": "the firmware does not know where a load is",
}
"""Parts of observations that the firmware cannot tell, and why."""


@dataclass(frozen=True)
class FirmwarePlatform:
    """A Crazyflie for which the firmware is built."""

    name: str
    """As in `make <name>_defconfig`."""
    option: str
    """Option of the build that has to be set."""


PLATFORMS = {
    "cf2x_L250": FirmwarePlatform("cf2", "CONFIG_CRAZYFLIE_LEGACY_PROPELLERS"),
    "cf2x_P250": FirmwarePlatform("cf2", "CONFIG_CRAZYFLIE_21_PLUS"),
    "cf2x_T350": FirmwarePlatform("cf2", "CONFIG_CRAZYFLIE_THRUST_UPGRADE_KIT"),
    "cf21B_500": FirmwarePlatform("cf21bl", "CONFIG_PLATFORM_CF21BL"),
}
"""Platforms by the drones that have them."""


@dataclass(frozen=True)
class Sizes:
    """What a policy takes on the processor."""

    flash: int
    """Bytes of weights and other numbers, without code."""
    ram: int
    """Bytes."""
    seconds: float
    """Shortest time for an action, see `CYCLES`."""


def sizes_of(policy: Policy) -> Sizes:
    """Return what a policy takes."""
    arrays = layer_arrays(policy.network.layers)
    weights = sum(array.size for name, array in arrays.items() if name.endswith("weights"))
    constants = sum(array.size for array in arrays.values()) + 2 * policy.mean.size + 8
    memory = policy.mean.size + 4 + _recurrent(policy) + 4 + 2 * _widest(policy)
    return Sizes(4 * constants, 4 * memory, weights * CYCLES / CLOCK)


def write_app(policy: Policy, folder: str | Path, drone: str | None = None) -> FirmwarePlatform:
    """Write the folder of an app for the firmware, each file completely or not at all.

    Args:
        policy: The policy.
        folder: The folder; it is made if it is missing, and its files of an earlier export are
            replaced.
        drone: The drone that the policy will fly, a name or the path of a folder; None for that of
            the policy. It decides which thrust a rotor has at a commanded speed.

    Returns:
        The platform for which to build the firmware.

    Raises:
        OSError: A file cannot be written.
        ValueError: The firmware cannot fly the policy; the message says why.
    """
    _check(policy)
    figures, platform = _flown(policy, drone)
    contents = {
        "Kbuild": "obj-y += src/\n",
        "app-config": f"CONFIG_CONTROLLER_OOT=y\n{platform.option}=y\n",
        "src/Kbuild": "obj-y += policy.o\nobj-y += policy_controller.o\n",
        "src/policy_figures.h": "\n".join(_figures(policy, figures, platform)) + "\n",
        "src/policy_weights.h": "\n".join(_weights(policy)) + "\n",
    }
    code = files(__package__) / "firmware"
    for name in ("Makefile", "policy.h", "policy.c", "policy_controller.c"):
        contents[name if name == "Makefile" else f"src/{name}"] = (code / name).read_text()
    (Path(folder) / "src").mkdir(parents=True, exist_ok=True)
    for name, text in contents.items():
        write_file(Path(folder) / name, text.encode())
    return platform


def _check(policy: Policy) -> None:
    """Raise a ValueError if the firmware cannot fly a policy."""
    observation = policy.observation
    if observation.eye is not None:
        raise ValueError("the policy sees pictures, and the firmware has no camera")
    if observation.told:
        names = ", ".join(observation.told)
        raise ValueError(f"the policy observes {names}, which only environments tell")
    for part in observation.parts:
        if part in UNMEASURED:
            known = ", ".join(name for name in PARTS if name not in UNMEASURED)
            raise ValueError(f"the policy observes {part}: {UNMEASURED[part]}; expected {known}")
    for i, layer in enumerate(policy.network.layers):
        if not isinstance(layer, Dense | Gru):
            raise ValueError(f"layer {i} sees pictures, expected dense and gru")
    if RATE % policy.freq:
        raise ValueError(
            f"the policy has {policy.freq} actions a second, expected a divisor of the firmware's "
            f"{RATE}"
        )
    sizes = sizes_of(policy)
    for name, size, most in (("flash", sizes.flash, FLASH), ("RAM", sizes.ram, RAM)):
        if size > most:
            raise ValueError(f"the policy takes {size} bytes of {name}, expected at most {most}")
    if sizes.seconds > CALL:
        raise ValueError(
            f"an action takes at least {1e3 * sizes.seconds:.2f} ms at {CLOCK / 1e6:.0f} MHz, "
            f"expected at most {1e3 * CALL:g} ms, in which the firmware calls its controller again"
        )


def _flown(policy: Policy, drone: str | None) -> tuple[dict[str, Any], FirmwarePlatform]:
    """Return the figures of the drone to fly, and its platform, known by its motors."""
    name = policy.drone if drone is None else drone
    try:
        figures = load_drone(name)
    except ValueError as error:
        if drone is not None:
            raise
        raise ValueError(f"{error}; name the folder of its drone with --drone") from None
    motors = figures.get("voltage2thrust")
    for known, platform in PLATFORMS.items():
        if motors is not None and np.array_equal(motors, load_drone(known)["voltage2thrust"]):
            return figures, platform
    names = ", ".join(PLATFORMS)
    raise ValueError(
        f"{shown(name)} has not the motors of a Crazyflie, expected {names}, or a drone's folder "
        "with voltage2thrust of one of them"
    )


def _widest(policy: Policy) -> int:
    return max(policy.network.n_in, *(layer.n_out for layer in policy.network.layers))


def _recurrent(policy: Policy) -> int:
    return max(policy.network.memory.size, 1)  # arrays of C are not empty


def _harmless(text: str) -> str:
    """Return a text without what ends comments, lines or literals of C."""
    return "".join(c if c.isalnum() or c in " .,:;-_()" else " " for c in text)


def _number(x: Any) -> str:
    """Return the shortest literal of C that is a number of single precision."""
    text = f"{np.float32(x)}"
    return f"{text}f" if "." in text or "e" in text else f"{text}.0f"


def _figures(policy: Policy, figures: dict[str, Any], platform: FirmwarePlatform) -> Iterator[str]:
    """Yield the lines of policy_figures.h."""
    observation = policy.observation
    farthest, fastest = observation.largest_errors
    yield "// Figures of a policy, written by crazyflow_ros."
    yield f"// {_harmless(policy.about)}"
    yield "#pragma once"
    numbers: dict[str, object] = {
        **{mode.upper(): i for i, mode in enumerate(Control)},
        "CONTROL": f"POLICY_{policy.action.control.upper()}",
        "NAME": f'"{_harmless(policy.drone)}"',
        "PLATFORM": platform.option,
        "FREQ": policy.freq,
        "PARTS": len(observation.parts),
        "FRAME": observation.frame_size,
        "OBSERVED": observation.size,
        "RECURRENT": _recurrent(policy),
        "LAYERS": len(policy.network.layers),
        "WIDEST": _widest(policy),
        "FARTHEST": f"{_number(farthest)}  // m, of the goal along an axis; 0 for no limit",
        "FASTEST": f"{_number(fastest)}  // m/s",
    }
    for i, x in enumerate(figures["rpm2thrust"]):
        numbers[f"THRUST_{i}"] = f"({_number(x)})  // N/RPM^{i}, of one rotor"
    for name, value in numbers.items():
        yield f"#define POLICY_{name} {value}"


def _array(name: str, values: Any, line: int = 8) -> Iterator[str]:
    flat = [_number(x) for x in np.ravel(values)]
    yield f"static const float {name}[{len(flat)}] = {{"
    for i in range(0, len(flat), line):
        yield f"  {', '.join(flat[i : i + line])},"
    yield "};"


def _weights(policy: Policy) -> Iterator[str]:
    """Yield the lines of policy_weights.h."""
    yield "// Weights of a policy, written by crazyflow_ros; included by policy.c alone."
    parts = ", ".join(part.upper() for part in policy.observation.parts)
    yield f"static const part_t parts[POLICY_PARTS] = {{{parts}}};"
    action = policy.action
    for holder, names in ((policy, ("mean", "std")), (action, ("offset", "scale"))):
        for name in names:
            yield from _array(name, getattr(holder, name))
    for name, array in layer_arrays(policy.network.layers).items():
        number, _, kind = name.partition(".")
        yield from _array(f"{kind}_{number}", array)
    yield "static const layer_t layers[POLICY_LAYERS] = {"
    for i, layer in enumerate(policy.network.layers):
        yield f"  {{{_layer(i, layer)}}},"
    yield "};"


def _layer(i: int, layer: Layer) -> str:
    units = layer.n_out - layer.kept
    sizes = f"{layer.n_in}, {units}, {layer.kept}"
    if isinstance(layer, Gru):
        names = ("input_weights", "input_bias", "hidden_weights", "hidden_bias", "initial")
        return f"{sizes}, IDENTITY, {', '.join(f'{name}_{i}' for name in names)}"
    assert isinstance(layer, Dense) and layer.activation in ACTIVATIONS
    return f"{sizes}, {layer.activation.upper()}, weights_{i}, bias_{i}, 0, 0, 0"


def main(words: Sequence[str] | None = None, program: str = "export-firmware") -> int:
    """Write a policy as C for the Crazyflie's firmware, which then flies it without a computer.

    Args:
        words: Words of the command line, by default those of the process.
        program: How it is called.

    Returns:
        Exit code: 0, or 1 if the policy cannot be read, or the firmware cannot fly it.
    """
    given = _parser(program).parse_args(words)
    try:
        policy = load(given.policy, given.drone)
        platform = write_app(policy, given.out, given.drone)
    except (ValueError, OSError, ModuleNotFoundError) as error:
        print(f"{program}: {in_words(error)}", file=sys.stderr)
        return 1
    sizes, out = sizes_of(policy), shown_path(given.out)
    print(
        f"{policy.freq} actions a second, {policy.action.control}; numbers: {sizes.flash} bytes of "
        f"{FLASH} of flash, {sizes.ram} of {RAM} of RAM; an action takes at least "
        f"{1e3 * sizes.seconds:.2f} of {1e3 * CALL:g} ms"
    )
    base = "CRAZYFLIE_BASE=<folder of crazyflie-firmware>"
    print(f"written: {out}\nbuild it: make -C {out} {base} {platform.name}_defconfig")
    print(f"          make -C {out} {base}")
    return 0


def _parser(program: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program,
        description="Write a policy as an out-of-tree controller of the Crazyflie's firmware: C "
        "with its weights, which builds its observation from the firmware's own estimate.",
        epilog="docs/guides/policies.md tells the way to the real drone.",
    )
    parser.add_argument("policy", help="file of the policy")
    parser.add_argument("--out", required=True, help="folder to write")
    parser.add_argument(
        "--drone",
        help="drone that flies it, a name or a drone's folder; default: that of the policy. "
        f"It needs the motors of {', '.join(PLATFORMS)}",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
