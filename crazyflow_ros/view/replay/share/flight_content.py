"""What a page without a server shows of a recorded flight, as JSON."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from crazyflow_ros.ros.messages import NS
from crazyflow_ros.scene.shapes import VisibleShape
from crazyflow_ros.view.backdrop import scenery_of
from crazyflow_ros.view.frame import Looks
from crazyflow_ros.view.glb import GlbPart, glb_of, linear
from crazyflow_ros.view.ground import Ground
from crazyflow_ros.view.meshes import glb
from crazyflow_ros.view.recording import Recording
from crazyflow_ros.view.replay.curves import curves, rows_of
from crazyflow_ros.view.replay.events import Event, Group, Severity
from crazyflow_ros.view.replay.player import SPEEDS
from crazyflow_ros.view.replay.run import Run
from crazyflow_ros.view.replay.share.span import Span
from crazyflow_ros.view.replay.why import explain
from crazyflow_ros.view.shadows import ABOVE, shadow_glb
from crazyflow_ros.view.stage import DARK, LIGHT, surface_glb
from crazyflow_ros.view.swarm import REAR, body_glb, color_of, radius_of, rotor_mesh

RATE, LEAST_RATE = 25.0, 2.0
"""States per second, and with how few of them a flight can still be followed."""
MOST_STATES = 60_000
"""States of all drones together, which are some 3 MB."""
_BODY_RATE = 15.0  # Hz, of what else moves
_MOST_CARDS = 200
_CARD_ORDER = (Severity.ERROR, Severity.WARNING, Severity.INFO)

Tell = Callable[[float], object]
"""Receives the share of the work that is done (0 to 1)."""


class _Meshes:
    """GLB files by their numbers, each once."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}

    def add(self, content: bytes) -> int:
        return self._numbers.setdefault(content, len(self._numbers))

    def as_json(self) -> list[str]:
        return [b64encode(content).decode() for content in self._numbers]


def flight_content(run: Run, span: Span, tell: Tell = lambda _: None) -> dict[str, Any]:
    """Return a part of a flight: the scene, the motion, the curves, the events and their cards.

    Args:
        run: The flight, after its `scan`.
        span: The part.
        tell: Told how far it is.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is damaged, or there are no drones or too many for so long a part.
    """
    recording, zero = run.recording, run.recording.zero_ns
    samples = run.read(*span, _count(run, span))
    drones = list(dict.fromkeys(name for frame in samples.frames for name in frame.names))
    if not drones:
        raise ValueError(f"{run.name} has no drones in these {span.seconds:.2f} s")
    meshes = _Meshes()
    worlds, grounds = _worlds(run, samples.times_ns, meshes)
    tracks = []
    for number, name in enumerate(drones):
        color = linear(np.array(color_of(number)) / 255).round(4).tolist()
        track = curves(samples, name, zero, run.batteries.get(name, ()))
        track["battery"] = _within(track["battery"], span, zero)
        own = samples.of(name)
        below = np.zeros(len(own.times_ns))
        for since_ns, ground in grounds:  # the last one that holds
            rows = own.times_ns >= since_ns
            below[rows] = ground.below(own.pos[rows])
        heights = np.nan_to_num(below).round(3).tolist()
        tracks.append({"name": name, "color": color, "below": heights, **track})
        tell(0.5 * (number + 1) / len(drones))
    numbers = [n for n, e in enumerate(run.events) if span.begin_ns <= e.time_ns <= span.end_ns]
    return {
        "recording": {
            "names": [run.name],
            "begin": (span.begin_ns - zero) / NS,
            "end": (span.end_ns - zero) / NS,
            "notes": recording.notes,
            "rows": rows_of(recording.model),
            "speeds": SPEEDS,
        },
        "drones": tracks,
        "looks": _looks(recording.looks, meshes),
        "shadow": {"mesh": meshes.add(shadow_glb()), "above": ABOVE},
        "stages": [
            {"mesh": meshes.add(surface_glb(p)), "sun": p.sun, "fill": p.fill, "sky": p.ambient}
            for p in (LIGHT, DARK)
        ],
        "worlds": worlds,
        "moving": _moving(run, span) if any(world["bodies"] for world in worlds) else None,
        "events": [_event(run.events[number], zero) for number in numbers],
        "cards": _cards(run, numbers, drones[0], lambda share: tell(0.5 + 0.5 * share)),
        "meshes": meshes.as_json(),
    }


def _count(run: Run, span: Span) -> int:
    """Return how many states of all drones are read.

    Raises:
        ValueError: They would be too few.
    """
    n_drones = max((len(frame.names) for frame in run.overview.frames), default=1)
    rate = min(RATE, MOST_STATES / (max(n_drones, 1) * span.seconds))
    if rate < LEAST_RATE:
        most = MOST_STATES / (n_drones * LEAST_RATE)
        raise ValueError(
            f"{span.seconds:.0f} s of {n_drones} drones are too much for one file, at most "
            f"{most:.0f} s: choose a part with --begin and --end"
        )
    return max(round(rate * span.seconds), 2)


