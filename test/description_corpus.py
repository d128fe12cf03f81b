"""Worlds and robots of our own making, each a main file and the files around it.

Every one uses something of MJCF or URDF in the way in which its users do. `written` puts one into a
folder. To compare files of others with what MuJoCo makes of them (docs/reference/limits.md):

    python test/description_corpus.py FOLDER...
"""

import re
import struct
import sys
import zlib
from collections import Counter
from pathlib import Path

import mujoco
import numpy as np

from crazyflow_ros.scene.description import read

Files = dict[str, str | bytes]


def png(width: int, height: int, level: int = 128) -> bytes:
    """Return a grey picture."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    rows = b"".join(
        b"\0" + bytes([(level + x + y) % 256 for x in range(width)]) for y in range(height)
    )
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        chunk(kind, data)
        for kind, data in ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    )


def stl(size: float = 1.0) -> bytes:
    """Return a tetrahedron with edges of a length [m] along the axes."""
    corners = [(0.0, 0.0, 0.0), (size, 0.0, 0.0), (0.0, size, 0.0), (0.0, 0.0, size)]
    faces = ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3))
    body = b"".join(
        struct.pack("<12fH", 0, 0, 0, *(x for i in face for x in corners[i]), 0) for face in faces
    )
    return bytes(80) + struct.pack("<I", len(faces)) + body


OBJ = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nvt 0 0\nvt 1 0\nvt 0 1\nf 1/1 3/3 2/2\nf 1/1 2/2 4/3\nf 1/1 4/3 3/2\nf 2/1 3/2 4/3\n"
HFIELD = struct.pack("<2i", 3, 2) + struct.pack("<6f", 0, 1, 2, 3, 2, 1)
LIT = '<light pos="0 0 3"/><geom name="floor" type="plane" size="9 9 .1"/>'
BALL = (
    '<mujoco><worldbody><body name="ball" pos="1 2 3"><geom size=".3"/></body></worldbody></mujoco>'
)
MESH = '<geom type="mesh" mesh="{}"/>'


def world(content: str, head: str = "", tail: str = "") -> str:
    return f"<mujoco>{head}<worldbody>{LIT}{content}</worldbody>{tail}</mujoco>"


def link(visual: str = "", collision: str = "", name: str = "base", origin: str = "") -> str:
    parts = "".join(
        f"<{kind}>{origin}<geometry>{shape}</geometry></{kind}>"
        for kind, shape in (("visual", visual), ("collision", collision))
        if shape
    )
    return f'<link name="{name}">{parts}</link>'


def robot(content: str, extension: str = "") -> str:
    return f'<?xml version="1.0"?>\n<robot name="robot">{extension}{content}</robot>'


BOX, SPHERE = '<box size=".2 .3 .4"/>', '<sphere radius=".1"/>'
JOINT = (
    '<joint name="j{0}" type="{1}"><parent link="base"/><child link="{2}"/>'
    '<origin xyz="0 .5 1" rpy="0 .2 .1"/><axis xyz="0 0 1"/>'
    '<limit lower="-1" upper="1" effort="1" velocity="1"/></joint>'
)
HEAVY = '<inertial><mass value="1"/><inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial>'
ARM = f'<link name="arm">{HEAVY}<visual><geometry>{BOX}</geometry></visual></link>'

WORLDS: dict[str, Files] = {
    "empty": {"main.xml": "<mujoco/>"},
    "plain": {"main.xml": world('<body pos="1 0 1"><geom type="box" size=".1 .2 .3"/></body>')},
    "include": {"main.xml": '<mujoco><include file="ball.xml"/></mujoco>', "ball.xml": BALL},
    "include in a body": {
        "main.xml": world('<body pos="0 0 1"><include file="parts.xml"/></body>'),
        "parts.xml": '<mujocoinclude><geom size=".1"/><body><geom size=".2"/></body></mujocoinclude>',
    },
    "include of an include beside the main file": {
        "main.xml": '<mujoco><include file="sub/a.xml"/></mujoco>',
        "sub/a.xml": '<mujoco><include file="ball.xml"/></mujoco>',
        "ball.xml": BALL,
        "sub/ball.xml": BALL.replace(".3", ".5"),
    },
    "include of an include beside the included file": {
        "main.xml": '<mujoco><include file="sub/a.xml"/></mujoco>',
        "sub/a.xml": '<mujoco><include file="ball.xml"/></mujoco>',
        "sub/ball.xml": BALL,
    },
    "include of a file above": {
        "sub/main.xml": '<mujoco><include file="../ball.xml"/></mujoco>',
        "ball.xml": BALL,
    },
    "included defaults": {
        "main.xml": '<mujoco><include file="defaults.xml"/><worldbody><geom class="big"/></worldbody></mujoco>',
        "defaults.xml": '<mujoco><default><default class="big"><geom size="2"/></default></default></mujoco>',
    },
    "mesh": {
        "main.xml": world(MESH.format("t"), '<asset><mesh file="t.stl"/></asset>'),
        "t.stl": stl(),
    },
    "meshdir": {
        "main.xml": world(
            MESH.format("t"), '<compiler meshdir="meshes"/><asset><mesh file="t.stl"/></asset>'
        ),
        "meshes/t.stl": stl(),
        "t.stl": stl(2),
    },
    "meshdir above": {
        "sub/main.xml": world(
            MESH.format("t"), '<compiler meshdir="../meshes/"/><asset><mesh file="t.stl"/></asset>'
        ),
        "meshes/t.stl": stl(),
    },
    "assetdir": {
        "main.xml": world(
            f'{MESH.format("t")}<geom type="hfield" hfield="h"/>',
            '<compiler assetdir="assets"/><asset><mesh file="t.stl"/><texture type="2d" name="p"'
            ' file="p.png"/><hfield name="h" file="h.png" size="1 1 1 .1"/></asset>',
        ),
        "assets/t.stl": stl(),
        "assets/p.png": png(4, 4),
        "assets/h.png": png(5, 3),
    },
    "folders of their own": {
        "main.xml": world(
            f'{MESH.format("t")}<geom type="box" size="1 1 1" material="m"/>',
            '<compiler meshdir="m" texturedir="t"/><asset><mesh file="t.stl"/><texture type="2d"'
            ' name="p" file="p.png"/><material name="m" texture="p"/></asset>',
        ),
        "m/t.stl": stl(),
        "t/p.png": png(6, 4),
    },
    "the last compiler counts": {
        "main.xml": world(
            MESH.format("t"),
            '<compiler meshdir="nowhere"/><asset><mesh file="t.stl"/></asset>'
            '<compiler meshdir="meshes"/>',
        ),
        "meshes/t.stl": stl(),
    },
    "assets of an included file": {
        "main.xml": '<mujoco><include file="sub/a.xml"/></mujoco>',
        "sub/a.xml": world(MESH.format("t"), '<asset><mesh file="t.stl"/></asset>'),
        "sub/t.stl": stl(),
    },
    "assets of an included file beside the main file": {
        "main.xml": '<mujoco><include file="sub/a.xml"/></mujoco>',
        "sub/a.xml": world(MESH.format("t"), '<asset><mesh file="t.stl"/></asset>'),
        "sub/t.stl": stl(2),
        "t.stl": stl(),
    },
    "meshdir and an included file": {
        "main.xml": '<mujoco><compiler meshdir="meshes"/><include file="sub/a.xml"/></mujoco>',
        "sub/a.xml": world(MESH.format("t"), '<asset><mesh file="t.stl"/></asset>'),
        "sub/t.stl": stl(),
    },
    "strippath": {
        "main.xml": world(
            MESH.format("t"),
            '<compiler strippath="true"/><asset><mesh file="far/away/t.stl"/></asset>',
        ),
        "t.stl": stl(),
    },
    "one file, two meshes": {
        "main.xml": world(
            MESH.format("a") + MESH.format("b"),
            '<asset><mesh name="a" file="t.stl"/><mesh name="b" file="t.stl" scale="2 2 2"/></asset>',
        ),
        "t.stl": stl(),
    },
    "two files of one name": {
        "main.xml": world(
            MESH.format("a") + MESH.format("b"),
            '<asset><mesh name="a" file="a/t.stl"/><mesh name="b" file="b/t.stl"/></asset>',
        ),
        "a/t.stl": stl(),
        "b/t.stl": stl(3),
    },
    "capitals, blanks and an ampersand": {
        "main.xml": world(
            MESH.format("Big T"), '<asset><mesh file="A &amp; B/Big T.STL"/></asset>'
        ),
        "A & B/Big T.STL": stl(),
    },
    "obj": {
        "main.xml": world(MESH.format("t"), '<asset><mesh file="t.obj"/></asset>'),
        "t.obj": OBJ,
    },
    "mesh without a file": {
        "main.xml": world(
            MESH.format("t"), '<asset><mesh name="t" vertex="0 0 0\n1 0 0\n0 1 0\n0 0 1"/></asset>'
        )
    },
    "cube of six pictures": {
        "main.xml": world(
            "",
            '<asset><texture name="c" type="cube" fileright="a.png" fileleft="b.png" fileup="a.png"'
            ' filedown="b.png" filefront="a.png" fileback="b.png"/></asset>',
        ),
        "a.png": png(4, 4),
        "b.png": png(4, 4, 10),
    },
    "sky": {
        "main.xml": world(
            "",
            '<asset><texture type="skybox" builtin="gradient" rgb1=".3 .5 .7" rgb2="0 0 0"'
            ' width="64" height="384"/></asset>',
        )
    },
    "height field of a binary file": {
        "main.xml": world(
            '<geom type="hfield" hfield="h"/>',
            '<asset><hfield name="h" file="h.bin" size="1 1 1 .1"/></asset>',
        ),
        "h.bin": HFIELD,
    },
    "height field in the text": {
        "main.xml": world(
            '<geom type="hfield" hfield="h"/>',
            '<asset><hfield name="h" nrow="2" ncol="2" elevation="0 1 2 3" size="1 1 1 .1"/></asset>',
        )
    },
    "attached model": {
        "main.xml": '<mujoco><asset><model name="g" file="sub/gate.xml"/></asset><worldbody>'
        '<attach model="g" body="gate" prefix="a-"/><frame pos="2 0 0"><attach model="g" body="gate"'
        ' prefix="b-"/></frame></worldbody></mujoco>',
        "sub/gate.xml": f'<mujoco><compiler meshdir="meshes"/><asset><mesh file="t.stl"/></asset>'
        f'<worldbody><body name="gate">{MESH.format("t")}</body></worldbody></mujoco>',
        "sub/meshes/t.stl": stl(),
    },
    "replicate": {
        "main.xml": world(
            '<replicate count="6" euler="0 0 60"><body pos="3 0 1"><geom size=".1"/></body></replicate>'
        )
    },
    "cable": {
        "main.xml": world(
            '<body pos="0 0 2"><composite type="cable" curve="s" count="11 1 1" size="1"'
            ' offset="0 0 1" initial="none"><geom type="capsule" size=".02"/></composite></body>'
        )
    },
    "cloth": {
        "main.xml": world(
            '<flexcomp name="c" type="grid" dim="2" count="4 5 1" spacing=".1 .1 .1" mass="1"'
            ' radius=".01" pos="0 0 1"><edge equality="true"/></flexcomp>'
        )
    },
    "soft body of a file": {
        "main.xml": world(
            '<flexcomp name="c" type="mesh" dim="2" file="t.obj" mass="1" radius=".01"'
            ' pos="0 0 1"><edge equality="true"/></flexcomp>'
        ),
        "t.obj": OBJ,
    },
    "joints, actuators, sensors": {
        "main.xml": world(
            '<body name="pole" pos="0 0 1"><joint name="hinge" axis="0 1 0"/><site name="tip"/>'
            '<geom type="capsule" size=".05" fromto="0 0 0 0 0 1"/></body>',
            '<option timestep=".001" integrator="implicitfast"/>',
            '<actuator><motor joint="hinge" ctrlrange="-1 1"/></actuator><sensor><jointpos'
            ' joint="hinge"/><accelerometer site="tip"/><user dim="4"/></sensor>',
        )
    },
    "tendons and equalities": {
        "main.xml": world(
            '<body name="a" pos="0 0 1"><freejoint/><geom size=".1"/><site name="a"/></body>'
            '<body name="b" pos="0 0 2"><freejoint/><geom size=".1"/><site name="b"/></body>',
            "",
            '<tendon><spatial limited="true" range="0 2"><site site="a"/><site site="b"/></spatial>'
            '</tendon><equality><weld body1="a" body2="b"/></equality>'
            '<contact><exclude body1="a" body2="b"/></contact>',
        )
    },
    "keyframes": {
        "main.xml": world(
            '<body name="crate" pos="2 2 .3"><freejoint/><geom type="box" size=".2 .2 .2"/></body>'
            '<body name="goal" mocap="true"><geom size=".1" contype="0" conaffinity="0"/></body>',
            "",
            '<keyframe><key name="home" qpos="1 1 .3 1 0 0 0"/><key name="far" mpos="5 5 5"/>'
            "</keyframe>",
        )
    },
    "visuals discarded": {
        "main.xml": world(
            '<body name="a" pos="0 0 1"><geom size=".2" contype="0" conaffinity="0" group="2"'
            ' material="m"/><geom size=".1"/></body>',
            '<compiler discardvisual="true"/><asset><material name="m" rgba="1 0 0 1"/></asset>',
        )
    },
    "static bodies fused": {
        "main.xml": world(
            '<body name="a"><joint/><geom size=".1"/><body pos="0 0 1"><geom size=".2"/></body></body>',
            '<compiler fusestatic="true"/>',
        )
    },
    "radians and other sequences of angles": {
        "main.xml": world(
            '<body euler="1 .5 .2" pos="0 0 1"><geom type="box" size=".1 .2 .3"/></body>',
            '<compiler angle="radian" eulerseq="zyx" autolimits="true" balanceinertia="true"/>',
        )
    },
    "comments that XML forbids": {
        "main.xml": "\n\n<?xml version='1.0'?>\n<!-- ---- a -- b ---- -->\n" + world("<!----->")
    },
    "byte order mark": {"main.xml": b"\xef\xbb\xbf" + world("").encode()},
    "latin 1": {
        "main.xml": '<?xml version="1.0" encoding="utf-8"?>'
        + world(
            "", '<custom><text name="description" data="Stra&#223;e &amp; &lt;Halle&gt;"/></custom>'
        )
    },
    "pairs, cameras, lights, sites": {
        "main.xml": world(
            '<geom name="g" size=".1" pos="0 0 1"/><camera name="c" pos="0 -2 1" xyaxes="1 0 0 0 0 1"/>'
            '<light directional="true"/><site name="s" pos="1 1 1"/><body name="b"><freejoint/>'
            '<geom name="h" size=".1"/></body>',
            "",
            '<contact><pair geom1="g" geom2="h"/></contact>',
        )
    },
    "skin": {
        "main.xml": world(
            '<body name="a"><geom size=".1"/></body>',
            "",
            '<deformable><skin vertex="0 0 0 1 0 0 0 1 0" face="0 1 2"><bone body="a"'
            ' bindpos="0 0 0" bindquat="1 0 0 0" vertid="0 1 2" vertweight="1 1 1"/></skin></deformable>',
        )
    },
}
"""By what they show. The main file is the one called main."""

ROBOTS: dict[str, Files] = {
    "visual and collision": {"main.urdf": robot(link(BOX, SPHERE))},
    "visual only": {"main.urdf": robot(link(BOX, origin='<origin xyz="0 0 1"/>'))},
    "collision only": {"main.urdf": robot(link("", BOX))},
    "fixed and moving links": {
        "main.urdf": robot(
            link(BOX, BOX)
            + ARM
            + JOINT.format(0, "revolute", "arm")
            + link(SPHERE, SPHERE, "tip")
            + JOINT.format(1, "fixed", "tip")
        )
    },
    "mesh beside it": {"main.urdf": robot(link('<mesh filename="t.stl"/>', BOX)), "t.stl": stl()},
    "mesh of another scale": {
        "main.urdf": robot(
            link('<mesh filename="t.stl" scale=".1 .1 .1"/>', '<mesh filename="t.stl"/>')
        ),
        "t.stl": stl(),
    },
    "settings for MuJoCo": {
        "main.urdf": robot(
            link('<mesh filename="t.stl"/>', BOX) + ARM + JOINT.format(0, "continuous", "arm"),
            '<mujoco><compiler meshdir="meshes" fusestatic="false" discardvisual="true"/></mujoco>',
        ),
        "meshes/t.stl": stl(),
    },
    "materials": {
        "main.urdf": robot(
            '<material name="red"><color rgba="1 0 0 1"/></material><link name="base"><visual>'
            f'<geometry>{BOX}</geometry><material name="red"/></visual></link>'
        )
    },
}
"""As `WORLDS`, with meshes where MuJoCo finds them, too."""


def written(files: Files, folder: Path) -> Path:
    """Write the files below a folder, and return the main one."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return next(folder / name for name in files if Path(name).stem == "main")


