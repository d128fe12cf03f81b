"""After the flight: the page of a recording, with what happened, why, and a second run."""
