"""The bounds of what this package needs: around what is tested, and the same wherever they are."""

from __future__ import annotations

import re
from importlib.metadata import version

import pytest
from packaging.requirements import Requirement
from paths import ROOT

from crazyflow_ros.extras import EXTRAS, LARGE, NEEDED


def needed() -> dict[str, Requirement]:
    """What setup.py reads, and what the extras of `make setup` add."""
    extras = (extra for name, extra in EXTRAS.items() if name not in LARGE)
    texts = [*NEEDED.values(), *(text for extra in extras for text in extra.requirements)]
    return {requirement.name: requirement for requirement in map(Requirement, texts)}


@pytest.mark.parametrize("name", ["jax", "jaxlib", "mujoco", "mujoco-mjx"])
def test_versions_are_bounded_below_and_above(name: str) -> None:
    operators = {bound.operator for bound in needed()[name].specifier}
    assert operators == {">=", "<"}


def test_what_is_installed_and_what_is_pinned_are_within_the_bounds() -> None:
    pins = dict(re.findall(r"^([\w-]+)==(.+)$", (ROOT / "constraints.txt").read_text(), re.M))
    for name, requirement in needed().items():
        assert requirement.specifier.contains(version(name)), requirement
        assert requirement.specifier.contains(pins[name]), requirement


@pytest.mark.parametrize("page", ["README.md", "docs/guides/ros2_control.md"])
def test_pages_tell_bounds_within_these(page: str) -> None:
    quoted = re.findall(r'"((?:jax|mujoco)[^" ]*[=<>][^" ]*)"', (ROOT / page).read_text())
    told = {requirement.name: requirement for requirement in map(Requirement, quoted)}
    assert told.keys() == {"jax", "mujoco"}
    bounds, pins = needed(), ("0.8.3", "0.9", "0.9.2", "0.10.2", "0.11", "3.16.9", "3.17.0", "3.18")
    for name, requirement in told.items():
        for pin in pins:
            assert requirement.specifier.contains(pin) == bounds[name].specifier.contains(pin)
