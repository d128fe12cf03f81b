"""Topics of the sensors in the file of the parameter `sensors`."""
