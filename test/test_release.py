"""A release has one version and one date everywhere, and tracks that bloom understands."""

from __future__ import annotations

import pytest
import yaml
from paths import ROOT

from tools.release import DISTRIBUTIONS, tracks, versioned

FILES = ("package.xml", "CITATION.cff", "CHANGELOG.md")
TEXTS = {name: (ROOT / name).read_text() for name in FILES}
ENTRIES = "## Unreleased\n\n### Added\n\n- This.\n\n## 0.2.0 - 2026-11-26\n\n- That.\n"


def test_files_get_the_version_and_the_date() -> None:
    after = versioned({**TEXTS, "CHANGELOG.md": ENTRIES}, "12.0.3", "2027-01-02")
    assert after["package.xml"].count("<version>12.0.3</version>") == 1
    citation = yaml.safe_load(after["CITATION.cff"])
    assert citation["version"] == "12.0.3" and str(citation["date-released"]) == "2027-01-02"
    new = "## Unreleased\n\n## 12.0.3 - 2027-01-02\n\n### Added\n\n- This.\n\n## 0.2.0"
    assert after["CHANGELOG.md"].startswith(new)
    for name in ("package.xml", "CITATION.cff"):
        lines = zip(TEXTS[name].splitlines(), after[name].splitlines(), strict=True)
        assert sum(before != now for before, now in lines) == (1 if name == "package.xml" else 2)


@pytest.mark.parametrize("version", ["", "0.2", "0.1.9", "0.2.0", "v9.0.0", "9.0.0rc1"])
def test_what_is_no_later_version_is_refused(version: str) -> None:
    with pytest.raises(ValueError, match="three numbers above"):
        versioned({**TEXTS, "CHANGELOG.md": ENTRIES}, version, "2027-01-02")


def test_a_release_without_changes_is_refused() -> None:
    empty = "## Unreleased\n\n## 0.2.0 - 2026-11-26\n\n- That.\n"
    with pytest.raises(ValueError, match="no entries"):
        versioned({**TEXTS, "CHANGELOG.md": empty}, "9.0.0", "2027-01-02")


def test_each_distribution_has_a_track() -> None:
    found = yaml.safe_load(tracks("file:///somewhere"))["tracks"]
    assert tuple(found) == DISTRIBUTIONS
    for name, track in found.items():
        assert track["ros_distro"] == name and track["vcs_uri"] == "file:///somewhere"
