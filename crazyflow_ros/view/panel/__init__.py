"""The panel of the page: everything that steers a simulation."""
