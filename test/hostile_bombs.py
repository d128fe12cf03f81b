"""Descriptions of few bytes that MuJoCo makes much of, or never ends with: see `make hostile`."""

from __future__ import annotations

import itertools
import random
import struct
import zlib
from collections.abc import Callable

import description_corpus as corpus
from description_corpus import MESH, OBJ, Files, link, png, robot, stl, world

ODD_NUMBERS = (
    *("nan", "inf", "-inf", "1e308", "-1e300", "1e-320", "0", "-0", "-1", "2", "1e9"),
    *("4294967296", "99999999999999999999", "0x10"),
)
FIFO, HUGE = "../fifo", "../huge"
"""Files in the folder above."""

_GEOM = '<geom size=".01"/>'
_KINDS = ("grid", "box", "cylinder", "ellipsoid", "disc", "circle", "gmsh")
_MODEL = '<mujoco><asset><model name="m" file="{}"/></asset><worldbody>{}</worldbody></mujoco>'
_ATTACH = '<attach model="m" body="b" prefix="{}"/>'


def _many(rng: random.Random) -> int:
    return rng.choice((0, 1, 3, 10, 40, 300, 5000, 10**6, 2**31 - 1))


def snippet(rng: random.Random) -> str:
    """Return an element that may become many, a large one, or one that ends nowhere."""
    n, name = _many(rng), f"n{rng.randrange(10**6)}"
    counts = " ".join(str(_many(rng)) for _ in range(3))
    side, odd = rng.choice((1, 64, 5000, 30_000, 10**6)), rng.choice(ODD_NUMBERS)
    corners, file = "0 0 0 1 0 0 0 1 0 0 0 1 " * (n % 999), rng.choice(("main.xml", FIFO, HUGE))
    flex = f"<flexcomp name='{name}' type='{rng.choice(_KINDS)}' dim='{rng.choice((1, 2, 3))}'"
    return rng.choice(
        (
            _replicates(rng),
            f"{flex} count='{counts}' spacing='.1 .1 .1' mass='1' radius='.01'/>",
            f"<composite type='cable' curve='s' count='{n} 1 1' size='1'>{_GEOM}</composite>",
            f"<asset><texture name='{name}' type='{rng.choice(('2d', 'cube', 'skybox'))}'"
            f" builtin='checker' width='{side}' height='{side}'/></asset>",
            f"<asset><hfield name='{name}' nrow='{side}' ncol='{side}' size='1 1 1 1'/></asset>",
            f"<asset><mesh name='{name}' vertex='{corners}'/></asset>",
            f"<asset><model name='{name}' file='{file}'/></asset>",
            f"<include file='{file}'/>",
            f"<size memory='{n}M' nuserdata='{n}'/>",
            f"<size nuser_geom='{n}' nuser_body='{n}' njmax='{n}' nconmax='{n}'/>",
            f"<sensor><user dim='{n}'/></sensor>",
            f"<custom><numeric name='{name}' size='{n}'/></custom>",
            f"<visual><global offwidth='{side}'/><quality shadowsize='{side}'/></visual>",
            f"<option timestep='{odd}' iterations='{n}' gravity='0 0 {n}'/>",
            f"<statistic extent='{odd}' center='nan 0 0'/>",
            f"<body>{'<joint/>' * (n % 9)}<geom size='1e{n % 40}'/></body>",
            "<extension><plugin plugin='mujoco.elasticity.cable'/></extension>",
        )
    )


def _replicates(rng: random.Random) -> str:
    inside = _GEOM
    for _ in range(rng.choice((1, 1, 2, 3, 7))):
        inside = f"<replicate count='{_many(rng)}' offset='0 0 1'>{inside}</replicate>"
    return inside


def bomb(rng: random.Random) -> Files:
    """Return files that end in themselves, in what is no file, or in more than they show."""
    return rng.choice(_BOMBS)(rng)


def _including(name: str) -> str:
    return f'<mujoco><include file="{name}"/></mujoco>'


def _ring_of_includes(rng: random.Random) -> Files:
    names = [f"{letter}.xml" for letter in "abc"[: rng.randrange(1, 4)]]
    ring = [*names, rng.choice((names[0], "main.xml", FIFO, HUGE, "nowhere"))]
    files = {name: _including(included) for name, included in itertools.pairwise(ring)}
    return {"main.xml": _including(names[0]), **files}


