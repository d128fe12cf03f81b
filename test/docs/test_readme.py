"""What the README shows works."""

import re

import numpy as np
from paths import ROOT

README = ROOT / "README.md"


def test_the_python_example_flies(capsys):
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    names: dict = {}
    exec(compile(example, "README.md", "exec"), names)
    pos = np.asarray(names["sim"].data.states.pos)
    assert pos.shape == (1024, 2, 3)
    np.testing.assert_allclose(pos[..., 2], 1.0, atol=0.1)
    assert (pos[:, 1, 0] - pos[:, 0, 0] > 0.5).all()  # a place for each
    assert capsys.readouterr().out.startswith("world 0, drone 0: x ")


def test_every_file_it_links_to_is_there():
    links = re.findall(r"\]\((?!http)([^)#]+)\)", README.read_text())
    missing = [link for link in links if not (README.parent / link).exists()]
    assert links and not missing
