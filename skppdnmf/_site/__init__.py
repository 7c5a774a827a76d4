"""What a site decides for itself: its data, whom it trusts, and what it allows."""
