"""~/save_checkpoint and ~/load_checkpoint: the simulation at one tick, in the file `checkpoint`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from std_srvs.srv import Trigger

from crazyflow_ros.runtime import Checkpoint, InvalidState

if TYPE_CHECKING:
    from crazyflow_ros.ros.simulator import Simulator

_TIMEOUT = 10.0  # s of wall time


class CheckpointServices:
    """Both name the tick; what fails changes nothing."""

    def __init__(self, simulator: Simulator) -> None:
        self._simulator, self._physics = simulator, simulator.physics
        group = simulator.waiting.group
        for name, callback in (("save", self._save), ("load", self._load)):
            simulator.create_service(
                Trigger, f"~/{name}_checkpoint", callback, callback_group=group
            )

    async def _save(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        try:
            path = self._path()
            future = self._physics.checkpoint()
            checkpoint = await self._simulator.waiting.result(future, _TIMEOUT)
            checkpoint.save(path)
            response.success = True
            response.message = f"{path} written, at tick {checkpoint.about['tick']}"
        except (InvalidState, ValueError, OSError) as error:
            response.message = str(error)
        return response

    async def _load(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        try:
            path = self._path()
            future = self._physics.restore(Checkpoint.load(path))
            snapshot = await self._simulator.waiting.result(future, _TIMEOUT)
            response.success = True
            response.message = f"{path} loaded, at tick {snapshot.tick}"
        except (InvalidState, ValueError, OSError) as error:
            response.message = str(error)
        return response

    def _path(self) -> str:
        path = str(self._simulator.get_parameter("checkpoint").value)
        if not path:
            raise ValueError("the parameter checkpoint names no file")
        return path


def declare(simulator: Simulator) -> None:
    """Add the services."""
    CheckpointServices(simulator)
