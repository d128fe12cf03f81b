"""A browser for the tests of the page."""

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from benchmark.chromium import open_chromium

    with open_chromium() as opened:
        yield opened