def _deep_includes(rng: random.Random) -> Files:
    """A chain of files, down into folders."""
    n = rng.choice((5, 50, 200))
    chain = {f"{'d/' * i}f{i}.xml": _including(f"d/f{i + 1}.xml") for i in range(n)}
    end = {f"{'d/' * n}f{n}.xml": world(_GEOM)}
    return {"main.xml": _including("f0.xml"), **chain, **end}


def _doubling_models(rng: random.Random) -> Files:
    """A chain of models, each of which contains the next one twice; or a ring of them."""
    inside = f'<body name="b">{_GEOM}{_ATTACH.format("a")}{_ATTACH.format("b")}</body>'
    n = rng.choice((1, 3, 12, 30))
    files = {f"m{i}.xml": _MODEL.format(f"m{i + 1}.xml", inside) for i in range(n)}
    end = rng.choice((corpus.BALL.replace("ball", "b"), files["m0.xml"]))
    return {"main.xml": _MODEL.format("m0.xml", _ATTACH.format("x")), **files, f"m{n}.xml": end}


def _picture(rng: random.Random) -> Files:
    """A picture that becomes megabytes, or says that it has more pixels than that."""
    side, megabytes = rng.choice((1, 100, 20_000, 2**31 - 1)), rng.choice((1, 40, 150))
    packer = zlib.compressobj(9)
    data = b"".join(packer.compress(bytes(1 << 20)) for _ in range(megabytes)) + packer.flush()

    def chunk(kind: bytes, content: bytes) -> bytes:
        checked = kind + content
        return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))

    head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    chunks = (chunk(b"IHDR", head), chunk(b"IDAT", data), chunk(b"IEND", b""))
    asset = rng.choice(
        (
            '<asset><texture type="2d" name="p" file="p.png"/></asset>',
            '<asset><hfield size="1 1 1 1" name="p" file="p.png"/></asset>',
        )
    )
    return {"main.xml": world("", asset), "p.png": png(1, 1)[:8] + b"".join(chunks)}


def _mesh(rng: random.Random) -> Files:
    """A mesh with more faces than it has, or others."""
    mesh = bytearray(stl())
    mesh[80:84] = struct.pack("<I", rng.choice((0, 3, 10**6, 2**32 - 1)))
    faces = OBJ + "f 1 2 99999999\n" * rng.choice((1, 1000)) + "f -1 0 1\n"
    name, content = rng.choice((("t.stl", bytes(mesh)), ("t.obj", faces.encode())))
    return {
        "main.xml": world(MESH.format("t"), f'<asset><mesh file="{name}"/></asset>'),
        name: content,
    }


def _mesh_of_nobody(rng: random.Random) -> Files:
    where = rng.choice(("package://nobody/a.stl", "file:///dev/zero", FIFO, HUGE, "t.dae"))
    return {"main.urdf": robot(link(f'<mesh filename="{where}" scale="1 1 1"/>'))}


def _ring_of_links(rng: random.Random) -> Files:
    names = ("base", "a", "b")[: rng.randrange(1, 4)]
    links = "".join(link(corpus.BOX, corpus.BOX, name) for name in names)
    joints = [
        _joint(i, parent, child)
        for i, (parent, child) in enumerate(zip(names, names[1:] + names[:1], strict=True))
    ]
    return {"main.urdf": robot(links + "".join(joints))}


def _many_links(rng: random.Random) -> Files:
    n = rng.choice((30, 200, 200, 3000))
    links = "".join(link(corpus.SPHERE, corpus.SPHERE, f"l{i}") for i in range(n))
    joints = "".join(_joint(i, f"l{i - 1}", f"l{i}") for i in range(1, n))
    return {"main.urdf": robot(links + joints)}


def _joint(number: int, parent: str, child: str) -> str:
    return corpus.JOINT.format(number, "revolute", child).replace('"base"', f'"{parent}"', 1)


def _snippets(rng: random.Random) -> Files:
    return {"main.xml": world(snippet(rng) * rng.choice((1, 2, 60)))}


_BOMBS: tuple[Callable[[random.Random], Files], ...] = (
    _ring_of_includes,
    _deep_includes,
    _doubling_models,
    _picture,
    _mesh,
    _mesh_of_nobody,
    _ring_of_links,
    _many_links,
    _snippets,
)
