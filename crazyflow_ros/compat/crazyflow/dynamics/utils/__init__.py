"""Conversions of rotations and of their rates."""
