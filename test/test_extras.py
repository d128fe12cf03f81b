"""What is missing is said with the extra that brings it, and what nobody needs is not imported."""

import re
import shlex
import subprocess
import sys
from importlib import import_module, reload
from types import SimpleNamespace

import numpy as np
import pytest
from packaging.requirements import Requirement
from paths import ROOT

from crazyflow_ros.extras import EXTRAS, LARGE, extra
from crazyflow_ros.sim import Sim


def imported_by(code: str) -> set[str]:
    code = f"import sys; {code}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=True)
    return set(done.stdout.split())


def hide(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    """Have imports of a package fail, as where it is not installed."""
    for name in [*sys.modules, package]:
        if name == package or name.startswith(f"{package}."):
            monkeypatch.setitem(sys.modules, name, None)
    parent, _, name = package.rpartition(".")
    if parent:
        monkeypatch.delattr(sys.modules[parent], name, raising=False)


def test_a_simulation_imports_what_it_needs_to_step() -> None:
    needless = {"mujoco", "scipy", "PIL", "mcap", "gymnasium", "yaml", "rclpy", "re2"}
    assert not needless & imported_by("import crazyflow_ros.sim")
    stepping = "from crazyflow_ros import Sim; Sim().step()"
    assert not {"mujoco", "PIL", "mcap", "gymnasium", "rclpy", "re2"} & imported_by(stepping)


def test_without_mjx_a_simulation_flies_and_says_what_contacts_need(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import mujoco

    hide(monkeypatch, "mujoco.mjx")
    sim = Sim()
    sim.step(10)
    assert np.isfinite(sim.data.states.pos).all() and isinstance(sim.mj_model, mujoco.MjModel)
    for ask in (sim.contacts, lambda: sim.mjx_data, sim.contact_list):
        with pytest.raises(ModuleNotFoundError, match=r"mujoco-mjx.*-m pip install 'mujoco-mjx>"):
            ask()


def test_what_mjx_prints_about_warp_is_left_out_and_nothing_else() -> None:
    """None of ours uses warp, and most have not installed it."""
    code = """from crazyflow_ros.extras import extra
with extra("mjx"):
    from mujoco import mjx
    print("Failed to import", "nothing")
print(mjx.Model.__name__)"""
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=True)
    assert done.stdout == "Failed to import nothing\nModel\n"


@pytest.mark.parametrize(
    ("package", "module", "said"),
    [
        ("mujoco.mjx", "sensors.mjx_backend", "mujoco-mjx .* 'mujoco-mjx>=3.17,<3.18'$"),
        ("mujoco.mjx", "sensors.sim_backend", "mujoco-mjx .* 'mujoco-mjx>=3.17,<3.18'$"),
        (
            "mcap",
            "ros.recording.episode_file",
            "mcap .* 'mcap>=1.2,<2' 'mcap-ros2-support>=0.5,<1'$",
        ),
        ("mcap", "checks.mcap_file", "mcap .* 'mcap>=1.2,<2' 'mcap-ros2-support>=0.5,<1'$"),
        ("foxglove", "view.foxglove.server", "foxglove-sdk .* 'foxglove-sdk>=0.30,<0.31'$"),
    ],
)
def test_a_module_says_which_packages_it_needs(
    package: str, module: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if module.startswith(("ros", "view")):
        pytest.importorskip("rclpy")
    found = sys.modules.get(f"crazyflow_ros.{module}")
    hide(monkeypatch, package)
    with pytest.raises(ModuleNotFoundError, match=said):
        reload(found) if found else import_module(f"crazyflow_ros.{module}")


def test_a_page_says_which_package_it_needs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from crazyflow_ros import view
    from crazyflow_ros.view.__main__ import main

    for name in [name for name in sys.modules if name.startswith("crazyflow_ros.view.")]:
        monkeypatch.delitem(sys.modules, name)
    hide(monkeypatch, "viser")
    said = f"viser is not installed: {sys.executable} -m pip install viser==1.1.1"
    with pytest.raises(ModuleNotFoundError, match=re.escape(said)):
        view.SimView  # noqa: B018
    assert main([]) == 1
    assert said in capsys.readouterr().err


def test_without_pillow_a_camera_has_no_compressed_pictures_and_a_warning_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("rclpy")
    from crazyflow_ros.ros.sensors import camera_topics

    said: list[str] = []
    logger = SimpleNamespace(warning=said.append)
    monkeypatch.setattr(camera_topics, "get_logger", lambda _: logger)
    has_jpeg = camera_topics._has_jpeg.__wrapped__
    assert has_jpeg() and not said
    hide(monkeypatch, "PIL")
    assert not has_jpeg()
    assert "pillow" in said[0] and "-m pip install 'pillow>=10'" in said[0]


def test_what_is_installed_and_fails_keeps_its_own_message() -> None:
    with pytest.raises(ImportError, match="no such function"), extra("record"):
        raise ImportError("no such function")


@pytest.mark.parametrize("name", EXTRAS)
def test_what_is_advised_is_on_pypi_and_brings_the_module(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not this package itself, whose name on PyPI anybody could take."""
    module, requirements = EXTRAS[name]
    hide(monkeypatch, module)
    with pytest.raises(ModuleNotFoundError) as refusal, extra(name):
        import_module(module)
    advised = shlex.split(str(refusal.value).partition(": ")[2])
    assert advised == [sys.executable, "-m", "pip", "install", *requirements]
    pins = (ROOT / "constraints.txt").read_text()
    names = [Requirement(text).name for text in requirements]
    assert all(f"\n{x}==" in pins for x in names[1 if name in LARGE else 0 :])
