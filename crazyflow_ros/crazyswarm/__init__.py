"""Drones of the node as Crazyflies: for cflib, and for crazyswarm2's clients, with its own server.

That server is a variant of our node, written from its interface. `swarm_configuration` reads its
files, `crazyflie_server` is the node, and `link` serves cflib in either node.
"""
