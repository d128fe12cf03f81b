"""Topics and services that command drones."""

MODULES = ("command_topics", "flight_services", "setpoint_messages")
"""Modules that extensions may import, with all their public names."""