_SAME = (
    *("nbody", "njnt", "ngeom", "nsite", "ncam", "nlight", "nmesh", "nmeshvert", "ntex", "nmat"),
    *("ntexdata", "nhfielddata", "npair", "nexclude", "neq", "ntendon", "nu", "nsensor", "nflex"),
    *("nskin", "nkey", "ntext", "nq", "nv"),
)
_CLOSE = (
    *("body_pos", "body_quat", "body_mass", "body_inertia", "geom_type", "geom_size", "geom_pos"),
    *(
        "geom_quat",
        "geom_aabb",
        "geom_rbound",
        "geom_contype",
        "geom_rgba",
        "mesh_vert",
        "tex_data",
    ),
    *("hfield_data", "key_qpos", "key_mpos", "qpos0", "jnt_range", "cam_pos"),
)


def difference(ours: mujoco.MjModel, theirs: mujoco.MjModel) -> str | None:
    """Return the first field in which two models differ."""
    for name in _SAME:
        if getattr(ours, name) != getattr(theirs, name):
            return f"{name} {getattr(ours, name)} {getattr(theirs, name)}"
    for name in _CLOSE:
        if not np.allclose(getattr(ours, name), getattr(theirs, name), atol=1e-9):
            return name
    names = [[model.body(i).name for i in range(model.nbody)] for model in (ours, theirs)]
    return None if names[0] == names[1] else "names of bodies"


