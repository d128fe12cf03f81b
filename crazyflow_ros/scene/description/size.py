"""The size of what MuJoCo makes of a description."""

from __future__ import annotations

from typing import NamedTuple, Self

import mujoco

from crazyflow_ros.checks import limits

_ELEMENTS = (
    *("nbody", "njnt", "ngeom", "nsite", "ncam", "nlight", "nflex", "nskin", "nmesh", "nhfield"),
    *("ntex", "nmat", "npair", "nexclude", "neq", "ntendon", "nu", "nsensor", "nnumeric", "ntext"),
    *("ntuple", "nkey", "nplugin"),
)


def elements_of(model: mujoco.MjModel) -> int:
    """Count the bodies, joints, geoms and the like of a model."""
    return sum(getattr(model, name) for name in _ELEMENTS)


class Size(NamedTuple):
    """What is counted in a model."""

    elements: int
    """Bodies, joints, geoms and the like."""
    model_bytes: int
    state_bytes: int
    picture_side: int
    """The largest picture or shadow map that it asks for, pixels a side."""

    @classmethod
    def of(cls, model: mujoco.MjModel) -> Self:
        """Count; this allocates a state of the model."""
        data, view = mujoco.MjData(model), model.vis
        return cls(
            elements_of(model),
            mujoco.mj_sizeModel(model),
            data.nbuffer + data.narena,
            max(view.global_.offwidth, view.global_.offheight, view.quality.shadowsize),
        )

    def check(self) -> None:
        """Refuse what is larger than others may bring.

        Raises:
            ValueError: It is.
        """
        for value, most, what in (
            (self.elements, limits.DESCRIPTION_ELEMENTS, "bodies, joints, geoms and the like"),
            (self.model_bytes, limits.MODEL_BYTES, "bytes of shapes and textures"),
            (self.state_bytes, limits.MODEL_BYTES, "bytes of state"),
            (self.picture_side, limits.PICTURE_SIDE, "pixels a side of pictures and shadows"),
        ):
            if value > most:
                raise ValueError(f"a description may have at most {most} {what}, got {value}")