def _worlds(
    run: Run, times_ns: Sequence[int], meshes: _Meshes
) -> tuple[list[dict[str, Any]], list[tuple[int, Ground]]]:
    """Return the worlds with the times from which they are shown, for JSON and for shadows."""
    found: list[dict[str, Any]] = []
    grounds: list[tuple[int, Ground]] = []
    before: Sequence[VisibleShape] | None = None
    for time_ns in times_ns:
        shapes = run.recording.world(time_ns)
        if shapes is before:
            continue
        before = shapes
        scenery = scenery_of([shape for shape in shapes if not shape.frame])
        grounds.append((time_ns, Ground(scenery.shapes, scenery.floor)))
        bodies: dict[str, list[VisibleShape]] = {}
        for shape in shapes:
            if shape.frame:
                bodies.setdefault(shape.frame, []).append(shape)
        found.append(
            {
                "since": (time_ns - run.recording.zero_ns) / NS,
                "floor": scenery.floor,
                "mesh": meshes.add(scenery.glb) if scenery.glb else None,
                "edges": scenery.edges.round(4).ravel().tolist(),
                "edgeColors": scenery.edge_colors.ravel().tolist(),
                "bodies": {name: meshes.add(glb(own)) for name, own in bodies.items()},
            }
        )
    return found, grounds


def _looks(looks: Looks, meshes: _Meshes) -> dict[str, Any]:
    rotors = []
    for rotor in looks.rotors:
        mesh = rotor_mesh(rotor)
        part = GlbPart(mesh.vertices, mesh.faces, np.ones(4), is_double_sided=True)
        is_rear = bool(rotor.position[0] <= 0)
        rotors.append(
            {
                "mesh": meshes.add(glb_of([part])),
                "at": rotor.position.tolist(),
                "turned": rotor.attitude.tolist(),
                "spin": rotor.spin,
                "color": linear(np.array(REAR) / 255).tolist() if is_rear else None,
            }
        )
    body = meshes.add(body_glb(looks, has_rear=False))
    return {"body": body, "radius": radius_of(looks), "rotors": rotors}


def _moving(run: Run, span: Span) -> dict[str, Any]:
    """Return when and where bodies and cables have moved."""
    recording = Recording(run.recording.file.path)  # with a reading position of its own
    tracks: dict[str, list[list[float]]] = {}
    cables: list[list[Any]] = []
    for time_ns in range(span.begin_ns, span.end_ns + 1, round(NS / _BODY_RATE)):
        frame = recording.frame(time_ns)
        if frame is None:
            continue
        seconds = (time_ns - recording.zero_ns) / NS
        if frame.bodies is not None:
            poses = np.concatenate([frame.bodies.pos, frame.bodies.quat], axis=1).round(4)
            for name, pose in zip(frame.bodies.names, poses.tolist()):
                track = tracks.setdefault(name, [])
                if len(track) < 2 or track[-1][1:] != pose or track[-2][1:] != pose:
                    track.append([seconds, *pose])
                else:  # it stands still since then
                    track[-1][0] = seconds
        if frame.cables is not None:
            cables.append([seconds, frame.cables.round(3).ravel().tolist()])
    return {"bodies": tracks, "cables": cables}


def _event(event: Event, zero: int) -> tuple[Any, ...]:
    seconds = (event.time_ns - zero) / NS
    return seconds, event.drone, event.kind, event.group, event.severity, event.text


def _cards(run: Run, numbers: Sequence[int], drone: str, tell: Tell) -> list[Any]:
    """Return the cards of the events with these numbers; None for those that explain nothing."""
    asked = [row for row, n in enumerate(numbers) if run.events[n].group is not Group.LOG]
    asked.sort(key=lambda row: _CARD_ORDER.index(run.events[numbers[row]].severity))
    cards: list[Any] = [None] * len(numbers)
    for done, row in enumerate(asked[:_MOST_CARDS], 1):
        found = explain(run, run.events[numbers[row]], drone)
        cards[row] = found.as_json(run.recording.zero_ns)
        tell(done / len(asked))
    return cards


def _within(battery: list[list[float]], span: Span, zero: int) -> list[list[float]]:
    """Return times [s] and voltages within a part."""
    begin, end = ((time_ns - zero) / NS for time_ns in span)
    kept = [pair for pair in zip(*battery) if begin <= pair[0] <= end]
    return [list(column) for column in zip(*kept)] if kept else [[], []]