def judged(path: Path) -> tuple[str, str]:
    """Return how a file of somebody is taken: "equal", "refused" as by MuJoCo, or "differs".

    MuJoCo does not read SDF and xacro, and drops the visuals of a URDF: these only have to be built.
    """
    is_mjcf = path.suffix == ".xml"
    try:
        theirs = mujoco.MjModel.from_xml_path(str(path)) if is_mjcf else None
    except ValueError as error:
        theirs, reason = None, str(error)
    else:
        reason = ""
    try:
        ours = read(path).compiled()
    except (OSError, ValueError) as error:
        return ("refused", str(error)) if theirs is None else ("differs", str(error))
    if theirs is None:
        return ("more", reason) if is_mjcf else ("equal", "")
    what = difference(ours, theirs)
    return ("equal", "") if what is None else ("differs", what)


_REASONS = {
    "names what is not there": r"there is no (file|model|package)|fuel download|' not found",
    "is a fragment, or wants arguments": r"root element has to be|neither a world nor|xacro: |must have one model|without a link|at least one link",
    "is no XML": r"in line \d+ of \S+$|^not well-formed|^no element found",
}
"""Reasons of refusals, by what they say."""


def package_of(path: Path, root: Path) -> Path:
    """Return the folder of the package or model to which a file belongs.

    It has a manifest, or else it is the one above folders with the usual names.
    """
    above = [folder for folder in path.parents if folder.is_relative_to(root)]
    for folder in above:
        if (folder / "package.xml").exists() or (folder / "model.config").exists():
            return folder
    usual = ("urdf", "robots", "robot", "xacro", "sdf", "mjcf", "worlds")
    return next(folder for folder in above if folder.name not in usual or folder == root)


if __name__ == "__main__":
    marks = {".xml": "<mujoco", ".urdf": "<robot", ".sdf": "<sdf", ".world": "<sdf"}
    marks[".xacro"] = "<robot"
    print("| from | packages | files | built | " + " | ".join(_REASONS) + " | other reasons |")
    for name in sys.argv[1:]:
        root, counts, packages = Path(name), Counter[str](), set[Path]()
        for path in sorted(p for p in root.rglob("*") if p.suffix in marks and p.is_file()):
            if marks[path.suffix] not in path.read_text(errors="ignore"):
                continue
            verdict, why = judged(path)
            packages.add(package_of(path, root))
            if verdict == "refused":
                found = (kind for kind, words in _REASONS.items() if re.search(words, why))
                verdict = next(found, "other")
            counts[verdict] += 1
            if verdict in ("other", "differs", "more"):
                print(verdict, path, " ".join(why.split())[:200], file=sys.stderr)
        numbers = [counts["equal"], *(counts[kind] for kind in _REASONS), counts["other"]]
        cells = [root.name, len(packages), counts.total(), *numbers]
        print("| " + " | ".join(map(str, cells)) + " |", {**counts}, flush=True)
