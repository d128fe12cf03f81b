"""Prepare a release: `make release VERSION=0.3.0`.

It gives the version to package.xml and CITATION.cff and the section *Unreleased* of the changelog
its number and date, builds the wheel and the sdist, flies with the wheel in an empty environment
(`make wheel`), and writes bloom's tracks for the ROS distributions into dist/tracks.yaml. It
commits, tags and publishes nothing, and prints the commands for that. If something fails, the files
are as before.
"""

from __future__ import annotations

import datetime
import re
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
NAME = "crazyflow_ros"
DISTRIBUTIONS = ("jazzy", "kilted", "lyrical")
UNRELEASED = "## Unreleased\n"

ACTIONS = [
    "bloom-export-upstream :{vcs_local_uri} :{vcs_type} --tag :{release_tag} --display-uri "
    ":{vcs_uri} --name :{name} --output-dir :{archive_dir_path}",
    "git-bloom-import-upstream :{archive_path} :{patches} --release-version :{version} --replace",
    "git-bloom-generate -y rosrelease :{ros_distro} --source upstream -i :{release_inc}",
    "git-bloom-generate -y rosdebian --prefix release/:{ros_distro} :{ros_distro} "
    "-i :{release_inc} --os-name ubuntu",
]
"""What bloom does for a distribution, for Ubuntu, on which the distributions are tested."""


def versioned(texts: dict[str, str], version: str, date: str) -> dict[str, str]:
    """Return the contents of the files that have a version, with a new one.

    Args:
        texts: Contents of package.xml, CITATION.cff and CHANGELOG.md by these names.
        version: Three numbers with points between them, above the present one.
        date: Day of the release, such as 2026-12-01.

    Raises:
        ValueError: The version is none or not above the present one, or nothing has changed.
    """
    numbers = re.compile(r"\d+\.\d+\.\d+")
    present = re.findall(r"<version>(.+)</version>", texts["package.xml"])[0]
    as_numbers = lambda text: [*map(int, text.split("."))]  # noqa: E731
    if not numbers.fullmatch(version) or as_numbers(version) <= as_numbers(present):
        raise ValueError(f"VERSION has to be three numbers above {present}, got {version!r}")
    changelog = texts["CHANGELOG.md"]
    section = changelog.partition(UNRELEASED)[2].partition("\n## ")[0]
    if not re.search(r"^- ", section, re.MULTILINE):
        raise ValueError("the section Unreleased of CHANGELOG.md has no entries")
    heading = f"{UNRELEASED}\n## {version} - {date}\n"
    citation = re.sub(r"(?m)^version: .+$", f"version: {version}", texts["CITATION.cff"])
    citation = re.sub(r"(?m)^date-released: .+$", f"date-released: {date}", citation)
    return {
        "package.xml": texts["package.xml"].replace(f">{present}<", f">{version}<", 1),
        "CITATION.cff": citation,
        "CHANGELOG.md": changelog.replace(UNRELEASED, heading, 1),
    }


def tracks(uri: str) -> str:
    """Return the file tracks.yaml of a release repository.

    Args:
        uri: Where bloom finds this repository.
    """
    track = {
        "name": NAME,
        "vcs_uri": uri,
        "vcs_type": "git",
        "version": ":{auto}",
        "release_tag": ":{version}",
        "devel_branch": "main",
        "patches": None,
        "release_repo_url": None,
        "release_inc": "0",
        "last_version": None,
        "last_release": None,
    }
    every = {name: {**track, "ros_distro": name, "actions": ACTIONS} for name in DISTRIBUTIONS}
    return yaml.safe_dump({"tracks": every}, sort_keys=False)


def main(version: str) -> None:
    """Prepare the release of a version."""
    changes = git("status", "--porcelain")
    if changes:
        raise SystemExit(f"release: commit these changes first:\n{changes}")
    if git("tag", "--list", version):
        raise SystemExit(f"release: there is a tag {version}")
    files = ("package.xml", "CITATION.cff", "CHANGELOG.md")
    before = {name: (ROOT / name).read_text() for name in files}
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    try:
        after = versioned(before, version, today)
    except ValueError as error:
        raise SystemExit(f"release: {error}") from None
    write(after)
    try:
        subprocess.run(["make", "wheel"], cwd=ROOT, check=True)
    except BaseException:
        write(before)
        raise
    uri = git("config", "--get", "remote.origin.url") or "URI of this repository"
    (ROOT / "dist" / "tracks.yaml").write_text(tracks(uri))
    print(
        f"\n{version} flies. dist/ has wheel, sdist, and tracks.yaml for the release repository of "
        f"bloom. To publish it:\n"
        f"    git commit -am 'Release {version}' && git tag {version}\n"
        f"    git push --tags origin HEAD\n"
        f"    python -m twine upload dist/*.whl dist/*.tar.gz\n"
        f"    bloom-release --ros-distro {DISTRIBUTIONS[-1]} {NAME}    # and the others"
    )


def write(texts: dict[str, str]) -> None:
    """Write files of this repository."""
    for name, text in texts.items():
        (ROOT / name).write_text(text)


def git(*words: str) -> str:
    """Return what git prints; nothing if it fails."""
    done = subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True)
    return done.stdout.strip()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python -m tools.release VERSION, such as 0.3.0")
    main(sys.argv[1])
