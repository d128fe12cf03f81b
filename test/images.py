"""Tests of pictures need something that draws."""

import os

import pytest

from crazyflow_ros import opengl

REQUIRED = "CRAZYFLOW_ROS_TEST_IMAGES"
"""Set in the environment, it makes what is skipped where nothing draws fail."""


def need_images() -> None:
    """Skip the test, or fail, if nothing draws here."""
    if reason := opengl.problem():
        (pytest.fail if os.environ.get(REQUIRED) else pytest.skip)(reason)


def can_draw() -> bool:
    """Whether something draws here, for tests of which pictures are only a part."""
    return not opengl.problem() or bool(os.environ.get(REQUIRED))
