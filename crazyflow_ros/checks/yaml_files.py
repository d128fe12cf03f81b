"""YAML files from untrusted sources: plain values, or one error with file and position."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from crazyflow_ros.checks.limits import read_text, shown

_MAX_BYTES = 256 * 1024
_MAX_DEPTH = 32
_MAX_NODES = 100_000
"""Maximum number of values in a file, including those that aliases repeat."""


class _Loader(yaml.SafeLoader):  # type: ignore[misc]  # PyYAML has no types
    """Loads plain values only. Refuses duplicate keys and unbounded growth."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = self._n_nodes = 0
        self._sizes: dict[str, int] = {}  # of anchored nodes, in nodes

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Compose a node within limits."""
        event = self.peek_event()
        before = self._n_nodes
        if isinstance(event, yaml.AliasEvent):
            self._count(self._sizes.get(event.anchor, 1), event)
            if event.anchor in self.anchors and event.anchor not in self._sizes:
                raise _error(f"{shown(event.anchor)} contains itself", event)
        else:
            self._count(1, event)
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise _error(f"nested more than {_MAX_DEPTH} deep", event)
        node: yaml.Node | None = super().compose_node(parent, index)
        self._depth -= 1
        if not isinstance(event, yaml.AliasEvent) and event.anchor is not None:
            self._sizes[event.anchor] = self._n_nodes - before
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Construct a value, with a uniform error for constructors that raise arbitrary ones."""
        try:
            return super().construct_object(node, deep)
        except (yaml.YAMLError, RecursionError):
            raise
        except Exception as error:
            kind = node.tag.rpartition(":")[2]
            raise _error(
                f"{shown(node.value)} is not a valid {kind} ({shown(str(error))})", node
            ) from None

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Construct a mapping without duplicate keys."""
        seen: set[str] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                raise _error(f"{shown(key.value)} occurs twice", key)
            seen.add(key.value)
        return super().construct_mapping(node, deep)

    def _count(self, nodes: int, event: yaml.Event) -> None:
        self._n_nodes += nodes
        if self._n_nodes > _MAX_NODES:
            raise _error(f"more than {_MAX_NODES} values", event)


def load_yaml(path: str | Path) -> Any:
    """Return the content of a YAML file, None if it is empty.

    Args:
        path: Path of the file; `~` is the home folder.

    Raises:
        ValueError: It cannot be read, is too large, or is not YAML of plain values; the message
            names the file, and line and column if known.
    """
    try:
        text = read_text(Path(path).expanduser(), _MAX_BYTES)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    except (RuntimeError, ValueError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    return parse_yaml(text, str(path))


def parse_yaml(text: str, name: str) -> Any:
    """Return the content of YAML text, None if it is empty.

    Args:
        text: The text.
        name: Where it comes from, for messages.

    Raises:
        ValueError: It is not YAML of plain values; the message has the name, and line and column if
            known.
    """
    loader = None
    try:
        loader = _Loader(text)
        return loader.get_single_data()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ValueError(f"{name}{where}: {error.problem or error.context}") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"{name}: {' '.join(str(error).split())}") from None
    finally:
        if loader is not None:
            loader.dispose()


def leaves(tree: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of a tree with the names that their groups give them, such as `a.b`."""
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _error(problem: str, place: yaml.Node | yaml.Event) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, problem, place.start_mark)
