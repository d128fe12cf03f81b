"""Stock controllers of a real controller manager fly a hexacopter."""

from __future__ import annotations

from typing import Any

import numpy as np
from multirotors import HEXA
from real_manager import CHAIN, Manager, flight
from ros_client import own_domain
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from crazyflow_ros.description.interfaces import AXES, BODY, GOAL, SENSORS, rotors
from crazyflow_ros.drones import load_drone, rotors_of
from crazyflow_ros.dynamics import RPM

DOMAIN = own_domain(__name__)
RATE = 500  # Hz
HOME = (0.5, 0.3, 1.0)
SPEEDS = "cf0_rotor_velocity"


def test_six_rotors_are_seen_and_fly_by_each_controller(tmp_path: Any) -> None:
    given = {"ros2_control.rate": RATE, "drone_model": HEXA}
    with (
        flight(DOMAIN, **given) as flying,
        Manager(flying.client, tmp_path, ["cf0"], RATE, n_rotors=6) as manager,
    ):
        chain = [f"cf0_{name}" for name in CHAIN]
        manager.start("joint_state_broadcaster", *chain)
        listed = manager.interfaces()
        commands = {i.name for i in listed.command_interfaces if i.name.count("/") == 1}
        components = (*rotors(6), *SENSORS, *AXES, BODY, GOAL)
        assert commands == {f"{c.name('cf0')}/{name}" for c in components for name in c.commands}
        flying.fly_to(HOME)
        ours, theirs = (
            flying.client.latest(JointState, topic)
            for topic in ("/cf0/joint_states", "/joint_states")
        )
        hover = rotors_of(HEXA).hover_speeds(load_drone(HEXA)["mass"] * 9.81) * RPM
        shown = dict(zip(theirs.name, theirs.velocity))
        for states in (ours.velocity, [shown[f"cf0_rotor{i}"] for i in range(6)]):
            np.testing.assert_allclose(states, hover, rtol=0.02)
        manager.load(SPEEDS)
        assert manager.switch(start=[SPEEDS], stop=list(reversed(chain))), manager.log
        speeds = flying.client.publisher(Float64MultiArray, f"/{SPEEDS}/commands")
        told = 0.9 * hover * np.linspace(0.98, 1.02, 6)

        def turn_as_told() -> bool:
            speeds.publish(Float64MultiArray(data=told.tolist()))
            now = flying.client.latest(JointState, "/cf0/joint_states").velocity
            return np.allclose(now, told, rtol=1e-3)

        flying.client.until(turn_as_told, "six speeds")
        seen = flying.control()
        assert seen["control_timeouts"] == 0 and seen["refused_commands"] == 0
