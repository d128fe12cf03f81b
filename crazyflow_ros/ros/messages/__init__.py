"""Messages: serialisation, sending, frames and times."""
