"""Compilation of the steps of a `Sim`: kernels, packed data, blocks of worlds, several devices."""

MODULES = ("cores", "programs", "stepping")
"""Modules that extensions may import, with all their public names."""
