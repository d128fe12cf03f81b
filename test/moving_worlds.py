"""Small worlds in which something moves, for comparison with plain MuJoCo."""

FLOOR = '<geom name="floor" type="plane" size="0 0 1"/>'
BOX = '<geom type="box" size="0.1 0.1 0.1" mass="0.2"/>'


def _body(name, pos, content, quat="1 0 0 0"):
    return f'<body name="{name}" pos="{pos}" quat="{quat}">{content}</body>'


def _world(content, option="", rest="", floor=FLOOR):
    return f"<mujoco>{option}<worldbody>{floor}{content}</worldbody>{rest}</mujoco>"


_HINGE = '<joint name="j" type="hinge" axis="0 1 0"/>'
_ROD = '<geom type="capsule" fromto="0 0 0 0.5 0 0" size="0.02" mass="0.1"/>'
_CHAIN = _body(
    "a",
    "0 0 2",
    _HINGE + _ROD + _body("b", "0.5 0 0", _HINGE.replace('"j"', '"k"') + _ROD),
)

WORLDS = {
    "falls": _world(_body("a", "0 0 8", "<freejoint/>" + BOX), floor=""),
    "lands": _world(_body("a", "0 0 0.5", "<freejoint/>" + BOX)),
    "lands on a corner": _world(
        _body("a", "0 0 0.4", "<freejoint/>" + BOX, quat="0.8 0.3 0.5 0.1")
    ),
    "pendulum": _world(_body("a", "0 0 2", _HINGE + _ROD)),
    "double pendulum": _world(_CHAIN),
    "damped": _world(
        _body("a", "0 0 2", _HINGE.replace("/>", ' damping="0.01" frictionloss="0.002"/>') + _ROD)
    ),
    "spring": _world(
        _body("a", "0 0 1", '<joint type="slide" axis="0 0 1" stiffness="20" damping="0.1"/>' + BOX)
    ),
    "limited": _world(
        _body("a", "0 0 1", '<joint type="slide" axis="0 0 1" range="-0.2 0.3"/>' + BOX)
    ),
    "ball joint": _world(_body("a", "0 0 2", '<joint type="ball"/>' + _ROD)),
    "stack": _world(
        "".join(_body(f"b{i}", f"0 0 {0.1 + 0.2 * i}", "<freejoint/>" + BOX) for i in range(3))
    ),
    "rolls": _world(
        _body("a", "0 0 0.1", '<freejoint/><geom type="sphere" size="0.1" mass="0.2"/>'),
        floor=FLOOR.replace("/>", ' euler="0 5 0"/>'),
    ),
    "slides down": _world(
        _body("a", "0 0 0.12", "<freejoint/>" + BOX),
        floor=FLOOR.replace("/>", ' euler="0 20 0" friction="0.2"/>'),
    ),
    "cylinder": _world(
        _body(
            "a",
            "0 0 0.3",
            '<freejoint/><geom type="cylinder" size="0.1 0.1" mass="0.3"/>',
            quat="0.9 0.4 0.1 0",
        )
    ),
    "cable": _world(
        '<site name="hook" pos="0 0 2"/>'
        + _body("a", "0.6 0 2", '<freejoint/><site name="eye"/>' + BOX),
        rest='<tendon><spatial range="0 0.8" limited="true"><site site="hook"/><site site="eye"/>'
        "</spatial></tendon>",
    ),
    "elastic cable": _world(
        '<site name="hook" pos="0 0 2"/>'
        + _body("a", "0.6 0 2", '<freejoint/><site name="eye"/>' + BOX),
        rest='<tendon><spatial springlength="0 0.5" stiffness="40" damping="0.2">'
        '<site site="hook"/><site site="eye"/></spatial></tendon>',
    ),
    "weld": _world(
        _body("a", "0 0 1", "<freejoint/>" + BOX) + _body("b", "0.3 0 1", "<freejoint/>" + BOX),
        rest='<equality><weld body1="a" body2="b"/></equality>',
    ),
    "connect": _world(
        _body("a", "0 0 1", "<freejoint/>" + BOX),
        rest='<equality><connect body1="a" anchor="0.2 0 0.2"/></equality>',
    ),
    "motor": _world(
        _body("a", "0 0 1", '<joint name="j" type="hinge" axis="0 0 1" damping="0.1"/>' + _ROD),
        rest='<actuator><position name="m" joint="j" kp="2" kv="0.1"/></actuator>'
        '<keyframe><key name="turned" ctrl="0.7"/></keyframe>',
    ),
    "moon": _world(
        _body("a", "0 0 1", "<freejoint/>" + BOX), option='<option gravity="0 0 -1.62"/>'
    ),
    "thick air": _world(
        _body("a", "0 0 3", '<freejoint/><geom size="0.1" mass="0.01"/>'),
        option='<option density="1.2" viscosity="1.8e-5" wind="2 0 0"/>',
    ),
    "implicit": _world(_CHAIN, option='<option integrator="implicitfast"/>'),
    "runge-kutta": _world(_CHAIN, option='<option integrator="RK4"/>'),
    "short steps": _world(_CHAIN, option='<option timestep="0.0005"/>'),
    "elliptic": _world(
        _body("a", "0 0 0.4", "<freejoint/>" + BOX, quat="0.8 0.3 0.5 0.1"),
        option='<option cone="elliptic"/>',
    ),
    "sleeps until something falls on it": _world(
        _body("a", "0 0 0.1", "<freejoint/>" + BOX) + _body("b", "0.05 0 9", "<freejoint/>" + BOX),
        option='<option><flag sleep="enable"/></option>',
    ),
    "mesh": (
        '<mujoco><asset><mesh name="wedge" vertex="0 0 0 0.2 0 0 0 0.2 0 0.2 0.2 0 0 0 0.2"/>'
        f"</asset><worldbody>{FLOOR}"
        + _body("a", "0 0 0.5", '<freejoint/><geom type="mesh" mesh="wedge" mass="0.2"/>')
        + "</worldbody></mujoco>"
    ),
}
"""MJCF by name. Bodies do not come near to the drone."""

