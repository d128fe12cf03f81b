"""What others send is built in a process of its own, and only as large as the limits."""

import os
import select
import signal
import struct
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import mujoco
import pytest
from description_corpus import MESH, png, stl, world, written

from crazyflow_ros.checks import limits
from crazyflow_ros.scene.description import Sandbox, Size, read, read_text
from crazyflow_ros.scene.description.sandbox_child import _answer

GEOM = '<geom size=".1"/>'
FLEX = '<flexcomp type="{}" dim="3" name="f{}" {} spacing=".1 .1 .1" mass="1" radius=".01"/>'
TEXTURE = '<asset><texture name="t" type="2d" builtin="flat" width="{0}" height="{0}"/></asset>'


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    sandbox = Sandbox()
    yield sandbox
    sandbox.close()


def test_it_counts_what_mujoco_makes_of_a_description(sandbox: Sandbox, tmp_path: Path) -> None:
    files = {
        "main.xml": world(
            f'{MESH.format("t")}<replicate count="7"><body>{GEOM}{GEOM}</body></replicate>',
            '<asset><mesh file="t.stl"/><texture name="p" type="2d" file="p.png"/></asset>',
        ),
        "t.stl": stl(),
        "p.png": png(30, 20),
    }
    path = written(files, tmp_path)
    model = mujoco.MjModel.from_xml_path(str(path))
    size = sandbox.check(read(path, limited=True))
    assert size._replace(model_bytes=0) == Size.of(model)._replace(model_bytes=0)
    # World and floor, light, mesh and its geom, texture, 7 bodies with 2 geoms each.
    assert size.elements == 6 + 7 * 3
    # Apart from the paths of the files, which it keeps as text.
    assert size.model_bytes == pytest.approx(mujoco.mj_sizeModel(model), abs=1000)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (world(FLEX.format("grid", 0, "")), "2000 bodies"),  # 10 x 10 x 10 without a count
        (world(FLEX.format("box", 0, 'count="12 12 12"')), "2000 bodies"),
        (world(f"<replicate count='+4096'>{GEOM}</replicate>"), "2000 bodies"),
        (world(f"<replicate count='0x1000'>{GEOM}</replicate>"), "bad format in attribute 'count'"),
        (
            world(f"<replicate count='60'><replicate count='60'>{GEOM}</replicate></replicate>"),
            "2000 bodies",
        ),
        (world(GEOM * 2500), "2000 bodies"),
        (world(GEOM, "<size nuser_geom='10000000'/>"), "bytes|memory"),
        (world("", "<size nuserdata='1000000000'/>"), "bytes of state|memory"),
        (world("", "<size memory='900M'/>"), "bytes of state"),
        (world("", "<size memory='1E'/>"), "bytes of state|memory"),
        (
            world("", TEXTURE.format(8000)),
            "bytes of shapes and textures",
        ),
        (
            world("", TEXTURE.format(900_000)),
            "memory|larger",
        ),
        (
            world("", '<asset><hfield name="h" nrow="9000" ncol="9000" size="1 1 1 1"/></asset>'),
            "bytes|memory|unknown exception",  # as MuJoCo words it now and then
        ),
        (world("", "<visual><global offwidth='100000'/></visual>"), "8192 pixels"),
        (world("", "<visual><quality shadowsize='65536'/></visual>"), "8192 pixels"),
    ],
)
def test_what_is_larger_than_it_looks_is_refused(sandbox: Sandbox, text: str, why: str) -> None:
    description = read_text(text, limited=True)
    for _ in range(2):  # also when it is known already
        with pytest.raises(ValueError, match=why):
            sandbox.check(description)


def test_what_was_built_before_leaves_its_memory_to_what_comes(tmp_path: Path) -> None:
    """MuJoCo's threads for meshes and textures reserve none of it for good."""
    sandbox = Sandbox()
    try:
        sandbox.check(read_text(world(GEOM), limited=True))
        assert sandbox._process is not None
        before = reserved(sandbox._process.pid)
        names = [f"m{i}" for i in range(5)]
        meshes = "".join(f'<mesh name="{name}" file="t.stl"/>' for name in names)
        shown = "".join(map(MESH.format, names))
        files = {"main.xml": world(shown, f"<asset>{meshes}</asset>"), "t.stl": stl()}
        sandbox.check(read(written(files, tmp_path), limited=True))
        assert reserved(sandbox._process.pid) - before < limits.SANDBOX_BYTES // 32
    finally:
        sandbox.close()


def reserved(pid: int) -> int:
    """Address space that a process cannot use yet, as of the C library for a thread [bytes].

    The stacks of threads that have ended, of which it keeps a few, are not among it.
    """
    lines = [line.split() for line in Path(f"/proc/{pid}/maps").read_text().splitlines()]
    ranges = [line[0].split("-") for line in lines if line[1] == "---p"]
    return sum(int(end, 16) - int(begin, 16) for begin, end in ranges)


