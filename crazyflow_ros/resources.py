"""What is installed with the code: data files, and the version of the package."""

from __future__ import annotations

from functools import cache
from pathlib import Path


def resource(*parts: str) -> Path:
    """Find a file or folder that is installed with the code.

    It works in the source tree (`<root>/urdf_mjcf/floor.xml`, also with an editable or symlinked
    installation) and in an installation (`<prefix>/share/crazyflow_ros/urdf_mjcf/floor.xml`).

    Args:
        parts: The path below the root, for example `"urdf_mjcf", "floor.xml"`.

    Returns:
        The existing path.

    Raises:
        FileNotFoundError: The file does not exist; the message lists the searched paths.
    """
    return find(Path(__file__).resolve().parent, parts)


def find(package: Path, parts: tuple[str, ...]) -> Path:
    """Find a file or folder that is installed with the code of any package.

    Args:
        package: Folder of the package's code.
        parts: As for `resource`.

    Raises:
        FileNotFoundError: As for `resource`.
    """
    shares = (folder / "share" / package.name for folder in package.parents)
    candidates = [root.joinpath(*parts) for root in (package.parent, *shares)]
    for candidate in candidates:
        if candidate.exists():
            return candidate
    looked_in = "\n  ".join(str(candidate) for candidate in candidates)
    raise FileNotFoundError(
        f"{package.name} has no file {'/'.join(parts)!r}, looked for\n  {looked_in}"
    )


@cache
def package_version() -> str:
    """Return the version of the installed package, or of this checkout if it is not installed."""
    from importlib import metadata  # takes time, and few programs ask for the version
    from xml.etree import ElementTree

    try:
        return metadata.version("crazyflow_ros")
    except metadata.PackageNotFoundError:
        return ElementTree.parse(resource("package.xml")).findtext("version", "unknown")
