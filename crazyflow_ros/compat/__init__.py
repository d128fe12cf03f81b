"""Interfaces of other projects, a module for each: Crazyflow's functions, CasADi, learning.

Nothing else in the package imports them.
"""
