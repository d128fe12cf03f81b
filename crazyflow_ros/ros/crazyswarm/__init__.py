"""The server of crazyswarm2, as a kind of our node: its files, services, topics and parameters.

Written from its interface. `configuration` reads its files, `server` is the node, and each other
module is one feature of it.
"""