def test_a_picture_counts_as_what_it_inflates_to(sandbox: Sandbox, tmp_path: Path) -> None:
    """A picture of one pixel, of which MuJoCo's decoder would make gigabytes."""
    packer = zlib.compressobj(9)
    head = packer.compress(b"") + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(bytes(1 << 24)) + packer.flush(zlib.Z_FULL_FLUSH)
    inflated = head + 90 * block + packer.flush()
    picture = png(1, 1)
    start, end = picture.index(b"IDAT") - 4, picture.index(b"IEND") - 4
    chunk = struct.pack(">I", len(inflated)) + b"IDAT" + inflated
    chunk += struct.pack(">I", zlib.crc32(b"IDAT" + inflated))
    files = {
        "main.xml": world("", '<asset><texture name="t" type="2d" file="p.png"/></asset>'),
        "p.png": picture[:start] + chunk + picture[end:],
    }
    assert len(files["p.png"]) < limits.ASSET_BYTES // 8
    with pytest.raises(ValueError, match=r"memory allocation failed|must not"):
        sandbox.check(read(written(files, tmp_path), limited=True))


def test_the_same_is_built_only_once(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    description = read_text(world(GEOM * 3), limited=True)
    size = sandbox.check(description)
    monkeypatch.setattr(sandbox, "_started", lambda: pytest.fail("built again"))
    assert sandbox.check(read_text(world(GEOM * 3), limited=True)) == size


def test_what_takes_too_long_is_killed_and_the_next_one_built(monkeypatch) -> None:
    monkeypatch.setattr(limits, "SANDBOX_SECONDS", 0.5)
    sandbox = Sandbox()
    many = "".join(FLEX.format("grid", i, "") for i in range(60))
    try:
        with pytest.raises(ValueError, match=r"must not need more than 0.5 s"):
            sandbox.check(read_text(world(many), limited=True))
        assert sandbox.check(read_text(world(GEOM), limited=True)).elements > 0
    finally:
        sandbox.close()


def test_a_process_that_dies_is_a_refusal_and_the_next_one_starts(sandbox: Sandbox) -> None:
    sandbox.check(read_text(world(GEOM * 4), limited=True))
    assert sandbox._process is not None
    os.kill(sandbox._process.pid, signal.SIGSEGV)
    with pytest.raises(ValueError, match="must not crash"):
        sandbox.check(read_text(world(GEOM * 5), limited=True))
    assert sandbox.check(read_text(world(GEOM * 5), limited=True)).elements > 0


def test_the_process_can_open_no_file_and_has_little_memory(sandbox: Sandbox) -> None:
    sandbox.check(read_text(world(GEOM), limited=True))
    assert sandbox._process is not None
    lines = Path(f"/proc/{sandbox._process.pid}/limits").read_text().splitlines()
    most = {line[:25].strip(): line[25:].split()[:1] for line in lines[1:]}
    assert most["Max open files"] == most["Max file size"] == ["0"]
    size = Path(f"/proc/{sandbox._process.pid}/statm").read_text().split()[0]
    present = int(size) * os.sysconf("SC_PAGESIZE")
    assert int(most["Max address space"][0]) < present + 2 * limits.SANDBOX_BYTES


def test_closing_ends_a_check_under_way_and_refuses_later_ones() -> None:
    sandbox = Sandbox()
    sandbox.check(read_text(world(GEOM), limited=True))
    process, errors = sandbox._process, []
    many = "".join(FLEX.format("grid", i, "") for i in range(60))

    def check() -> None:
        try:
            sandbox.check(read_text(world(many), limited=True))
        except ValueError as error:
            errors.append(str(error))

    thread = threading.Thread(target=check)
    thread.start()
    sandbox.close()
    thread.join(20)
    assert errors and process is not None and process.poll() is not None
    with pytest.raises(ValueError, match="is closing"):
        sandbox.check(read_text(world(GEOM * 9), limited=True))


def test_the_process_ends_with_the_one_that_started_it(tmp_path: Path) -> None:
    program = """if True:
        import os
        from crazyflow_ros.scene.description import Sandbox, read_text
        sandbox = Sandbox()
        sandbox.check(read_text("<mujoco/>", limited=True))
        print(sandbox._process.pid, flush=True)
        os._exit(1)
    """
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    with suppress(ProcessLookupError):  # it has ended already
        descriptor = os.pidfd_open(int(done.stdout))
        assert select.select([descriptor], [], [], 20)[0], "the process lives on"
        os.close(descriptor)


def test_errors_are_answers() -> None:
    assert "sise" in str(_answer(read_text(world("<geom sise='1'/>"))))
