"""Records a fit: who saw what."""
