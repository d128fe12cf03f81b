"""Services of the node and the delivery of their responses."""
