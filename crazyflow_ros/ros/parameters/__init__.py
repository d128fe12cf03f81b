"""Parameters of the node."""
