"""Flights for somebody else: a recording as one HTML file, or as a film."""
