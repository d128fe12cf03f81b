"""Additions of other packages by entry points: features always, extensions on request."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any

from crazyflow_ros.checks.entry_points import found, load, names, package_of
from crazyflow_ros.checks.plain_values import ParameterError, declarations, from_values, values_of
from crazyflow_ros.ros.parameters.declaration import ParameterNode, declare
from crazyflow_ros.ros.parameters.node_parameters import Parameters
from crazyflow_ros.runtime import Extension, SimulationConfig
from crazyflow_ros.runtime.door_settings import GROUP as DOORS
from crazyflow_ros.runtime.extension import GROUP as EXTENSIONS

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host

_FEATURES = "crazyflow_ros.features"

PREFIXES = tuple(f"{name}." for group in (_FEATURES, DOORS, EXTENSIONS) for name in names(group))
"""Prefixes of the parameters of doors, features and extensions."""


def asked_for(given: Iterable[str], own: Collection[str]) -> dict[str, type[Extension]]:
    """Return the extensions, by name, that parameters ask for.

    Args:
        given: Names of parameters.
        own: Those of the node itself, which ask for none.

    Raises:
        ParameterError: An extension cannot be loaded.
    """
    extensions = {}
    others = sorted(set(given).difference(own))
    for name in names(EXTENSIONS):
        asking = next((other for other in others if other.startswith(f"{name}.")), None)
        if asking is not None:
            rule = "a dataclass that derives from runtime.Extension"
            try:
                extensions[name] = load(EXTENSIONS, name, "extension", rule, _is_extension)
            except ValueError as error:
                raise ParameterError(asking, str(error)) from None
    return extensions


def _is_extension(found: Any) -> bool:
    return isinstance(found, type) and is_dataclass(found) and issubclass(found, Extension)


def declared_extensions(node: ParameterNode, more: Iterable[str] = ()) -> dict[str, Extension]:
    """Declare the parameters of all extensions that are asked for, and read them.

    Args:
        node: The node, on which its own parameters are declared.
        more: Names of further parameters that ask for extensions.

    Raises:
        ParameterError: An extension cannot be loaded, or a value is not allowed.
    """
    found = asked_for([*node.get_parameters_by_prefix(""), *more], node.declared)
    return {name: declare(node, cls, prefix=f"{name}.") for name, cls in found.items()}


def all_values(parameters: Parameters, extensions: Mapping[str, Extension]) -> dict[str, Any]:
    """Return the parameters of a node and of its extensions by name."""
    values = values_of(parameters)
    for name, extension in extensions.items():
        values |= values_of(extension, f"{name}.")
    return values


def from_all_values(values: Mapping[str, Any]) -> tuple[Parameters, dict[str, Extension]]:
    """Return the parameters of a node, and its extensions by name, the inverse of `all_values`.

    Raises:
        ParameterError: A value is missing, unknown or not allowed, or an extension is not
            installed.
    """
    own = {declaration.name for declaration in declarations(Parameters)}
    extensions, rest = dict[str, Extension](), dict(values)
    for name, cls in asked_for(values, own).items():
        prefix, theirs = f"{name}.", {}
        for full, value in values.items():
            if full.startswith(prefix):
                theirs[full.removeprefix(prefix)] = value
                if full not in own:
                    del rest[full]
        extensions[name] = from_values(cls, theirs)
    return from_values(Parameters, rest), extensions


def configured(
    config: SimulationConfig, parameters: Parameters, extensions: Mapping[str, Extension]
) -> SimulationConfig:
    """Return the configuration of a simulation with what its extensions need.

    Raises:
        ValueError: Two parameters do not go together; the message names one of them.
    """
    values = all_values(parameters, extensions)
    for extension in extensions.values():
        config = extension.configured(config, values)
    return config


def add_external_features(host: Host) -> None:
    """Add the features of all installed packages.

    A broken feature is skipped with a warning, because nobody has asked for it explicitly.

    Raises:
        ParameterError: A feature refuses a parameter that it was given.
    """
    for entry in found(_FEATURES):
        try:
            entry.load()(host)
        except ParameterError:
            raise
        except Exception as error:
            cause = f"{type(error).__name__}: {error}"
            host.log.error(f"the feature {entry.name} of {package_of(entry)} is off: {cause}")
