"""Recording to MCAP, and replay."""
