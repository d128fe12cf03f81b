"""Services of the node, and how they answer."""
