"""Compiled functions called without JAX: the bits that JAX gets, or JAX."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.stages import Compiled
from jax_cache import without_jax_cache

from crazyflow_ros.xla import machine_code, on_device
from crazyflow_ros.xla.code_description import CodeDescription
from crazyflow_ros.xla.compiled_files import CompiledFiles
from crazyflow_ros.xla.machine_code import MachineCode, described
from crazyflow_ros.xla.messages import BufferMessage
from crazyflow_ros.xla.object_code import CannotLoad, ObjectCode
from crazyflow_ros.xla.on_device import copying

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64",
    reason="elsewhere, JAX calls all compiled functions",
)

X = np.linspace(-3e-38, 3e-38, 1000, dtype=np.float32)  # some of the products are denormal
Y = np.random.default_rng(0).normal(size=1000).astype(np.float32)


def compute(x: jax.Array, y: jax.Array) -> dict[str, Any]:
    return {
        "product": x * y,
        "sine": jnp.sin(y),  # of the C library, or XLA's own
        "power": jnp.exp(y) ** 1.5,
        "greater": x > y,
        "sum": y.sum(),
        "count": jnp.round(y).astype(jnp.int32),
        "table": jnp.array([3, -4, 5], jnp.int32)[(y > 0).astype(int)],
    }


def compiled(fn: Callable[..., Any], *args: Any, **options: Any) -> Compiled:
    with without_jax_cache():
        return jax.jit(fn, **options).lower(*args).compile()


@pytest.fixture(scope="module")
def function() -> Compiled:
    return compiled(compute, X, Y)


def test_results_are_those_of_jax_to_the_bit(function: Compiled) -> None:
    code = MachineCode(function)
    for x, y in ((X, Y), (Y, X), (2 * X, 0 * Y)):
        code.give([x, y])
        code()
        for own, result in zip(code.results, jax.tree.leaves(function(x, y)), strict=True):
            assert own.tobytes() == np.asarray(result).tobytes()
            assert (own.shape, own.dtype) == (result.shape, result.dtype)


def test_numbers_of_python_are_not_flushed_afterwards(function: Compiled) -> None:
    code = MachineCode(function)
    code.give([X, Y])
    code()
    assert not np.any(code.results[2][np.abs(code.results[2]) < np.finfo(np.float32).tiny])
    assert np.float32(1e-38) * np.float32(0.3) > 0


def test_a_donated_argument_is_the_result(function: Compiled) -> None:
    fn = compiled(lambda x, y: (x + y, y.sum()), X, Y, donate_argnums=0)
    code = MachineCode(fn)
    assert code.results[0] is code.arguments[0]
    code.give([0 * X, jnp.asarray(Y)])
    for count in (1, 2, 3):
        code.give([code.results[0], jnp.asarray(Y)])
        code()
        np.testing.assert_allclose(code.results[0], count * Y, rtol=1e-6)
    code.give([0 * X])
    code()
    np.testing.assert_array_equal(code.results[0], Y)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: jnp.sort(x),
        lambda x: x.reshape(20, 50) @ x.reshape(50, 20),
        lambda x: jax.random.key(0),
        lambda x: jax.pure_callback(np.sin, x, x),
    ],
    ids=["sort", "product", "key", "callback"],
)
def test_other_functions_are_left_to_jax(fn: Callable[..., Any]) -> None:
    assert MachineCode.tried(compiled(fn, Y), [Y]) is None


def test_so_are_those_of_unknown_versions(
    function: Compiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MachineCode.tried(function, [X, Y]) is not None
    monkeypatch.setattr(machine_code, "_JAXLIB", "99.0.0")
    assert MachineCode.tried(function, [X, Y]) is None


def test_other_results_are_told_and_not_used(
    function: Compiled, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(MachineCode, "__call__", lambda self: None)
    assert MachineCode.tried(function, [X, Y]) is None
    assert "gives other results" in caplog.text


def test_a_damaged_description_is_refused(function: Compiled) -> None:
    executable: Any = function.runtime_executable()
    serialized = executable.serialize()
    whole = CodeDescription.of(serialized)
    assert whole == described(function)
    for end in np.linspace(0, len(serialized) - 1, 40, dtype=int):
        with pytest.raises(CannotLoad):
            CodeDescription.of(serialized[:end])
    for content in whole.object_files:
        with pytest.raises(CannotLoad):
            ObjectCode([content[: len(content) // 2]])
        with pytest.raises(CannotLoad, match="another kind of machine"):
            ObjectCode([content[:18] + b"\xb7\x00" + content[20:]])  # 64-bit ARM


@pytest.mark.parametrize("content", [b"\x0a", b"\x0a\x05abc", b"\x0b", b"\x80", b"\x0d\x00"])
def test_what_is_no_message_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"a message|its message|unknown kind"):
        BufferMessage(content)


def test_a_missing_function_is_refused(function: Compiled) -> None:
    with pytest.raises(CannotLoad, match="'nothing' is missing"):
        ObjectCode(described(function).object_files).sequence([("nothing", 0)])


def test_kept_functions_are_called_directly_by_the_next_process(tmp_path: Path) -> None:
    told: list[str] = []
    programs = [
        CompiledFiles(tmp_path, told.append).compiled(lambda: compute, [X, Y], "compute")
        for _ in range(2)
    ]
    assert not told
    for program in programs:
        assert program.description is not None
        assert MachineCode.tried(program.function, [X, Y], program.description) is not None


@pytest.mark.parametrize("by_jaxlib", [True, False])
def test_copies_are_independent(by_jaxlib: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not by_jaxlib:
        monkeypatch.setattr(on_device, "_put", lambda: None)
    memory, device = np.arange(6, dtype=np.float32).reshape(1, 2, 3), jax.local_devices()[0]
    for like in (jax.device_put(X), jax.device_put(X, device)):
        copy = copying(memory, like)()
        memory += 1
        np.testing.assert_array_equal(copy, memory - 1)
        assert isinstance(copy, jax.Array) and copy.committed == like.committed
        assert copy.sharding == like.sharding
