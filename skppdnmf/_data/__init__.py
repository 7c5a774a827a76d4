"""Who holds what, on which graph."""
