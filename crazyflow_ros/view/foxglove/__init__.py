"""A running simulator for Foxglove, in a separate process."""
