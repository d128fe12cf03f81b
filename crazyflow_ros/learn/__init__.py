"""Learning: policies that are trained in seconds, by back-propagation through time or PPO."""
