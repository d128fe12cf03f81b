"""A running simulator for Foxglove, as a process of its own."""
