"""Topics of the sensors in the file of the parameter `sensors`."""

MODULES = ("device_topics", "devices", "sampled_topics", "sensors_file")
"""Modules that extensions may import, with all their public names."""
