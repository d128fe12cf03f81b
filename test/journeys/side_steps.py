"""Steps of other processes: readers, recorders, programs that show, scripts, a manager."""

from __future__ import annotations

import asyncio
import random
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from crazyflie_interfaces.srv import Takeoff
from foxglove_client import FoxgloveClient
from mcap.reader import make_reader
from ports import free_ports
from simulation_interfaces.msg import Resource
from simulation_interfaces.srv import DeleteEntity, SpawnEntity
from std_srvs.srv import Trigger

from crazyflow_ros.client.service_calls import problem_of
from journeys.log import is_usual
from journeys.model import LANES, Model
from journeys.pilot import fly
from journeys.sides import LET_GO, Fork, Program
from journeys.step import Broken, Step, choose
from journeys.world_steps import SpawnDrone, guest, pose_of

if TYPE_CHECKING:
    from journeys.walk import Walk

MOST_READERS = 3
COMMAND = 120.0  # s of wall time
COMPILING = 300.0  # s of wall time
SHOWN = 300_000.0  # ms of wall time


@dataclass(frozen=True)
class Read(Step):
    """Somebody begins to read all topics."""

    reliable: bool
    slow: bool
    weight: ClassVar[float] = 3.0

    @classmethod
    def draw(cls, model: Model, rng: random.Random) -> Self:
        return cls(rng.random() < 0.5, rng.random() < 0.3)

    def fits(self, walk: Walk) -> bool:
        return walk.node is not None and len(walk.sides.of("reader")) < MOST_READERS

    def take(self, walk: Walk) -> None:
        walk.sides.read(reliable=self.reliable, slow=self.slow)


@dataclass(frozen=True)
class Leave(Step):
    """A process beside the simulator ends, or is killed."""

    kind: str
    killed: bool
    weight: ClassVar[float] = 4.0

    @classmethod
    def draw(cls, model: Model, rng: random.Random) -> Self:
        kinds = ("reader", "reader", "reader", "recorder", "foxglove", "page", "manager")
        return cls(rng.choice(kinds), rng.random() < 0.5)

    def fits(self, walk: Walk) -> bool:
        return bool(walk.sides.of(self.kind))

    def take(self, walk: Walk) -> None:
        side = walk.sides.take(self.kind)
        if self.kind == "manager":
            for drone in walk.life.by_door:
                walk.model.drones[drone].wild = True
                # Also after a reset: while time stands still, nobody misses it.
                walk.model.expect(f"^{drone}: its controller manager, process")
        if self.killed:
            side.kill()
        else:
            side.end()


@dataclass(frozen=True)
class Record(Step):
    """Somebody records all topics."""

    weight: ClassVar[float] = 1.0

    def fits(self, walk: Walk) -> bool:
        return walk.node is not None and not walk.sides.of("recorder")

    def take(self, walk: Walk) -> None:
        path = walk.folder / f"topics{len(walk.taken)}.mcap"
        program = Program(walk.domain, ["-m", "crazyflow_ros.client.recorder", str(path)])
        program.process.wait_for("records into")
        walk.sides.add("recorder", program)


@dataclass(frozen=True)
class StopRecording(Step):
    """The recording ends by its service, and its file can be read."""

    def fits(self, walk: Walk) -> bool:
        return walk.node is not None and bool(walk.sides.of("recorder"))

    def take(self, walk: Walk) -> None:
        recorder = walk.sides.take("recorder")
        walk.ask(Trigger, "crazyflow_recorder/stop")
        walk.model.expect("^there is no service /crazyflow_recorder/stop")  # for our client of it
        code = recorder.process.wait()
        if code not in (0, LET_GO) or " messages in " not in recorder.log:
            raise Broken(f"a recorder ends with {code}", recorder.log)
        path = Path(recorder.log.partition("records into ")[2].partition("\n")[0])
        with path.open("rb") as file:
            summary = make_reader(file).get_summary()
        if summary is None or not summary.statistics.message_count:
            raise Broken("a recording is empty", str(path))
        path.unlink()


