"""Makes the page of the public interface, docs/reference/api.md, from docstrings.

python -m docs.api writes it. Nothing is imported: what is optional need not be installed.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
PAGE = DOCS / "reference" / "api.md"
ROOMS = {
    "crazyflow_ros": "dynamics.md",
    "crazyflow_ros.sim": "../guides/pipelines.md",
    "crazyflow_ros.sim.functional": "transformations.md",
    "crazyflow_ros.sim.pipeline": "../guides/pipelines.md",
    "crazyflow_ros.sim.sensors": "../guides/scene.md",
    "crazyflow_ros.sim.visualize": "../guides/scene.md",
    "crazyflow_ros.drones": "dynamics.md",
    "crazyflow_ros.dynamics": "dynamics.md",
    "crazyflow_ros.dynamics.components": "../guides/extend.md",
    "crazyflow_ros.dynamics.first_principles": "dynamics.md",
    "crazyflow_ros.dynamics.so_rpy": "dynamics.md",
    "crazyflow_ros.dynamics.so_rpy_rotor": "dynamics.md",
    "crazyflow_ros.dynamics.so_rpy_rotor_drag": "dynamics.md",
    "crazyflow_ros.control": "dynamics.md",
    "crazyflow_ros.estimation": "../guides/estimation.md",
    "crazyflow_ros.flight_logs": "../guides/flight_logs.md",
    "crazyflow_ros.identification": "../guides/identification.md",
    "crazyflow_ros.policy": "../guides/policies.md",
    "crazyflow_ros.scene": "../guides/scene.md",
    "crazyflow_ros.scene.frames": "interface.md",
    "crazyflow_ros.sensors": "../guides/sensors.md",
    "crazyflow_ros.sensors.decks": "../guides/sensors.md",
    "crazyflow_ros.envs": "../guides/environments.md",
    "crazyflow_ros.learn": "../guides/training.md",
    "crazyflow_ros.client": "../tutorials/first_flight.md",
    "crazyflow_ros.client.figure_eight": "../guides/examples.md",
    "crazyflow_ros.flight": "../tutorials/first_flight.md",
    "crazyflow_ros.runtime": "../concepts/architecture.md",
    "crazyflow_ros.hosts": "../guides/scale.md",
    "crazyflow_ros.ros": "../guides/extend.md",
    "crazyflow_ros.doors": "../guides/extend.md",
    "crazyflow_ros.doors.ardupilot": "../guides/autopilots.md",
    "crazyflow_ros.doors.betaflight": "../guides/autopilots.md",
    "crazyflow_ros.doors.crazyflie_firmware": "../guides/autopilots.md",
    "crazyflow_ros.doors.px4": "../guides/autopilots.md",
    "crazyflow_ros.checks": "../guides/extend.md",
    "crazyflow_ros.crazyflie": "../guides/crazyflie.md",
    "crazyflow_ros.view": "../guides/visualise.md",
    "crazyflow_ros.compat.brax": "../guides/environments.md",
    "crazyflow_ros.compat.casadi": "../guides/control.md",
    "crazyflow_ros.compat.control": "../guides/control.md",
    "crazyflow_ros.compat.dynamics": "../guides/control.md",
    "crazyflow_ros.compat.gymnax": "../guides/environments.md",
    "crazyflow_ros.compat.pettingzoo": "../guides/environments.md",
    "crazyflow_ros.compat.rsl_rl": "../guides/environments.md",
    "crazyflow_ros.compat.stable_baselines": "../guides/environments.md",
}
"""The public modules, with the page that teaches each, as seen from `PAGE`."""

INTRODUCTION = """\
# Public interface

