"""Crazyflow's name for errors in arguments, which are `ValueError` here."""

ConfigError = ValueError
