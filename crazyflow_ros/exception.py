"""Crazyflow's name for errors in arguments, which are `ValueError` here."""

__all__ = ["ConfigError"]

ConfigError = ValueError
