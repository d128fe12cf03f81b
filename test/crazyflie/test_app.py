"""Apps on the app channel, with cflib and with the example of the firmware's own repository."""

from __future__ import annotations

import re
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from crazyflie_helpers import ECHO, Crazyflies, Link, connected, crazyflies, free_port, until
from other_packages import metadata
from paths import ROOT

from crazyflow_ros.crazyflie import LinkConfig
from crazyflow_ros.crazyflie.app import APPS, load_app
from crazyflow_ros.crazyflie.crtp import Packet, Port

pytest.importorskip("cflib", reason="cflib is not installed")

CHANNEL = 2  # of apps, on the port of the platform

# The C app of examples/app_appchannel_test in the firmware: the sum of three floats. And more.
APP = '''
import struct
from crazyflow_ros import flight


class Sum:
    def __init__(self, drone):
        self.drone, self.steps = drone, 0

    def receive(self, data):
        if data == b"height":
            self.drone.send(struct.pack("<ff", self.drone.log("stateEstimate.z"), self.steps))
        elif data == b"up":
            self.drone.set_parameter("ring.effect", 7)
            self.drone.command(flight.Takeoff(0.5))
            self.drone.print("going up")
        elif data == b"long":
            self.drone.send(bytes(31))
        else:
            x, y, z = struct.unpack("<fff", data)
            self.drone.send(struct.pack("<f", x + y + z))

    def step(self):
        self.steps += 1
        if self.steps == 500:
            raise RuntimeError("five hundred")


class Broken:
    def __init__(self, drone):
        raise OSError("no such deck")

    def receive(self, data):
        """Never."""


number = 3
'''


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("app") / "my_app.py"
    file.write_text(APP)
    return file


@pytest.fixture(scope="module")
def served(file: Path) -> Iterator[Crazyflies]:
    with crazyflies(2, LinkConfig(port=free_port(2), app=f"{file}:Sum")) as found:
        yield found


def ask(link: Link, data: bytes) -> bytes:
    return link.ask(Packet(Port.platform, CHANNEL, data)).data


def test_cflib_sends_and_receives_as_from_the_firmware_s_example(
    served: Crazyflies, tmp_path: Path
) -> None:
    with connected(served.uris[0], tmp_path) as cf:
        found: list[float] = []
        cf.appchannel.packet_received.add_callback(
            lambda data: found.extend(struct.unpack("<f", data))
        )
        for i in range(10):
            cf.appchannel.send_packet(struct.pack("<fff", i, i + 1, i + 2))
        until(lambda: len(found) == 10, "ten sums")
        assert found == [3.0 * i + 3 for i in range(10)]


def test_an_app_reads_logs_sets_parameters_and_flies(served: Crazyflies, tmp_path: Path) -> None:
    with connected(served.uris[1], tmp_path) as cf:
        texts: list[str] = []
        cf.console.receivedChar.add_callback(texts.append)
        cf.appchannel.send_packet(b"up")
        until(lambda: served.physics.snapshot.pos[1, 2] > 0.45, "the drone in the air")
        until(lambda: cf.param.get_value("ring.effect") == "7", "the parameter")
        assert "going up" in "".join(texts)
        answers: list[bytes] = []
        cf.appchannel.packet_received.add_callback(answers.append)
        cf.appchannel.send_packet(b"height")
        until(lambda: answers, "an answer")
        height, steps = struct.unpack("<ff", answers[0])
        assert height == pytest.approx(float(served.physics.snapshot.pos[1, 2]), abs=0.05)
        assert steps > 50


def test_the_app_of_the_page_adds_and_takes_off(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "guides" / "crazyflie.md").read_text()
    (example,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    file = tmp_path / "app_of_the_page.py"
    file.write_text(example)
    config = LinkConfig(port=free_port(1), app=f"{file}:Sum")
    with crazyflies(1, config) as found, connected(found.uris[0], tmp_path) as cf:
        answers: list[bytes] = []
        cf.appchannel.packet_received.add_callback(answers.append)
        cf.appchannel.send_packet(struct.pack("<fff", 1, 2, 3))
        until(lambda: answers, "an answer")
        assert struct.unpack("<f", answers[0]) == (6.0,)
        cf.appchannel.send_packet(b"up")
        until(lambda: found.physics.snapshot.pos[0, 2] > 0.45, "the drone in the air")


def test_what_an_app_raises_is_in_the_log_and_nothing_ends(served: Crazyflies) -> None:
    link = Link(served.uris[0])
    link.send(Packet(Port.platform, CHANNEL, b"odd"))
    link.send(Packet(Port.platform, CHANNEL, b"long"))
    assert ask(link, struct.pack("<fff", 1, 2, 3)) == struct.pack("<f", 6)
    where = r"my_app.py:"
    until(lambda: any("app failed in receive: error:" in line for line in served.log), "a line")
    line = next(line for line in served.log if "app failed in receive" in line)
    assert line.startswith("cf0: ") and where in line
    until(lambda: any("30 bytes, got 31" in line for line in served.log), "a line")
    until(lambda: any("RuntimeError: five hundred" in line for line in served.log), "a line")
    assert link.ask(ECHO) == ECHO


def test_a_reset_begins_the_app_anew(served: Crazyflies) -> None:
    link = Link(served.uris[0])
    until(lambda: struct.unpack("<ff", ask(link, b"height"))[1] > 20, "some steps")
    served.physics.state.reset().result(60.0)
    until(lambda: struct.unpack("<ff", ask(link, b"height"))[1] < 20, "few steps")


def test_without_an_app_nobody_answers(tmp_path: Path) -> None:
    """As in the firmware, whose queue nobody reads."""
    with crazyflies(1) as served:
        link = Link(served.uris[0])
        for _ in range(20):
            link.send(Packet(Port.platform, CHANNEL, b"hello"))
        assert link.ask(ECHO) == ECHO
        assert [line for line in served.log if "app channel" in line] == [
            "cf0: no app reads the packets of the app channel"
        ]
        assert served.server.malformed == 0


def test_an_app_that_does_not_start_is_named_once(file: Path) -> None:
    with crazyflies(1, LinkConfig(port=free_port(1), app=f"{file}:Broken")) as served:
        link = Link(served.uris[0])
        link.send(Packet(Port.platform, CHANNEL, b"hello"))
        assert link.ask(ECHO) == ECHO
        until(lambda: any("OSError: no such deck" in line for line in served.log), "a line")
        time.sleep(0.2)
        assert len([line for line in served.log if "no such deck" in line]) == 1


def test_apps_of_packages_have_names(
    file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    package = metadata(tmp_path, "sums", {APPS: {"sum": "my_app:Sum", "three": "my_app:number"}})
    for folder in (package, file.parent):
        monkeypatch.syspath_prepend(str(folder))
    assert load_app("sum") is sys.modules["my_app"].Sum  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="the app 'three' has to be a class"):
        load_app("three")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing", "no package offers the app 'nothing'"),
        ("nothing.py:App", r"'nothing.py:App' cannot be loaded: FileNotFoundError: .*nothing.py"),
        ("{file}:Missing", "cannot be loaded: AttributeError: .*Missing"),
        ("{file}:number", "has to be a class whose instances have `receive` or `step`, got 3"),
        ("no_such_module:App", "cannot be loaded: ModuleNotFoundError"),
    ],
)
def test_apps_that_are_none_are_refused(file: Path, name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_app(name.format(file=file))