@dataclass(frozen=True)
class Show(Step):
    """Foxglove's server or the page starts."""

    what: str
    weight: ClassVar[float] = 0.7

    @classmethod
    def draw(cls, model: Model, rng: random.Random) -> Self:
        return cls(rng.choice(("foxglove", "page")))

    def fits(self, walk: Walk) -> bool:
        return walk.node is not None and not walk.sides.of(self.what)

    def take(self, walk: Walk) -> None:
        if self.what == "foxglove":
            words = ["-m", "crazyflow_ros.view.foxglove", "--ros-args", "-p", "port:=0"]
            program = Program(walk.domain, words)
            program.process.wait_for("ready: ws://")
        else:
            port = free_ports(kind=socket.SOCK_STREAM)
            words = ["-m", "crazyflow_ros.view", "--port", str(port), "--no-browser"]
            program = Program(walk.domain, [*words, "--recordings", str(walk.folder)])
            program.process.wait_for("The page is at ")
        walk.sides.add(self.what, program)


@dataclass(frozen=True)
class UseFoxglove(Step):
    """A client of Foxglove looks at topics, and asks for the parameters."""

    weight: ClassVar[float] = 3.0

    def fits(self, walk: Walk) -> bool:
        return bool(walk.sides.of("foxglove")) and walk.node is not None

    def take(self, walk: Walk) -> None:
        url = re.search(r"ready: (ws://\S+)", walk.sides.of("foxglove")[0].log)
        assert url is not None
        drone, moves = next(iter(walk.model.drones)), walk.model.moves

        async def look() -> None:
            async with FoxgloveClient(url[1]) as client:
                topics = {"/clock", f"/{drone}/odom", "/crazyflow/scene"}
                await client.until(
                    lambda: topics <= {c["topic"] for c in client.bridge.channels.values()},
                    f"channels {topics}",
                )
                for topic in topics:
                    await client.bridge.subscribe(topic)
                if moves:
                    await client.until(lambda: client.messages[f"/{drone}/odom"], "odometry")

        # Playwright has the loop of this thread.
        with ThreadPoolExecutor(1) as thread:
            try:
                thread.submit(asyncio.run, asyncio.wait_for(look(), COMMAND)).result()
            except (AssertionError, TimeoutError, OSError) as error:
                raise Broken(
                    "Foxglove shows nothing", f"{error}\n{walk.sides.of('foxglove')[0].log}"
                ) from None


@dataclass(frozen=True)
class UsePage(Step):
    """Somebody opens the page in a browser, where drones are to be seen, and closes it."""

    weight: ClassVar[float] = 1.5

    def fits(self, walk: Walk) -> bool:
        return bool(walk.sides.of("page")) and walk.browser is not None and walk.node is not None

    def take(self, walk: Walk) -> None:
        from browser import COARSE, Tab
        from playwright.sync_api import TimeoutError as NotShown

        page = walk.sides.of("page")[0]
        url = re.search(r"The page is at (\S+)", page.log)
        assert url is not None
        drones = list(walk.model.drones)  # one of which is selected
        tab = Tab(walk.browser, f"{url[1]}?{COARSE}")
        tab.page.set_default_timeout(SHOWN)
        try:
            shown = "text => document.body.innerText.includes(text)"
            if len(drones) > 1:
                tab.page.wait_for_function(shown, arg=f"{len(drones)} drones")
            some = "names => names.some(name => document.body.innerText.includes(name))"
            tab.page.wait_for_function(some, arg=drones)
            tab.page.keyboard.press("?")
            tab.page.keyboard.press("Escape")
            if tab.errors:
                raise Broken("the page has an error", "\n".join(tab.errors))
        except NotShown:
            seen = tab.page.evaluate("document.body.innerText")
            text = "\n".join([f"none of {drones} in {seen!r}", *tab.errors, page.log[-2000:]])
            raise Broken("the page does not show a drone", text) from None
        finally:
            tab.close()


