"""Use of the compiler alone: kernels, and compiled code that the next start loads."""

MODULES = ("compiled_files", "flags", "kernels", "on_device", "start_up", "struct")
"""Modules that extensions may import, with all their public names."""
