"""Training of RLtools' hover by its SAC, in an environment of its own: python train.py SEED.

Sizes are those of RLtools' own training of this task, https://github.com/rl-tools/rl-tools, folder
`src/rl/zoo/l2f`. It evaluates 100 flights before the training and 100 after it.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

STEPS = 200_000
OBSERVED = 82  # position, attitude, velocities, and 16 actions


def main(seed: int) -> None:
    """Compile, train and print what RLtools prints."""
    rltools = importlib.import_module("rltools")
    hover = {"path": str(Path(__file__).parent), "action_dim": 4, "observation_dim": OBSERVED}
    sac = rltools.SAC(
        hover,
        interface_name="hover",
        evaluation_interval=STEPS,
        num_evaluation_episodes=100,
        STEP_LIMIT=2 * STEPS,  # it evaluates no policy at its limit
        REPLAY_BUFFER_CAP=STEPS + 1,
        **{f"{network}_BATCH_SIZE": 64 for network in ("ACTOR", "CRITIC")},
        **{f"{network}_HIDDEN_DIM": 32 for network in ("ACTOR", "CRITIC")},
        **{f"{network}_ACTIVATION_FUNCTION": "FAST_TANH" for network in ("ACTOR", "CRITIC")},
        CRITIC_TRAINING_INTERVAL=5,
        CRITIC_TARGET_UPDATE_INTERVAL=5,
        ACTOR_TRAINING_INTERVAL=10,
    )
    state = sac.State(seed)
    for _ in range(STEPS + 1):  # the last one only evaluates
        state.step()


if __name__ == "__main__":
    main(int(sys.argv[1]))
