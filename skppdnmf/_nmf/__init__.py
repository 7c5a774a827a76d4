"""Mathematics on arrays: no agents, no messages, nothing of ours but these files."""
