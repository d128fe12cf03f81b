"""Where the tests find files of the checkout."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