The names on this page, their arguments and the attributes that their docstrings describe are
public: what changes stands in the [changelog](../../CHANGELOG.md). Public are also the
[topics, services and actions](interface.md), the [parameters](parameters.md), the
[commands](commands.md), the extension points in [Extend](../guides/extend.md), and
the [modules that programs written for Crazyflow import](../guides/crazyflow.md#modules). All else
is private, and may move or change in any version.

Import a name from the module in whose table it stands. [api.py](../api.py) makes this page from the
docstrings, which say more: `help(Sim)` shows one.
"""
_WIDTH = 90  # characters of a signature
_BASES_WITHOUT_ARGUMENTS = {"StrEnum", "IntEnum", "Flag", "Protocol"}


class Definition(NamedTuple):
    """Where a name is defined."""

    module: str
    node: ast.stmt
    doc: str
    """What its docstring, or the comment beside it, begins with."""


@cache
def source(module: str) -> tuple[str, ast.Module]:
    """Text and tree of a module of the package."""
    path = ROOT.joinpath(*module.split("."))
    text = (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text()
    return text, ast.parse(text)


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Those of a module, also inside `if TYPE_CHECKING` and `with`."""
    for node in body:
        yield node
        if isinstance(node, (ast.If, ast.With)):
            yield from statements(node.body)


def public_names(module: str) -> list[str]:
    """The names in `__all__` of a module."""
    for node in source(module)[1].body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    raise ValueError(f"{module} has no __all__")


def definition(module: str, name: str) -> Definition | None:
    """Find where a name of a module is defined; None for one of another package."""
    text, tree = source(module)
    nodes = list(statements(tree.body))
    first, dot, rest = name.partition(".")
    for i, node in enumerate(nodes):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name == name:
            return Definition(module, node, first_sentence(ast.get_docstring(node) or ""))
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and name in targets(node):
            return Definition(module, node, about_value(text, node, nodes[i + 1 : i + 2]))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("crazyflow_ros"):
            for alias in node.names:
                if (alias.asname or alias.name) == first:
                    inside = (f"{node.module}.{first}", rest) if dot else (node.module, alias.name)
                    return definition(*inside)
        if isinstance(node, ast.Assign) and "__getattr__" in targets(node):
            modules = ast.literal_eval(node.value.args[1])  # type: ignore[attr-defined]  # of `lazy`
            if modules.get(name, "").startswith("crazyflow_ros."):
                return definition(modules[name], name)
    return None


def targets(node: ast.Assign | ast.AnnAssign) -> list[str]:
    """The names that a statement assigns to."""
    places = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [place.id for each in places for place in ast.walk(each) if isinstance(place, ast.Name)]


def about_value(text: str, node: ast.Assign | ast.AnnAssign, after: list[ast.stmt]) -> str:
    """What is written below a constant, or else beside it, or else its value."""
    for below in after:
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            return first_sentence(str(below.value.value))
    _, comment, said = text.splitlines()[node.end_lineno - 1].partition("  # ")  # type: ignore[operator]
    value = "" if node.value is None else f"`{ast.unparse(node.value)}`"
    return f"{value} {said}" if comment else value


def first_sentence(text: str) -> str:
    """Of a docstring, on one line."""
    return re.sub(r"\s+", " ", text.partition("\n\n")[0]).strip()


def signature(module: str, node: ast.stmt) -> str:
    """The arguments of a function or class, without types; empty for what has none."""
    if isinstance(node, ast.FunctionDef):
        return f"({shortened(arguments(node.args))})"
    if isinstance(node, ast.ClassDef) and (listed := arguments_of_class(module, node)) is not None:
        return f"({shortened(listed)})"
    return ""


def arguments(args: ast.arguments) -> list[str]:
    """Those of a function, without `self`."""
    plain = [arg.arg for arg in (*args.posonlyargs, *args.args)]
    defaults = [None] * (len(plain) - len(args.defaults)) + list(args.defaults)
    listed = [with_default(*pair) for pair in zip(plain, defaults, strict=True)]
    if args.vararg or args.kwonlyargs:
        listed.append("*" + (args.vararg.arg if args.vararg else ""))
    names = [arg.arg for arg in args.kwonlyargs]
    listed += [with_default(*pair) for pair in zip(names, args.kw_defaults, strict=True)]
    if args.kwarg:
        listed.append("**" + args.kwarg.arg)
    return listed[1:] if plain[:1] in (["self"], ["cls"]) else listed


def with_default(name: str, default: ast.expr | None) -> str:
    """An argument as it stands in a signature."""
    if not isinstance(default, ast.Call) or not ast.unparse(default.func).endswith("field"):
        return name if default is None else f"{name}={ast.unparse(default)}"
    given = {word.arg: ast.unparse(word.value) for word in default.keywords}
    if "default" in given:
        return f"{name}={given['default']}"
    return f"{name}=..." if "default_factory" in given else name


def arguments_of_class(module: str, node: ast.ClassDef) -> list[str] | None:
    """Those of `__init__`, or the fields of a dataclass, with those of its bases; None without."""
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and item.name == "__init__":
            return arguments(item.args)
    if _BASES_WITHOUT_ARGUMENTS & {ast.unparse(base) for base in node.bases}:
        return None
    fields: dict[str, str] = {}
    by_name: set[str] = set()  # what stands after the star
    for base in bases(module, node):
        listed = arguments_of_class(base.module, base.node) or []
        star = listed.index("*") if "*" in listed else len(listed)
        fields |= {arg.partition("=")[0]: arg for arg in listed if arg != "*"}
        by_name |= {arg.partition("=")[0] for arg in listed[star + 1 :]}
    all_by_name = any("kw_only=True" in ast.unparse(each) for each in node.decorator_list)
    for item in node.body if has_fields(module, node) else ():
        if isinstance(item, ast.AnnAssign):
            name, kind = ast.unparse(item.target), ast.unparse(item.annotation)
            value = "" if item.value is None else ast.unparse(item.value)
            all_by_name |= kind == "KW_ONLY"
            if "ClassVar" in kind or kind == "KW_ONLY" or "init=False" in value:
                continue
            fields[name] = with_default(name, item.value)
            if all_by_name or "kw_only=True" in value:
                by_name.add(name)
    if not fields:
        return None
    plain = [arg for name, arg in fields.items() if name not in by_name]
    named = [arg for name, arg in fields.items() if name in by_name]
    return [*plain, "*", *named] if named else plain


class Base(NamedTuple):
    """A base class of the package."""

    module: str
    node: ast.ClassDef


def bases(module: str, node: ast.ClassDef) -> Iterator[Base]:
    """Those of a class that are defined in the package."""
    for base in node.bases:
        found = definition(module, ast.unparse(base).partition("[")[0])
        if found is not None and isinstance(found.node, ast.ClassDef):
            yield Base(found.module, found.node)


def has_fields(module: str, node: ast.ClassDef) -> bool:
    """Whether the annotations of a class are arguments: of a dataclass, tuple or `Struct`."""
    if any("dataclass" in ast.unparse(each) for each in node.decorator_list):
        return True
    if node.name == "Struct" or "NamedTuple" in [ast.unparse(base) for base in node.bases]:
        return True
    return any(not each.node.decorator_list and has_fields(*each) for each in bases(module, node))


def shortened(listed: list[str]) -> str:
    """As many arguments as fit into a row."""
    kept = listed[:]
    while len(", ".join(kept)) > _WIDTH:
        del kept[-1]
    return ", ".join(kept if len(kept) == len(listed) else [*kept, "..."])


def imports(text: str) -> Iterator[tuple[str, str]]:
    """Module and name of each import from the package in a text; an empty name for a module."""
    for module, names in re.findall(
        r"^ *from (crazyflow_ros[\w.]*) import (\([^)]*\)|[^(\n]*)$", text, re.MULTILINE
    ):
        for name in re.sub(r"#.*|[()]", "", names).split(","):
            if name.strip():
                yield module, name.split()[0]
    for module in re.findall(r"^ *import (crazyflow_ros[\w.]*)", text, re.MULTILINE):
        yield module, ""


@cache
def lessons() -> dict[tuple[str, str], list[str]]:
    """The pages whose code imports a name, in the order of the index."""
    found: dict[tuple[str, str], list[str]] = {}
    for name in re.findall(r"\]\(([\w/]+\.md)\)", (DOCS / "index.md").read_text()):
        if (file := DOCS / name) != PAGE:
            for each in imports(file.read_text()):
                found.setdefault(each, []).append(os.path.relpath(file, PAGE.parent))
    return found


def title(page: str) -> str:
    """The heading of a page."""
    return (PAGE.parent / page).read_text().partition("\n")[0].removeprefix("# ")


def row(room: str, name: str) -> str:
    """The row of a name."""
    found = definition(room, name)
    if found is None:
        return f"| `{name}` | |"
    about = found.doc
    pages = lessons().get((room, name), [])
    if pages and ROOMS[room] not in pages:
        about += f" See [{title(pages[0])}]({pages[0]})."
    call = f"{name}{signature(found.module, found.node)}"
    return "| `{}` | {} |".format(*(cell.replace("|", r"\|") for cell in (call, about)))


def section(room: str) -> str:
    """Heading, purpose and table of a module."""
    about = first_sentence(ast.get_docstring(source(room)[1]) or "")
    lesson = f"{about} See [{title(ROOMS[room])}]({ROOMS[room]})."
    rows = [row(room, name) for name in public_names(room)]
    return "\n".join([f"## {room}\n\n{lesson}\n", "| name | |", "|---|---|", *rows])


def page() -> str:
    """The whole page."""
    return INTRODUCTION + "".join(f"\n{section(room)}\n" for room in ROOMS)


if __name__ == "__main__":
    PAGE.write_text(page())
