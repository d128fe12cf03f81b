"""crazyswarm2's server as a variant of our node: its files, services, topics and parameters.

Written from the server's interface. `configuration` reads its files, `server` is the node, and each
other module is one feature of the node.
"""
