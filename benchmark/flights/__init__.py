"""Thousands of random missions in exact simulated time: nobody falls. `make flights`."""
