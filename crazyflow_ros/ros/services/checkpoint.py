"""~/save_checkpoint and ~/load_checkpoint: state of the simulation, in the file `checkpoint`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from std_srvs.srv import Trigger

from crazyflow_ros.ros.services.wind import WindParameters
from crazyflow_ros.runtime import Checkpoint

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host


class CheckpointServices:
    """Services whose responses name the tick; a failed call changes nothing."""

    def __init__(self, simulator: Host, wind: WindParameters) -> None:
        self._simulator, self._physics, self._wind = simulator, simulator.physics, wind
        simulator.create_service(Trigger, "~/save_checkpoint", self._save)
        simulator.create_service(Trigger, "~/load_checkpoint", self._load)

    async def _save(self, _request: Trigger.Request, _response: Trigger.Response) -> str:
        path, waiting = self._path(), self._simulator.waiting
        checkpoint = await waiting.result(self._physics.checkpoint())
        await waiting.result(self._simulator.worker.ask(lambda: checkpoint.save(path)))
        return f"{path} written, at tick {checkpoint.about['tick']}"

    async def _load(self, _request: Trigger.Request, _response: Trigger.Response) -> str:
        path, waiting = self._path(), self._simulator.waiting
        read = self._simulator.worker.ask(lambda: Checkpoint.load(path))
        checkpoint = await waiting.result(read)
        snapshot = await waiting.result(self._physics.restore(checkpoint))
        self._wind.follow_checkpoint()
        return f"{path} loaded, at tick {snapshot.tick}"

    def _path(self) -> str:
        path = str(self._simulator.get_parameter("checkpoint").value)
        if not path:
            raise ValueError("the parameter checkpoint is empty, expected a path")
        return path


def declare(simulator: Host, wind: WindParameters) -> None:
    """Create the services."""
    CheckpointServices(simulator, wind)
