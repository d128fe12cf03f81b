"""Finding the files of the package that are not Python."""

from __future__ import annotations

from pathlib import Path


def resource(*parts: str) -> Path:
    """Find a file or folder that is installed beside the code.

    The same call works in the source tree (`<root>/urdf_mjcf/floor.xml`, also with an editable or
    symlinked installation) and installed (`<prefix>/share/crazyflow_ros/urdf_mjcf/floor.xml`).

    Args:
        parts: The path below the root, for example `"urdf_mjcf", "floor.xml"`.

    Returns:
        The path, which exists.

    Raises:
        FileNotFoundError: There is no such file; the text lists where it was looked for.
    """
    return find(Path(__file__).resolve().parent, parts)


def find(package: Path, parts: tuple[str, ...]) -> Path:
    """Find a file or folder that is installed beside the code of any package.

    Args:
        package: The folder of its code.
        parts: As of `resource`.

    Raises:
        FileNotFoundError: As `resource`.
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
