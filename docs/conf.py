"""How rosdoc2 reads these pages for docs.ros.org: with MyST, and headings as targets of links."""

myst_heading_anchors = 6
# Files outside of docs/, which rosdoc2 leaves out, and the language of diagrams.
suppress_warnings = ["myst.xref_missing", "misc.highlighting_failure", "toc.not_included"]