@dataclass(frozen=True)
class FlyByScript(Step):
    """A script of cflib flies a drone, and lands it."""

    drone: str
    weight: ClassVar[float] = 6.0

    @classmethod
    def draw(cls, model: Model, rng: random.Random) -> Self:
        return cls(rng.choice([name for name in model.drones if name.startswith("cf")] or [""]))

    def fits(self, walk: Walk) -> bool:
        model = walk.model
        if walk.life.variant != "crazyflie" or not model.moves or model.factor not in (1.0, 5.0):
            return False
        return self.drone in model.drones and model.drones[self.drone].stands and not model.storm

    def take(self, walk: Walk) -> None:
        assert walk.node is not None
        uri = f"udp://127.0.0.1:{walk.port + int(self.drone[2:])}"
        script = str(Path(__file__).with_name("cflib_flight.py"))
        done = walk.run(script, uri, str(walk.folder / "cflib"))
        if done.returncode or "at 0." not in done.stdout:
            raise Broken("a script of cflib fails", done.stdout + done.stderr)
        walk.model.drones[self.drone].wild = True  # where it lands depends on wall time


_LOOKS = (
    "list",
    "status",
    "param list",
    "param get wind",
    "param dump",
    "world list",
    "topics *odom*",
    "services",
    "wind get",
)
_NEED_A_WORLD = ("list", "world current")
_NEED_TIME = ("echo /clock --once", "transform map {drone}/base_link")


@dataclass(frozen=True)
class Command(Step):
    """A command in a terminal."""

    words: str
    weight: ClassVar[float] = 3.0

    @classmethod
    def draw(cls, model: Model, rng: random.Random) -> Self:
        looks = [*_LOOKS, *_NEED_A_WORLD, *_NEED_TIME]
        return cls(rng.choice(looks).format(drone=rng.choice(list(model.drones))))

    def fits(self, walk: Walk) -> bool:
        model, words = walk.model, self.words
        if walk.node is None or (not model.world and words in _NEED_A_WORLD):
            return False
        if words.startswith("transform"):
            name = words.split()[-1].partition("/")[0]
            return model.moves and name in model.drones
        return model.moves or words not in _NEED_TIME

    def take(self, walk: Walk) -> None:
        done = walk.run("-m", "crazyflow_ros", *self.words.split())
        if done.returncode or "Traceback" in done.stderr or not done.stdout:
            raise Broken(f"the command {self.words.split()[0]} fails", done.stdout + done.stderr)


@dataclass(frozen=True)
class FlyByCommand(Step):
    """A drone takes off and lands by commands in a terminal, which wait until it has."""

    drone: str
    weight: ClassVar[float] = 1.5

    @classmethod
    def draw(cls, model: Model, rng: random.Random) -> Self | None:
        name = choose(rng, model.pilotable)
        return None if name is None else cls(name)

    def fits(self, walk: Walk) -> bool:
        model = walk.model
        if not model.moves or self.drone not in model.pilotable or model.factor == 0.5:
            return False
        return model.drones[self.drone].stands and not model.storm

    def take(self, walk: Walk) -> None:
        for words in (f"takeoff {self.drone} 0.8", f"land {self.drone}"):
            done = walk.run("-m", "crazyflow_ros", *words.split())
            if done.returncode or "Traceback" in done.stderr:
                what = words.split()[0]
                raise Broken(f"the command {what} fails", done.stdout + done.stderr)


