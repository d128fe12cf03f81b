"""Compilation of the steps of a `Sim`: kernels, packed data, blocks of worlds, several devices."""
