"""Checks of what comes in: numbers, texts, plain values, YAML, archives and files.

This package imports only NumPy and PyYAML, and its `__init__` nothing: programs begin with it.
"""
