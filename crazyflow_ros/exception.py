"""Crazyflow's name of errors in arguments, which are `ValueError` here."""

ConfigError = ValueError
