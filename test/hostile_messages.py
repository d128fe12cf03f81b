"""Random messages, and files that requests can name: part of `make hostile`."""

from __future__ import annotations

import importlib
import math
import os
import random
import string
from pathlib import Path
from typing import Any

from hostile_policies import damaged
from paths import ROOT
from rosidl_parser.definition import (
    AbstractNestedType,
    AbstractString,
    AbstractWString,
    Array,
    BasicType,
    NamespacedType,
)

_INTEGERS = {
    f"{sign}int{bits}": ((0, 2**bits - 1) if sign else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1))
    for sign in ("", "u")
    for bits in (8, 16, 32, 64)
} | {"byte": (0, 255), "octet": (0, 255), "char": (0, 255)}
_WILD_FLOATS = (math.nan, math.inf, -math.inf, 1.7e308, -1e300, 1e12, -1e9, 1e-320, 0.0, -0.0)


class Inputs:
    """Random messages.

    Args:
        rng: Random numbers.
        texts: Those that mean something to the simulator, by what is in the name of the field.
    """

    def __init__(self, rng: random.Random, texts: dict[str, list[str]]) -> None:
        self._rng, self._texts = rng, texts

    def fill(self, message: Any, wild: float) -> Any:
        """Give all fields random values, each a wild one with some probability."""
        for field, kind in zip(message.get_fields_and_field_types(), message.SLOT_TYPES):
            setattr(message, field, self._value(field, kind, getattr(message, field), wild))
        return message

    def element(self, field: str, kind: Any) -> Any:
        """An ordinary element of a list."""
        return self._value(field, kind, _element(kind), 0.0)

    def _value(self, field: str, kind: Any, present: Any, wild: float) -> Any:
        rng = self._rng
        if isinstance(kind, BasicType):
            return self._number(kind.typename, wild)
        if isinstance(kind, AbstractString | AbstractWString):
            return self._text(field, wild)
        if isinstance(kind, NamespacedType):
            return self.fill(present, wild)
        assert isinstance(kind, AbstractNestedType)
        if isinstance(kind, Array):
            n = kind.size
        else:
            n = rng.choice((0, 1, 1, 2, 3, 4, 13, 16))
            if rng.random() < wild:
                n = rng.choice((17, 300, 2000 if isinstance(kind.value_type, BasicType) else 50))
        of = kind.value_type
        return [self._value(field, of, _element(of), wild) for _ in range(n)]

    def _number(self, typename: str, wild: float) -> Any:
        rng = self._rng
        if typename == "boolean":
            return rng.random() < 0.5
        if typename in ("float", "double"):
            if rng.random() < wild:
                value = rng.choice(_WILD_FLOATS)
                return math.inf if typename == "float" and abs(value) > 1e38 else value
            return rng.choice((0.0, 1.0, rng.gauss(0.0, 1.0)))
        low, high = _INTEGERS[typename]
        value = rng.choice((low, high, high // 2)) if rng.random() < wild else rng.choice(range(4))
        return bytes([value]) if typename in ("byte", "octet") else value

    def _text(self, field: str, wild: float) -> str:
        rng = self._rng
        if rng.random() >= wild:
            fitting = [texts for part, texts in self._texts.items() if part in field]
            return rng.choice((fitting or list(self._texts.values()))[0])
        return rng.choice(
            (
                "",
                "\0",
                "\n\x1b[31m",
                "é😀",
                "../../..",
                "/dev/zero",
                "file:///dev/zero",
                "(" * 3000,
                "(" * 30_000,
                "((((a{1,255}){1,255}){1,255}){1,255})",
                "a" * 20_000,
                "<" * 1000,
                "".join(rng.choices(string.printable, k=rng.randrange(1, 40))),
            )
        )


def type_of(name: str) -> Any:
    """A type of the ROS interface, such as geometry_msgs/msg/Point."""
    package, folder, last = name.split("/")
    return getattr(importlib.import_module(f"{package}.{folder}"), last)


def _element(kind: Any) -> Any:
    """What an element of a list is filled from."""
    if isinstance(kind, NamespacedType):
        return type_of("/".join(kind.namespaced_name()))()
    return None


class Files:
    """Files of all kinds that a request can name, and what is no file."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self._folder, self._rng = folder, rng
        self.checkpoint = folder / "good.checkpoint"
        os.mkfifo(folder / "fifo")
        (folder / "folder").mkdir()
        (folder / "empty").touch()
        (folder / "dangling").symlink_to(folder / "nowhere")
        with (folder / "huge.xml").open("wb") as file:
            file.truncate(4 << 30)
        (folder / "many.xml").write_text(
            "<mujoco><worldbody><replicate count='1000000'><geom size='1'/></replicate>"
            "</worldbody></mujoco>"
        )
        self._objects = sorted((ROOT / "urdf_mjcf" / "objects").iterdir())
        self.objects = list(map(str, self._objects))
        self._scenes = [ROOT / "urdf_mjcf" / f"{name}.xml" for name in ("floor", "room")]
        self.paths = [str(folder / n) for n in ("fifo", "folder", "empty", "dangling", "nowhere")]
        self.sources = [
            *self.paths,
            *map(str, self._objects + self._scenes),
            str(folder / "huge.xml"),
            str(folder / "many.xml"),
            str(folder / "damaged"),
        ]

    def damage(self) -> None:
        """Write another damaged file, made from a good one."""
        source = self._rng.choice([*self._objects, *self._scenes, self.checkpoint])
        content = source.read_bytes() if source.is_file() else b"?"
        (self._folder / "damaged").write_bytes(damaged(content, self._rng))
