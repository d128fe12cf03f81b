"""Additions to viser's page: scripts, styles, and a WebSocket for both directions."""

from crazyflow_ros.view.shell.shell import Feed, Shell

__all__ = ["Feed", "Shell"]
