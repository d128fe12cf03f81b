"""The version and what else package indexes and `pip show` say about this package."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ET
from email.parser import Parser
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml
from paths import ROOT

import crazyflow_ros
from crazyflow_ros.resources import package_version

MANIFEST = ET.parse(ROOT / "package.xml")
VERSION = MANIFEST.findtext("version")


def python(*words: str) -> str:
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, text=True, capture_output=True, check=True
    )
    return done.stdout


def test_the_version_is_that_of_the_manifest() -> None:
    assert crazyflow_ros.__version__ == VERSION
    assert python("-m", "crazyflow_ros", "--version").split() == [VERSION]


def test_a_checkout_that_is_not_installed_has_a_version(monkeypatch: Any) -> None:
    def not_installed(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", not_installed)
    assert package_version() == VERSION


def test_importing_the_package_does_not_look_for_its_version() -> None:
    code = "import sys, crazyflow_ros; print(*sys.modules)"
    assert not {"importlib.metadata", "xml.etree"} & set(python("-c", code).split())


def test_the_metadata_come_from_the_manifest_and_the_readme(tmp_path: Path) -> None:
    pytest.importorskip("setuptools")
    python("setup.py", "-q", "egg_info", "--egg-base", str(tmp_path))
    found = Parser().parsestr((tmp_path / "crazyflow_ros.egg-info" / "PKG-INFO").read_text())
    maintainer = MANIFEST.find("maintainer")
    assert maintainer is not None
    assert found["Version"] == VERSION
    assert found["Summary"] == MANIFEST.findtext("description")
    assert found["Author"] == found["Maintainer"] == maintainer.text
    assert found["Maintainer-email"] == maintainer.get("email")
    assert found["Description-Content-Type"] == "text/markdown"
    assert "# crazyflow_ros" in found.get_payload()
    assert {"LICENSE", "NOTICE"} <= set(found.get_all("License-File") or ())
    assert "Programming Language :: Python :: 3.11" in (found.get_all("Classifier") or ())


def test_the_citation_has_what_the_format_requires_and_the_package_says() -> None:
    """See https://citation-file-format.github.io, version 1.2.0."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["cff-version"] == "1.2.0" and citation["message"] and citation["authors"]
    assert citation["title"] == MANIFEST.findtext("name")
    assert citation["version"] == VERSION and citation["type"] == "software"
    assert citation["license"] == MANIFEST.findtext("license")
    assert citation["abstract"] == MANIFEST.findtext("description")
    heading = f"## {VERSION} - {citation['date-released']}"
    assert heading in (ROOT / "CHANGELOG.md").read_text().splitlines()


def test_all_folders_with_modules_are_packages() -> None:
    """Others would be missing in a wheel."""
    folders = {module.parent for module in (ROOT / "crazyflow_ros").rglob("*.py")}
    assert not [folder for folder in folders if not (folder / "__init__.py").exists()]