@dataclass(frozen=True)
class FlyDemo(Step):
    """The demonstration's program flies all drones."""

    weight: ClassVar[float] = 1.0

    def fits(self, walk: Walk) -> bool:
        model = walk.model
        if not model.moves or walk.life.by_door or model.factor in (0.5, 1.0):
            return False
        return all(drone.stands for drone in model.drones.values()) and not model.storm

    def take(self, walk: Walk) -> None:
        words = ["-m", "crazyflow_ros.client.figure_eight", "--ros-args", "-p", "duration:=20.0"]
        done = walk.run(*words)
        failures = re.findall("FAILED: (.*)", done.stderr)
        of_log = [reason.removeprefix("the simulator warned: ") for reason in failures]
        # On a machine that cannot keep up the path comes late, and a filter errs by centimetres.
        reached = re.search(r"real-time factor ([\d.]+);", done.stdout)
        late = reached is not None and float(reached[1]) < 0.8 * walk.model.factor
        inexact = late or walk.life.variant in ("kalman", "pid", "policy")
        if bool(done.returncode) != bool(failures) or not all(
            is_usual(warning)
            or walk.model.expects(warning)  # of this process, which knew drones that are gone
            or (inexact and "mean tracking error" in warning)
            for reason in of_log
            for warning in re.split("; (?!did you mean)", reason)
        ):
            raise Broken("the demonstration fails", done.stdout + done.stderr)
        walk.pass_time(12.0)  # in which nothing happens to a drone that has landed


@dataclass(frozen=True)
class Manage(Step):
    """The stand-in of a controller manager takes its drone and lifts it."""

    height: float
    weight: ClassVar[float] = 5.0

    @classmethod
    def draw(cls, model: Model, rng: random.Random) -> Self:
        return cls(round(rng.uniform(0.4, 1.2), 2))

    def fits(self, walk: Walk) -> bool:
        return bool(walk.life.by_door) and not walk.sides.of("manager") and walk.model.moves

    def take(self, walk: Walk) -> None:
        (drone,) = walk.life.by_door
        walk.sides.add(
            "manager", Fork(fly, walk.life.shared_memory(walk.folder), drone, self.height)
        )
        walk.model.drones[drone].wild = True
        walk.pass_time(0.5)


@dataclass(frozen=True)
class Burst(Step):
    """A drone comes, is told and asked many things, and goes, and nobody waits for an answer."""

    lane: int
    calls: int
    pauses: tuple[float, ...]
    weight: ClassVar[float] = 4.0

    @classmethod
    def draw(cls, model: Model, rng: random.Random) -> Self | None:
        lane = choose(rng, model.free_lanes())
        pauses = tuple(rng.choice((0.0, 0.02, 0.1)) for _ in range(4))
        return None if lane is None else cls(lane, rng.randint(1, 4), pauses)

    def fits(self, walk: Walk) -> bool:
        return SpawnDrone(self.lane).fits(walk)

    def take(self, walk: Walk) -> None:
        model, client, name = walk.model, walk.client, guest(self.lane)
        model.expect(rf"^/?{name}[/: ]|^there is no \w+ /{name}/|^nobody listens on /{name}/")
        resource, pose = Resource(uri="cf2x_L250"), pose_of(*LANES[self.lane])
        request = {"name": name, "entity_resource": resource, "initial_pose": pose}
        sent = [client.call_async(SpawnEntity, "crazyflow/spawn_entity", COMPILING, **request)]
        publisher = client.node.create_publisher(type(pose), f"{name}/cmd_pose", 10)
        for pause in self.pauses:
            for _ in range(self.calls):
                sent.append(client.call_async(Takeoff, f"{name}/takeoff", 1.0, height=1.0))
                publisher.publish(pose)
            client.spin_for(pause)
        delete = DeleteEntity, "crazyflow/delete_entity", COMPILING
        sent.append(client.call_async(*delete, entity=name))
        sent.append(client.call_async(Trigger, f"{name}/reset", 1.0))
        what = "a burst is not answered"
        walk.until(lambda: all(call.done() for call in sent), what, 2 * COMPILING)
        client.node.destroy_publisher(publisher)
        for call in (sent[0], sent[-2]):
            if error := call.exception():
                raise Broken("a burst is not answered", str(error))
        if problem_of(sent[-2].result()):  # services have no order: it overtook the spawn
            walk.ask(DeleteEntity, "crazyflow/delete_entity", entity=name)
