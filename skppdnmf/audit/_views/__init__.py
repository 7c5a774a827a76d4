"""What one agent, or one link, sees."""
