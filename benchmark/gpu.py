"""`Sim` compared with Crazyflow's on a GPU, row by row in one run.

python -m benchmark.gpu [ROW...]    by default ROWS

Both libraries need a JAX that finds the GPU; CRAZYFLOW_PYTHON names the Python that has crazyflow.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import jax

from benchmark.sim import both

CONTROLS = ("rotor_vel", "attitude", "state")
ROWS = [
    *(f"steps:{n}:{control}" for n in (1024, 16384, 262144, 1048576) for control in CONTROLS),
    "policy:16384",
    "environment:16384",
    "gradient:1024",
    *(f"first:{control}" for control in CONTROLS),
]

Figure = Callable[[dict[str, Any], int], float]
_FIGURES: dict[str, list[tuple[str, Figure, bool]]] = {
    "steps": [
        ("{}, M steps/s", lambda x, _: x["steps_per_s"] / 1e6, True),
        ("{}, call of one tick, us", lambda x, _: x["us_per_call"], False),
    ],
    "policy": [("policy in `jit(scan)`, M ticks/s", lambda x, n: 5e-6 * n / x["s"], True)],
    "environment": [("Gymnasium, reach, M steps/s", lambda x, n: 1e-6 * n / x["s"], True)],
    "gradient": [("gradient of 100 ticks, ms", lambda x, _: 1e3 * x["s"], False)],
    "first": [("first `Sim` and step, {}, s", lambda x, _: x["s"], False)],
}
"""By the first word of a row: descriptions, figures, and whether a larger one is better."""


def main(rows: Sequence[str] = ROWS) -> None:
    """Print the comparison as a Markdown table."""
    if jax.default_backend() != "gpu":
        sys.exit(f"JAX finds no GPU, only {jax.devices()}")
    if unknown := [row for row in rows if row.partition(":")[0] not in _FIGURES]:
        sys.exit(f"unknown rows {', '.join(unknown)}; have {', '.join(ROWS)}")
    print(f"{jax.devices()[0].device_kind}, jax {jax.__version__}\n")
    print("| what | worlds | ours | Crazyflow | ratio |\n|---|" + "---:|" * 4, flush=True)
    for row in rows:
        kind, *words = row.split(":")
        worlds = words.pop(0) if words and words[0].isdecimal() else "1024"
        ours, theirs = both(row)
        for what, figure, larger_is_better in _FIGURES[kind]:
            a, b = figure(ours, int(worlds)), figure(theirs, int(worlds))
            ratio = a / b if larger_is_better else b / a
            cells = [what.format(*words), worlds, f"{a:.4g}", f"{b:.4g}", f"{ratio:.3g}"]
            print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or ROWS)
