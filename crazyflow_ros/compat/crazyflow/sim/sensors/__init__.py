"""Sensors of a simulation."""
