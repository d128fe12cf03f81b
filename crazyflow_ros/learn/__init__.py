"""Training of policies: back-propagation through time, PPO, and learning to see from a teacher.

Names are imported on first use, because the learners need Optax and the rest does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crazyflow_ros.lazy import lazy

if TYPE_CHECKING:
    from crazyflow_ros.learn.bptt import Bptt, BpttSettings
    from crazyflow_ros.learn.costs import Approach, Carriage, Descent, Passage
    from crazyflow_ros.learn.evaluation import Evaluation, evaluate
    from crazyflow_ros.learn.perception import Perception, PerceptionSettings
    from crazyflow_ros.learn.ppo import Ppo, PpoSettings
    from crazyflow_ros.learn.ready import READY
    from crazyflow_ros.learn.training import Progress, Training, train

__all__ = [
    "READY",
    "Approach",
    "Bptt",
    "BpttSettings",
    "Carriage",
    "Descent",
    "Evaluation",
    "Passage",
    "Perception",
    "PerceptionSettings",
    "Ppo",
    "PpoSettings",
    "Progress",
    "Training",
    "evaluate",
    "train",
]

__getattr__ = lazy(
    __name__,
    {
        "READY": "ready",
        "Approach": "costs",
        "Bptt": "bptt",
        "BpttSettings": "bptt",
        "Carriage": "costs",
        "Descent": "costs",
        "Evaluation": "evaluation",
        "Passage": "costs",
        "Perception": "perception",
        "PerceptionSettings": "perception",
        "Ppo": "ppo",
        "PpoSettings": "ppo",
        "Progress": "training",
        "Training": "training",
        "evaluate": "evaluation",
        "train": "training",
    },
)
