"""The contact sensor: which contacts it counts, and how it reduces them to a reading."""
