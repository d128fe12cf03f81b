"""Contacts between chosen parts of a scene."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Literal, get_args

import mujoco
import numpy as np

from crazyflow_ros.checks.limits import unknown
from crazyflow_ros.sensors.backend import Array, Backend
from crazyflow_ros.sensors.contact_match import ContactMatch
from crazyflow_ros.sensors.contact_reduction import Reduction, reduce_contacts
from crazyflow_ros.sensors.sensor import Sensor, SensorCfg, WorldIds
from crazyflow_ros.sensors.visualizer import Color, Visualizer

_VECTORS = ("force", "torque", "pos", "normal", "tangent")
_FIELDS = ("found", "dist", *_VECTORS)
_HISTORY = ("force", "torque", "dist")

_PLACE_COLOR: Color = (0.9, 0.6, 0.2, 1.0)
_FORCE_COLOR: Color = (0.7, 0.9, 0.9, 0.8)

_log = logging.getLogger(__name__)


@dataclass
class ContactSensorCfg(SensorCfg):
    """Contacts of parts of the scene, the P primaries, with a secondary or with anything.

    Raises:
        ValueError: Fields, reduction or policy are unknown or do not fit together.
    """

    primary: ContactMatch
    """One side of the contacts; it may match many."""
    secondary: ContactMatch | None = None
    """The other side; None for anything."""
    fields: tuple[str, ...] = ("found", "force")
    """Fields of `ContactData` to fill: any of found, force, torque, dist, pos, normal, tangent."""
    reduce: Reduction = "maxforce"
    """Which contacts fill the `num_slots` slots: any, the deepest, those of the greatest force, or
    the sum of all as one."""
    num_slots: int = 1
    """Contacts reported per primary."""
    secondary_policy: Literal["first", "any", "error"] = "first"
    """Policy if `secondary` matches several: take the first, take anything, or refuse."""
    track_air_time: bool = False
    """Whether to measure times in contact and in the air."""
    global_frame: bool = False
    """Whether force and torque are in world axes instead of those of the contact."""
    history_length: int = 0
    """Number of past updates for which force, torque and dist are kept."""
    debug: bool = False
    """Whether to log the names that the patterns have matched."""

    def __post_init__(self) -> None:
        if not self.fields:
            raise ValueError(f"{self.name}: fields is empty; choose from {', '.join(_FIELDS)}")
        for field in self.fields:
            if field not in _FIELDS:
                raise ValueError(f"{self.name}: {unknown('field', field, _FIELDS)}")
        if self.reduce not in get_args(Reduction):
            kinds = get_args(Reduction)
            raise ValueError(f"{self.name}: {unknown('reduction', self.reduce, kinds)}")
        if self.secondary_policy not in (policies := ("first", "any", "error")):
            text = unknown("secondary_policy", self.secondary_policy, policies)
            raise ValueError(f"{self.name}: {text}")
        if self.num_slots < 1:
            raise ValueError(f"{self.name}: num_slots must be at least 1, got {self.num_slots}")
        if self.history_length < 0:
            got = f"got {self.history_length}"
            raise ValueError(f"{self.name}: history_length must not be negative, {got}")
        if self.reduce == "netforce":
            meaningless = sorted({"dist", "normal", "tangent"} & set(self.fields))
            if meaningless or self.num_slots > 1:
                what = ", ".join(meaningless) if meaningless else f"{self.num_slots} slots"
                raise ValueError(f"{self.name}: the sum of all contacts has no {what}")
        if self.track_air_time and "found" not in self.fields:
            raise ValueError(f"{self.name}: track_air_time needs the field 'found'")
        if self.history_length and not set(_HISTORY) & set(self.fields):
            known = " or ".join(_HISTORY)
            raise ValueError(f"{self.name}: history_length needs the field {known}")

    def build(self) -> ContactSensor:
        """Build the sensor."""
        return ContactSensor(self)


@dataclass(frozen=True)
class ContactData:
    """Contacts of B worlds; fields that were not requested are None.

    N = P * num_slots, primary by primary; a slot without a contact is zero. Force and torque are
    those of the primary on the secondary; those on the primary are the negative.
    """

    found: Array | None = None
    """Number of contacts before reduction, shape (B, N)."""
    force: Array | None = None
    """Force [N], shape (B, N, 3): along normal, tangent and their cross product, or in world axes
    with `global_frame` or "netforce"."""
    torque: Array | None = None
    """Torque about `pos` [N m], in the axes of the force, shape (B, N, 3)."""
    dist: Array | None = None
    """Distance of the surfaces [m], negative in penetration, shape (B, N)."""
    pos: Array | None = None
    """Position in the world [m], shape (B, N, 3)."""
    normal: Array | None = None
    """Unit vector from primary to secondary, world axes, shape (B, N, 3)."""
    tangent: Array | None = None
    """Unit vector in the plane of the contact, world axes, shape (B, N, 3)."""
    current_air_time: Array | None = None
    """Time since the last contact [s], zero in contact, shape (B, P)."""
    last_air_time: Array | None = None
    """Duration of the last phase in the air [s], shape (B, P)."""
    current_contact_time: Array | None = None
    """Time since contact began [s], zero in the air, shape (B, P)."""
    last_contact_time: Array | None = None
    """Duration of the last phase in contact [s], shape (B, P)."""
    force_history: Array | None = None
    """Forces of the last H updates, newest first, shape (B, N, H, 3)."""
    torque_history: Array | None = None
    """Torques of the last H updates, newest first, shape (B, N, H, 3)."""
    dist_history: Array | None = None
    """Distances of the last H updates, newest first, shape (B, N, H)."""


class ContactSensor(Sensor[ContactData]):
    """Contacts as MuJoCo's own contact sensors report them, with any back end.

    It needs no sensors in the model (mjlab adds one for each primary and field).
    """

    def __init__(self, cfg: ContactSensorCfg) -> None:
        super().__init__()
        self.cfg = cfg
        self.primary_names: tuple[str, ...] = ()
        """Names of the primaries in the model, in the order of the data; after `initialize`."""

    def edit_spec(self, spec: mujoco.MjSpec) -> None:
        """Add nothing: contacts need no elements in the model."""

    def initialize(self, backend: Backend) -> None:
        """Expand the patterns.

        Raises:
            ValueError: A pattern does not match, or forces are needed and the back end has none.
        """
        cfg, model, xp = self.cfg, backend.model, backend.xp
        if not backend.contact_forces:
            forces = sorted({"force", "torque"} & set(cfg.fields))
            if forces or cfg.reduce in ("maxforce", "netforce"):
                what = ", ".join(forces) or f"reduce {cfg.reduce!r}"
                raise ValueError(
                    f"{cfg.name}: {what}: contacts of this back end have no forces, only found, "
                    "dist, pos, normal and tangent, with reduce 'mindist' or 'none'"
                )
        self.primary_names = tuple(cfg.primary.names(model))
        secondary, name = np.ones(model.ngeom + 1, bool), self._secondary(model)
        if cfg.secondary is not None and name:
            secondary = cfg.secondary.members(model, name)
        secondary[-1] = False
        if cfg.debug:
            _log.info("%s: %s against %s", cfg.name, self.primary_names, name or "anything")
        primaries = np.array([cfg.primary.members(model, name) for name in self.primary_names])
        self._primaries, self._others = xp.asarray(primaries), xp.asarray(secondary)
        super().initialize(backend)
        shape = (backend.n_worlds, len(self.primary_names))
        self._times = {
            name: xp.zeros(shape) for name in ContactData.__annotations__ if name.endswith("_time")
        }
        slots = (shape[0], shape[1] * self.cfg.num_slots, self.cfg.history_length)
        self._history = {
            field: xp.zeros((*slots, 3) if field in _VECTORS else slots)
            for field in _HISTORY
            if self.cfg.history_length and field in self.cfg.fields
        }

    def update(self, dt: float) -> None:
        """Update times and history after a simulation step of `dt` [s]."""
        super().update(dt)
        if not (self.cfg.track_air_time or self._history):
            return
        now, xp = self._fields(), self.backend.xp
        for field, past in self._history.items():
            self._history[field] = xp.concatenate([now[field][:, :, None], past[:, :, :-1]], axis=2)
        if self.cfg.track_air_time:
            found = now["found"].reshape(len(now["found"]), len(self.primary_names), -1)
            touching = (found > 0).any(axis=-1)
            self._advance("air", ~touching, dt)
            self._advance("contact", touching, dt)

    def reset(self, ids: WorldIds = None) -> None:
        """Clear times and history of worlds."""
        super().reset(ids)
        worlds = np.zeros(self.backend.n_worlds, bool)
        worlds[slice(None) if ids is None else ids] = True
        for kept in (self._times, self._history):
            for name, values in kept.items():
                these = worlds.reshape(-1, *[1] * (values.ndim - 1))
                kept[name] = self.backend.xp.where(these, 0.0, values)

    def compute_first_contact(self, dt: float, abs_tol: float = 1e-6) -> Array:
        """Whether contact began within the last `dt` [s], shape (B, P)."""
        return self._began("contact", dt, abs_tol)

    def compute_first_air(self, dt: float, abs_tol: float = 1e-6) -> Array:
        """Whether contact ended within the last `dt` [s], shape (B, P)."""
        return self._began("air", dt, abs_tol)

    def debug_vis(self, visualizer: Visualizer) -> None:
        """Draw positions of contacts and forces on the primaries, scaled as in MuJoCo."""
        if not self.cfg.debug_vis:
            return
        model, size = self.backend.model, visualizer.meansize
        fields = self._reduced()
        if "force" in fields and "normal" in fields:
            fields["force"] = self._in_world(fields, fields["force"])
        read = {name: np.asarray(values) for name, values in fields.items()}
        length = model.vis.map.force / model.stat.meanmass  # m/N
        for world in visualizer.worlds:
            for slot in np.flatnonzero(read["found"][world]):
                place = read["pos"][world, slot]
                visualizer.add_sphere(place, 0.2 * size, _PLACE_COLOR)
                if "force" in read:
                    tip = place - length * read["force"][world, slot]
                    visualizer.add_arrow(place, tip, _FORCE_COLOR, 0.1 * size)

    def _compute_data(self) -> ContactData:
        fields = {name: value for name, value in self._fields().items() if name in self.cfg.fields}
        histories = {f"{field}_history": past for field, past in self._history.items()}
        times = self._times if self.cfg.track_air_time else {}
        return ContactData(**fields, **histories, **times)

    def _fields(self) -> dict[str, Array]:
        """Return all data by field; forces are in world axes if requested."""
        fields = self._reduced()
        if self.cfg.global_frame and self.cfg.reduce != "netforce":
            for field in {"force", "torque"} & fields.keys():
                fields[field] = self._in_world(fields, fields[field])
        return fields

    def _reduced(self) -> dict[str, Array]:
        cfg, xp, contacts = self.cfg, self.backend.xp, self.backend.contacts()
        return reduce_contacts(
            contacts, self._primaries, self._others, cfg.reduce, cfg.num_slots, xp
        )

    def _in_world(self, fields: dict[str, Array], vectors: Array) -> Array:
        """Convert vectors (B, N, 3) from the axes of the contacts to those of the world."""
        xp, normal, tangent = self.backend.xp, fields["normal"], fields["tangent"]
        axes = xp.stack([normal, tangent, xp.cross(normal, tangent)], axis=-1)
        return (axes @ vectors[..., None])[..., 0]

    def _advance(self, phase: str, present: Array, dt: float) -> None:
        """Update the times of one phase, "air" or "contact"."""
        xp, times = self.backend.xp, self._times
        current, last = times[f"current_{phase}_time"], times[f"last_{phase}_time"]
        # The step in which a phase ends counts for it, and for the next one.
        ended = (current > 0.0) & ~present
        times[f"last_{phase}_time"] = xp.where(ended, current + dt, last)
        times[f"current_{phase}_time"] = xp.where(present, current + dt, 0.0)

    def _began(self, phase: str, dt: float, abs_tol: float) -> Array:
        if not self.cfg.track_air_time:
            raise RuntimeError(f"{self.cfg.name}: needs track_air_time")
        current = self._times[f"current_{phase}_time"]
        return (current > 0.0) & (current < dt + abs_tol)

    def _secondary(self, model: mujoco.MjModel) -> str:
        """Name of the secondary; empty for anything.

        Raises:
            ValueError: The pattern matches nothing, or several names and the policy refuses that.
        """
        match, name = self.cfg.secondary, self.cfg.name
        if match is None:
            return ""
        if not isinstance(match.pattern, str):
            raise ValueError(f"{name}: secondary takes one pattern, got {match.pattern}")
        found = match.names(model)
        if len(found) > 1 and self.cfg.secondary_policy == "error":
            raise ValueError(f"{name}: secondary matches several: {', '.join(found)}")
        if len(found) > 1 and self.cfg.secondary_policy == "any":
            return ""
        return found[0]
