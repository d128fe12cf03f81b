"""~/save_checkpoint and ~/load_checkpoint: state of the simulation, in the file `checkpoint`.

Anybody in the ROS domain can name that file. So it is in one folder, which is fixed at the start.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from std_srvs.srv import Trigger

from crazyflow_ros.checks.limits import unknown
from crazyflow_ros.ros.services.wind_parameters import WindParameters
from crazyflow_ros.runtime import Checkpoint

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host


class CheckpointServices:
    """Services whose responses name the tick; a failed call changes nothing."""

    def __init__(self, simulator: Host, wind: WindParameters) -> None:
        self._simulator, self._physics, self._wind = simulator, simulator.physics, wind
        self._folder = _folder(simulator.parameters.checkpoint_folder)
        simulator.create_service(Trigger, "~/save_checkpoint", self._save)
        simulator.create_service(Trigger, "~/load_checkpoint", self._load)

    async def _save(self, _request: Trigger.Request, _response: Trigger.Response) -> str:
        path, waiting = self._path(), self._simulator.waiting
        checkpoint = await waiting.result(self._physics.state.checkpoint())
        await waiting.result(self._simulator.worker.ask(lambda: _write(checkpoint, path)))
        return f"{path} written, at tick {checkpoint.about['tick']}"

    async def _load(self, _request: Trigger.Request, _response: Trigger.Response) -> str:
        path, waiting = self._path(), self._simulator.waiting
        if not path.exists():
            names = sorted(os.listdir(self._folder)) if self._folder.is_dir() else []
            raise ValueError(f"{unknown('checkpoint', path.name, names)} in {self._folder}")
        read = self._simulator.worker.ask(lambda: Checkpoint.load(path))
        checkpoint = await waiting.result(read)
        snapshot = await waiting.result(self._physics.state.restore(checkpoint))
        self._wind.follow_checkpoint()
        return f"{path} loaded, at tick {snapshot.tick}"

    def _path(self) -> Path:
        name = str(self._simulator.get_parameter("checkpoint").value)
        if not name:
            raise ValueError("the parameter checkpoint is empty, expected the name of a file")
        path = self._folder / name
        if path.is_symlink():
            raise ValueError(f"{path} is a link, expected a file of this folder")
        return path


def _folder(given: str) -> Path:
    """Return the folder of checkpoints, which need not exist yet."""
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    folder = given or os.path.join(state, "crazyflow_ros", "checkpoints")
    return Path(os.path.realpath(os.path.expanduser(folder)))


def _write(checkpoint: Checkpoint, path: Path) -> None:
    """Write a file, in a folder that is this user's alone if there is none."""
    path.parent.mkdir(0o700, parents=True, exist_ok=True)
    checkpoint.save(path)
