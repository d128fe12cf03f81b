"""The public interface: its page, its names, and that documents and examples keep to it."""

from __future__ import annotations

import ast
import inspect
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from paths import ROOT

DOCS = ROOT / "docs"
api = import_module("docs.api")

EXTRAS = {
    *("gymnasium", "optax", "viser", "casadi", "pettingzoo", "rclpy"),
    *("stable_baselines3", "brax", "gymnax", "rsl_rl"),
}
GROUPS = {
    f"crazyflow_ros.{group}"
    for group in (
        *(
            "apps",
            "commands",
            "controllers",
            "doors",
            "dynamics",
            "estimators",
            "extensions",
            "features",
        ),
        *("forces", "integrators"),
    )
}
"""Of entry points."""
SHORT_CUTS = {"crazyflow_ros"}
"""Modules that repeat names of others."""
TEXTS = [page for page in [*DOCS.rglob("*.md"), ROOT / "README.md"] if page != api.PAGE]
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))


@cache
def promised() -> dict[str, list[str]]:
    """Modules with the names that programs written for Crazyflow import, from the page on it."""
    rows = re.findall(r"^\| `(crazyflow_ros[\w.]*)` \| (.+) \|$", text_of("crazyflow.md"), re.M)
    return {module: re.findall(r"`(\w+)`", names) for module, names in rows}


def text_of(page: str) -> str:
    (file,) = DOCS.rglob(page)
    return file.read_text()


def public(module: str) -> set[str]:
    names = set(api.public_names(module)) if module in api.ROOMS else set[str]()
    return names | set(promised().get(module, ()))


def is_public(module: str, name: str) -> bool:
    inside = f"{module}.{name}"
    return name in public(module) or inside in api.ROOMS or inside in promised()


def imported(module: str) -> ModuleType:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name not in EXTRAS:
            raise
        pytest.skip(f"{error.name} is not installed")


def test_the_page_is_what_the_docstrings_say() -> None:
    assert api.PAGE.read_text() == api.page(), "run python -m docs.api"


@pytest.mark.parametrize("room", api.ROOMS)
def test_public_names_exist_with_the_arguments_of_the_page(room: str) -> None:
    module = imported(room)
    for name in api.public_names(room):
        try:
            value = getattr(module, name)
        except ModuleNotFoundError as error:
            if error.name not in EXTRAS:
                raise
            continue
        assert not isinstance(value, ModuleType), f"{room}.{name} is a module, too"
        found = api.definition(room, name)
        assert found is not None and found.doc, f"{room}.{name} has no docstring"
        if (listed := listed_arguments(found)) is not None:
            assert listed == list(inspect.signature(value).parameters), f"{room}.{name}"
    with pytest.raises(AttributeError, match=f"module '{room}' has no attribute 'nothing'"):
        module.nothing  # noqa: B018


def listed_arguments(found: Any) -> list[str] | None:
    """Names of the arguments that the page shows, if it showed all."""
    if isinstance(found.node, ast.FunctionDef):
        listed = api.arguments(found.node.args)
    elif isinstance(found.node, ast.ClassDef):
        listed = api.arguments_of_class(found.module, found.node)
    else:
        return None
    return listed and [arg.partition("=")[0].lstrip("*") for arg in listed if arg != "*"]


def test_a_name_has_one_public_home() -> None:
    homes = defaultdict(list)
    for room in api.ROOMS.keys() - SHORT_CUTS:
        for name in api.public_names(room):
            found = api.definition(room, name)
            homes[found.module, name].append(room)
    assert [rooms for rooms in homes.values() if len(rooms) > 1] == []


@pytest.mark.parametrize("module", promised())
def test_modules_that_programs_for_crazyflow_import_have_their_names(module: str) -> None:
    found = imported(module)
    assert [name for name in promised()[module] if not hasattr(found, name)] == []


@pytest.mark.parametrize("name", ["SHORTEST", "FlightPath", "plan_flight"])
def test_public_names_import_from_where_they_were_with_a_warning(name: str) -> None:
    from crazyflow_ros import demo
    from crazyflow_ros.client import figure_eight

    new = f"crazyflow_ros.client.figure_eight.{name}"
    with pytest.warns(
        DeprecationWarning, match=f"crazyflow_ros.demo.{name} is now {new}"
    ) as warned:
        found = getattr(demo, name)
    assert found is getattr(figure_eight, name) and warned[0].filename == __file__
    with pytest.raises(ImportError):
        from crazyflow_ros.demo import nothing  # noqa: F401


def deep(text: str) -> Iterator[str]:
    """What a text imports that is not public."""
    for module, name in api.imports(text):
        known = module in api.ROOMS or module in promised()
        if not (is_public(module, name) if name else known):
            yield f"{module} {name}".strip()


@pytest.mark.parametrize("text", [*TEXTS, *EXAMPLES], ids=lambda path: path.name)
def test_documents_and_examples_import_public_names(text: Path) -> None:
    assert list(deep(text.read_text())) == []


@pytest.mark.parametrize("page", TEXTS, ids=lambda path: path.name)
def test_documents_mention_public_names(page: Path) -> None:
    text = re.sub(r"^ *(?:from|import) .*$", "", page.read_text(), flags=re.M)
    text = re.sub(r"-m crazyflow_ros[\w.]*", "", text)  # programs
    for dotted in re.findall(r"(?<![\w/.])crazyflow_ros(?:\.\w+)+", text):
        if dotted.startswith("crazyflow_ros.compat.crazyflow"):  # Crazyflow's names
            continue
        if dotted not in api.ROOMS.keys() | promised().keys() | GROUPS:
            assert is_public(*dotted.rsplit(".", 1)), dotted


def test_a_deep_import_is_found() -> None:
    text = """
from crazyflow_ros.sim import (
    Sim,  # a comment
    functional,
)
    from crazyflow_ros.sim.stages import derivative
import crazyflow_ros.engine
from crazyflow_ros.sim import Sim, leaves
"""
    assert list(deep(text)) == [
        "crazyflow_ros.sim.stages derivative",
        "crazyflow_ros.sim leaves",
        "crazyflow_ros.engine",
    ]
