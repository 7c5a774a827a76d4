"""What can be made of a view."""
