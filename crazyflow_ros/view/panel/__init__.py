"""The panel of the page: everything that controls a simulation."""
