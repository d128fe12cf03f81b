"""What the README shows works."""

import re
from pathlib import Path

import numpy as np

README = Path(__file__).parents[1] / "README.md"


def test_the_python_example_flies():
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    names: dict = {}
    exec(compile(example, "README.md", "exec"), names)
    height = np.asarray(names["sim"].data.states.pos[..., 2])
    assert height.shape == (1024, 2) and (height > 0.5).all()


def test_every_file_it_links_to_is_there():
    links = re.findall(r"\]\((?!http)([^)#]+)\)", README.read_text())
    missing = [link for link in links if not (README.parent / link).exists()]
    assert links and not missing