SHOWN = (
    "<mujoco><worldbody>" + FLOOR + '<geom name="wall" type="box" size="0.05 1 1" pos="3 0 1"/>'
    '<site name="hook" pos="1 1 2"/>'
    '<geom name="peg" type="cylinder" size="0.1 0.1" pos="1 0.9 1.6" '
    'euler="90 0 0" contype="0" conaffinity="0"/>'
    + _body("a box", "1 0 2.5", "<freejoint/>" + BOX)
    + _body("cf0/load", "1 1.2 1", '<freejoint/><site name="eye"/>' + BOX)
    + _body(
        "arm",
        "0 2 1",
        '<joint name="shoulder" type="hinge" axis="0 1 0" damping="0.01"/>'
        + _ROD
        + '<body pos="0.5 0 0"><joint name="lift" type="slide" axis="0 1 0" range="-0.1 0.1"/>'
        + _ROD
        + '<body name="tool" pos="0.5 0 0"><geom size="0.05" mass="0.01"/></body></body>',
    )
    + _body("pad", "-2 0 0.5", '<geom type="box" size="0.3 0.3 0.02"/>').replace(
        'name="pad"', 'name="pad" mocap="true"'
    )
    + '</worldbody><tendon><spatial name="cable" range="0 1.3" limited="true" rgba="1 0 0 1">'
    '<site site="hook"/><geom geom="peg"/><site site="eye"/></spatial></tendon>'
    '<actuator><position name="m" joint="shoulder" kp="2" kv="0.1"/></actuator>'
    '<keyframe><key name="raised" ctrl="0.7"/></keyframe></mujoco>'
)
"""A world with everything that is shown: bodies, a robot, a cable around a peg, a platform."""
FRAMES = ("a_box", "cf0_load", "arm", "arm/body0", "tool", "pad")
"""Its frames that move."""
