"""`launch/px4.launch.py` and its like under the real `launch`: what starts, and with what."""

from __future__ import annotations

from pathlib import Path

import pytest
from launching import Launcher, description, visit

FILES = "px4.launch.py", "ardupilot.launch.py", "betaflight.launch.py"


@pytest.mark.parametrize("file", FILES)
def test_every_argument_is_documented(file: str) -> None:
    declared = {argument.name: argument for argument in description(file).get_launch_arguments()}
    assert declared.keys() >= {"build", "work", "wipe", "home", "n_drones", "real_time_factor"}
    assert all(len(argument.description) > 20 for argument in declared.values())


@pytest.mark.parametrize(
    ("file", "port", "second"), [("px4.launch.py", 4560, 1), ("ardupilot.launch.py", 9002, 10)]
)
def test_the_simulator_starts_the_autopilots_behind_its_door(
    file: str, port: int, second: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (simulator,) = Launcher(file, tmp_path, monkeypatch)(
        1,
        build="~/build",
        work="flights",
        wipe="true",
        instance="1",
        home="47,8.5,400",
        n_drones="3",
        door_drones="[cf2,cf1]",
        real_time_factor="2",
    )
    name, given = file.partition(".")[0], simulator.parameters
    assert given["drones"] == ["cf0", "cf1", "cf2"]
    assert (given["door"], given["door_drones"]) == (name, ["cf2", "cf1"])
    assert given["drone_model"] == "hb_x500"
    assert given["autopilot.build"] == str(Path.home() / "build")
    assert (given["autopilot.work"], given["autopilot.wipe"]) == ("flights", True)
    assert given[f"{name}.port"] == port + second
    place = [given[f"{name}.{axis}"] for axis in ("latitude", "longitude", "altitude")]
    assert place == [47.0, 8.5, 400.0]
    assert given["real_time_factor"] == 2.0


def test_without_a_build_the_door_waits_for_autopilots_that_others_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (simulator,) = Launcher("px4.launch.py", tmp_path, monkeypatch)(1)
    assert simulator.parameters["px4.port"] == 4560
    assert not simulator.parameters.get("autopilot.build")
    assert "px4.latitude" not in simulator.parameters


def test_betaflight_starts_in_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, work = tmp_path / "betaflight_SITL", tmp_path / "work"
    program.write_text("#!/bin/sh\nexec sleep ${STAND_IN_SECONDS:-60}\n")
    program.chmod(0o755)
    work.mkdir()
    (work / "eeprom.bin").write_text("settings")
    processes = Launcher("betaflight.launch.py", tmp_path, monkeypatch)(
        3, build=str(program), work=str(work), wipe="true", gamepad="true"
    )
    by_name = {process.executable: process for process in processes}
    assert by_name["simulator"].parameters["door"] == "betaflight"
    assert by_name["simulator"].parameters["drones"] == ["cf0"]
    assert by_name["betaflight_SITL"].command[1:] == ["127.0.0.1"]
    assert "joy_node" in by_name
    assert not (work / "eeprom.bin").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"build": "b", "wipe": "maybe"}, "wipe: .*'maybe'"),
        ({"agent": "true"}, "agent: there is no MicroXRCEAgent"),
    ],
)
def test_impossible_arguments_are_refused(
    arguments: dict[str, str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises((ValueError, RuntimeError), match=message):
        visit("px4.launch.py", **arguments)


def test_settings_of_the_door_follow_from_the_other_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launched = Launcher("px4.launch.py", tmp_path, monkeypatch)
    (simulator,) = launched(1, door_settings="4570")
    assert simulator.parameters["px4.port"] == 4560
