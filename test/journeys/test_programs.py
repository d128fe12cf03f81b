"""Journeys of a Crazyflie's owner, an operator and somebody with nothing but a terminal."""

from __future__ import annotations

import re
import socket
import sys
from pathlib import Path

import pytest
from browser import COARSE, Tab, needs_browser
from command_processes import command
from page_tab import Tab as PageTab
from page_tab import until
from ports import free_ports
from ros_client import RosProcess, own_domain

from benchmark.chromium import open_chromium
from crazyflow_ros.client import SimulatorClient
from journeys.log import simulator

DOMAIN = own_domain("test_journeys_programs")
OWNER = """
import sys, time
import cflib.crtp
from cflib.crazyflie import Crazyflie
from cflib.crazyflie.log import LogConfig
from cflib.crazyflie.syncCrazyflie import SyncCrazyflie
from cflib.crazyflie.syncLogger import SyncLogger
from cflib.utils.uri_helper import uri_from_env

def heights(scf, n):
    config = LogConfig("place", period_in_ms=100)
    config.add_variable("stateEstimate.z", "float")
    with SyncLogger(scf, config) as log:
        return [values["stateEstimate.z"] for _, (_, values, _) in zip(range(n), log)]

cflib.crtp.init_drivers()
with SyncCrazyflie(uri_from_env(default=""), cf=Crazyflie(rw_cache=sys.argv[1])) as scf:
    scf.wait_for_params()
    scf.cf.param.set_value("stabilizer.controller", "1")
    commander = scf.cf.high_level_commander
    for height in (0.5, 0.8):
        commander.takeoff(height, 2.0)
        time.sleep(2.5)
        print("hovers", abs(heights(scf, 3)[-1] - height) < 0.1)  # PID overshoots
        commander.go_to(0.5, 0.0, height, 0.0, 2.0)
        time.sleep(2.5)
        commander.land(0.0, 2.0)
        time.sleep(3.0)
        print("stands", heights(scf, 3)[-1] < 0.05)
    commander.stop()
"""


@pytest.fixture(autouse=True)
def own_ros_domain(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of scripts in this process."""
    monkeypatch.setenv("ROS_DOMAIN_ID", str(DOMAIN))


def test_an_owner_flies_a_script_of_cflib_while_the_page_is_open(tmp_path: Path) -> None:
    pytest.importorskip("cflib", reason="cflib is not installed")
    pytest.importorskip("viser", reason="the page needs viser")
    (tmp_path / "script.py").write_text(OWNER)
    port = free_ports()
    program = [sys.executable, "-m", "crazyflow_ros.crazyflie", "--view", "--port", str(port)]
    script = [sys.executable, str(tmp_path / "script.py"), str(tmp_path / "cache")]
    with RosProcess([*program, "--", *script], DOMAIN) as process:
        process.wait_for("http://127.0.0.1:", 300.0)
        page = re.search(r"http://127.0.0.1:(\d+)", process.log)
        assert page is not None
        with PageTab(int(page[1])) as tab:
            until(lambda: tab.frames > 10, "pictures of the flight")
            assert process.wait(300.0) == 0, process.log
        log = process.log
    told = [line for line in log.splitlines() if line.startswith(("hovers", "stands"))]
    assert told == ["hovers True", "stands True"] * 2, log
    assert not re.search("warn|error|traceback", log, re.IGNORECASE), log


@needs_browser
def test_an_operator_steers_on_the_page_while_a_script_spawns_and_deletes() -> None:
    port = free_ports(kind=socket.SOCK_STREAM)
    page = [sys.executable, "-m", "crazyflow_ros.view", "--port", str(port), "--no-browser"]
    with (
        simulator(DOMAIN, "drones:=[cf0,cf1]", "max_drones:=4", "real_time_factor:=3.0"),
        RosProcess(page, DOMAIN) as process,
        open_chromium() as browser,
        SimulatorClient() as simulation,
    ):
        process.wait_for("The page is at ")
        tab = Tab(browser, f"http://127.0.0.1:{port}/?{COARSE}", (1280, 800))
        tab.page.wait_for_function("document.body.innerText.includes('cf0')")
        tab.page.keyboard.press("Space")  # takes off
        z = lambda name: simulation.world.poses()[name].position.z  # noqa: E731
        simulation.wait(lambda: z("cf0") > 0.3, "cf0 does not take off")
        for turn in range(2):
            simulation.world.spawn("guest", 2.0, 1.0)
            tab.page.wait_for_function("document.body.innerText.includes('3 drones')")
            simulation.drone("guest").takeoff(0.6)
            simulation.world.spawn("gate", 3.0, 0.0, 1.0, model="gate")
            simulation.world.remove("guest")
            tab.page.wait_for_function("document.body.innerText.includes('2 drones')")
            simulation.world.remove("gate")
            assert z("cf0") > 0.3, turn
        tab.page.keyboard.press("Space")  # lands
        simulation.wait(lambda: z("cf0") < 0.05, "cf0 does not land")
        assert not tab.errors
        tab.close()
        assert process.end()[0] == 0
        assert "Traceback" not in process.log and "ERROR" not in process.log, process.log


def run(words: str, code: int = 0) -> str:
    """What a command in a terminal prints."""
    done = command(words)
    assert done.returncode == code and "Traceback" not in done.stderr, (words, done)
    return done.stdout


def test_somebody_far_away_does_everything_by_commands(tmp_path: Path) -> None:
    recording, folder = tmp_path / "flight.mcap", f"checkpoint_folder:={tmp_path}"
    with simulator(DOMAIN, "drones:=[cf0,cf1]", "max_drones:=4", "real_time_factor:=5.0", folder):
        assert "cf1" in run("list")
        run(f"record start {recording}")
        assert "cf0 hovers at" in run("takeoff all 0.8")
        assert "cf0 hovers at" in run("go-to cf0 0.5 0.5 1.0 --duration 2")
        run("spawn cf7 2 0")
        assert "cf7 hovers at" in run("takeoff cf7 0.5")
        run("wind set 0 1 --gusts 0")
        assert "1" in run("wind get")
        run("pause")
        run("checkpoint save half_way.npz")
        run("step 50")
        run("checkpoint restore half_way.npz")
        run("resume")
        assert "cf7 stands at" in run("land cf7")
        run("remove cf7")
        (tmp_path / "all.yaml").write_text(run("param dump"))
        assert "wind" in run("param describe wind")
        run("param set real_time_factor 6.0")
        assert "real-time factor" in run("status")
        assert "cf0 stands at" in run("land all")
        assert "message" in run("record stop")
        run("world load room")
        run("resume")
        assert "room" in run("world current")
        run("reset")
        assert "z:" in run("echo /cf0/pose --once")
        assert "idle" in run("list")
        run("call /cf0/reset '{}'")
        run("takeoff cf9", 1)
    assert recording.stat().st_size
