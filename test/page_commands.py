"""The commands that pages show, as somebody types them."""

from __future__ import annotations

import re
from pathlib import Path


def blocks(page: Path) -> list[list[str]]:
    """The commands of each indented block, continued lines joined, without comments."""
    text = re.sub(r"\\\n\s*", "", page.read_text())
    found = re.findall(r"(?:^ {4}\S.*\n)+", text, re.MULTILINE)
    return [[re.sub(r"\s+#.*", "", line).strip() for line in block.splitlines()] for block in found]
