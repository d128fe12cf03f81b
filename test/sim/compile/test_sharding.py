"""Worlds divided among devices and processes: the same flights, to the bit."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from paths import ROOT
from sharded_flight import N, fly

from crazyflow_ros.sim import Sim

PROCESSES, DEVICES = 2, 2  # each process has so many devices


def parts(folder: Path) -> list[dict[str, np.ndarray]]:
    """What each process has of the worlds."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    script = ROOT / "test" / "sharded_flight.py"
    root = script.parent.parent  # the package that is tested here, not an installed one
    files = [folder / f"{i}.npz" for i in range(PROCESSES)]
    processes = [
        subprocess.Popen(
            [sys.executable, str(script), str(port), str(PROCESSES), str(i), str(file)],
            env=os.environ | {"PYTHONPATH": str(root)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for i, file in enumerate(files)
    ]
    try:
        errors = [process.communicate(timeout=240)[1] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert all(process.returncode == 0 for process in processes), "\n".join(errors)
    return [dict(np.load(file)) for file in files]


@pytest.mark.soak
def test_devices_and_processes_fly_the_bits_of_one_device(tmp_path: Path) -> None:
    shown: dict[str, np.ndarray] = {}

    def show(when: str, leaves: dict[str, jax.Array]) -> None:
        shown.update({f"{when} {name}": np.asarray(x) for name, x in leaves.items()})

    fly(None, show)
    divided = set()
    for process, of_process in enumerate(parts(tmp_path)):
        assert {name.rpartition(" ")[0] for name in of_process} == set(shown)
        for label, part in of_process.items():
            name, _, first = label.rpartition(" ")
            whole, start = shown[name], int(first)
            if part.shape != whole.shape:
                divided.add(name)
                assert len(part) == N // (PROCESSES * DEVICES)
                assert start // len(part) // DEVICES == process
                whole = whole[start : start + len(part)]
            np.testing.assert_array_equal(part, whole, err_msg=f"{label} of {process}")
    assert {name.split(" .")[0] for name in divided} == {"flown", "in gusts", "contacts"}
    touching = shown["contacts .touching"]
    assert touching.any() and not touching.all()
    for leaf in (".states.pos", ".params.mass", ".params.wind", ".plugins['dryden']"):
        assert f"in gusts {leaf}" in divided
    gusts = shown["in gusts .plugins['dryden']"]
    assert len(np.unique(gusts)) == gusts.size  # each world has its own


ON_ONE_OF_TWO = """
import jax, numpy as np
jax.config.update("jax_num_cpu_devices", 2)
from crazyflow_ros.sim import Sim
device = jax.devices()[1]
with jax.default_device(device):
    sim = Sim(2, control="rotor_vel")
sim.rotor_vel_control(np.full((2, 1, 4), 15e3))
sim.step(2)
sim.rotor_vel_control(np.full((2, 1, 4), 16e3))
sim.step()
moved = sim.data, sim.mjx_model
sim.reset([True, False])
sim.step(2)
named = Sim(2, control="rotor_vel", device=device)
assert named.device == sim.device == device
named.seed(3)
mass = named.data.params.replace(mass=0.04)
named.data = named.data.replace(params=mass, plugins={"mine": np.ones((2, 1, 5))})
named.rotor_vel_control(np.full((2, 1, 4), 15e3))
named.step()
for leaf in jax.tree.leaves((moved, sim.data, named.data)):
    assert leaf.devices() == {device}, leaf
assert Sim(device="cpu").device == Sim().device == jax.devices()[0]
"""


def test_a_simulation_stays_on_the_default_device_of_its_time() -> None:
    root = ROOT
    command, env = [sys.executable, "-c", ON_ONE_OF_TWO], os.environ | {"PYTHONPATH": str(root)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("device", ["tpu", "abacus", 3])
def test_a_device_that_is_not_there_is_refused(device) -> None:
    with pytest.raises(ValueError, match=f"device must be a .*, got {device!r}"):
        Sim(device=device)


def test_worlds_that_devices_cannot_share_evenly_are_refused() -> None:
    class Two:  # all that is asked of a mesh before it is used
        size, devices = 2, ()

    with pytest.raises(ValueError, match="multiple of the mesh's 2 devices, got 3"):
        Sim(3, mesh=Two())  # type: ignore[arg-type]
