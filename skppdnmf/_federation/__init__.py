"""Who carries the agents' messages."""
