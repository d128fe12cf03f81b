"""How functions of tests are compiled."""

QUICKLY = {"xla_backend_optimization_level": 0}
"""Options of XLA for what is called once or twice, such as derivatives: JAX makes them while it
traces, and optimised machine code of them takes several times as long to compile."""
