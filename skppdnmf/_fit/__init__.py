"""Around a fit: running it, its history, its cost, what users are told."""
