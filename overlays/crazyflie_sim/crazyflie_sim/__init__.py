"""The name under which crazyswarm2 looks for its simulator; `setup.py` says what it starts."""
