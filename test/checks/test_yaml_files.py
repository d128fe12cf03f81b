"""YAML files with anything in them: values, or one error that names the file and the place."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from crazyflow_ros.checks.plain_values import ParameterError
from crazyflow_ros.checks.yaml_files import load_yaml
from crazyflow_ros.ros.sensors import sensors_file
from crazyflow_ros.ros.simulation_interfaces import named_poses

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "\n".join(
    f"a{i + 1}: &a{i + 1} [{', '.join([f'*a{i}'] * 10)}]" for i in range(9)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"a: 2001-99-99", "line 1, column 4: 2001-99-99 is not a valid timestamp"),
        (b"a:\n - !!int x", "line 2, column 4: x is not a valid int"),
        (b"!!timestamp x", "line 1, column 1: x is not a valid timestamp"),
        (b"!!float []", "line 1, column 1: .*expected a scalar node"),
        (b"!!binary \xc3\xa9", "line 1, column 1: .*base64|line 1, column 1: .* binary"),
        (b"a: !!python/object:os.system x", "line 1, column 4: could not determine a constructor"),
        (b"[" * 20_000, "line 1, column 33: nested more than 32 deep"),
        (b"{a: " * 5_000, "nested more than 32 deep"),
        (b"- " * 5_000, "nested more than 32 deep"),
        (b"? " * 5_000, "nested more than 32 deep"),
        (BOMB.encode(), "line 5, column .*: more than 100000 values"),
        (b"&a [*a]", "line 1, column 5: a contains itself"),
        (b"&a {b: *a}", "line 1, column 8: a contains itself"),
        (b"*a", "line 1, column 1: found undefined alias"),
        (b"{[1]: 2}", "found unhashable key|unhashable"),
        (b"a: 1\na: 2", "line 2, column 1: a occurs twice"),
        (b"a: {b: 1, <<: 3}", "line 1, column 15: expected a mapping"),
        (b"a: 1\n---\nb: 2", "line 2, column 1: but found another document"),
        (b"\xff\xfe\x00", "is not UTF-8"),
        (b"a: \0", "special characters are not allowed"),
        (b"a: '", "line 1, column 5: found unexpected end of stream"),
        (b"1" * 5000, "line 1, column 1: 1+... .5000 characters. is not a valid int"),
        (b"x" * 300_000, "too large: 300000 bytes, expected at most 262144"),
    ],
)
def test_what_is_no_yaml_is_refused_with_file_and_place(
    text: bytes, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "file.yaml"
    path.write_bytes(text)
    with pytest.raises(ValueError, match=rf"{path}[:, ].*({message})") as refusal:
        load_yaml(path)
    assert len(str(refusal.value)) < 600 and "\n" not in str(refusal.value)


def test_path_that_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path, tmp_path / "fifo", "/dev/zero", tmp_path / "nothing", "~nobody.here/x"):
        with pytest.raises(ValueError, match=f"{path} cannot be read"):
            load_yaml(path)


def test_plain_files_mean_what_they_say(tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    text = (
        "base: &b {rate: 10, pos: [0, 0.5, 1e-3]}\ncf0: {<<: *b, rate: 20}\ncf1: *b\n2001-01-02: x"
    )
    path.write_text(text)
    assert load_yaml(path) == yaml.safe_load(text)
    path.write_text("")
    assert load_yaml(path) is None


PIECES = (
    *("cf0", "all", "a", "type", "imu", "lidar", "camera", "contact", "gyro", "pos", "rpy", "rate"),
    *("position", "yaw", "radius", "tags", "orientation", "1e400", ".nan", "-.inf", "0x7f", "~"),
    *("2001-01-01", "2001-99-99", "1:60:60", "1_0", "9" * 400, "-9223372036854775809", "true"),
    *("[0, 0, 1]", "[]", "{}", "[[1], 2]", "!!int x", "!!set {a, b}", "!!binary YQ==", "!!omap []"),
    *("[", "]", "{", "}", ": ", ", ", "- ", "\n", "\n  ", "&a ", "*a", "<<: ", "? ", "'", '"', "#"),
    *("\0", "\u2028", "é", "%YAML 1.1\n", "---", "...", "| ", "!", "@", "\t"),
)


ODD = (
    *(0, -1, 1, 3, 10**9, 10**400, 1e300, -1e-300, float("nan"), float("inf"), 0.5, None, True, ""),
    *("x", "cf0", "rgb", "\n", "x" * 5000, [], [1, 2, 3], [0.5, 2], [10**9] * 3, [[1]], {}, [None]),
)


def value(rng: random.Random, depth: int) -> Any:
    """Values by name."""
    if depth == 0 or rng.random() < 0.3:
        return rng.choice(ODD)
    names = (
        "std",
        "density",
        "bias",
        "position",
        "yaw",
        "radius",
        "orientation",
        "tags",
        "samples",
    )
    return {name: value(rng, depth - 1) for name in rng.sample(names, 3)}


def sensors(rng: random.Random) -> Any:
    """A file of sensors, with other things in some places."""
    kind = rng.choice(list(sensors_file.KINDS))
    fields = ("rate", "pos", "rpy", *sensors_file.KINDS[kind].fields)
    names = rng.sample(fields, min(len(fields), rng.randrange(3)))
    return {"cf0": {"a": {"type": kind} | {name: value(rng, 2) for name in names}}}


def poses(rng: random.Random) -> Any:
    """A file of poses, likewise."""
    if rng.random() < 0.1:
        return value(rng, 3)
    names = rng.sample(
        ("position", "yaw", "radius", "orientation", "tags", "description"), rng.randrange(3)
    )
    return {"a": {"position": [0, 0, 1]} | {name: value(rng, 1) for name in names}}


def read_sensors(path: Path) -> None:
    sensors_file.load(str(path), ["cf0", "cf1"], "cf2x_L250")


def read_poses(path: Path) -> None:
    named_poses.read_file(str(path))


@pytest.mark.parametrize("read", [read_sensors, read_poses])
def test_random_files_are_read_or_refused_by_parameter(
    read: Callable[[Path], None], tmp_path: Path
) -> None:
    rng, path = random.Random(16), tmp_path / "file.yaml"
    counts = {"read": 0, "refused": 0}
    for i in range(300):
        if i % 3 == 0:
            path.write_text("".join(rng.choices(PIECES, k=rng.randrange(1, 20))))
        else:
            content = (sensors if read is read_sensors else poses)(rng)
            path.write_text(yaml.safe_dump(content))
        try:
            read(path)
            counts["read"] += 1
        except ParameterError as error:
            counts["refused"] += 1
            if len(str(error)) > 1500:
                raise
    assert min(counts.values()) > 10, counts
