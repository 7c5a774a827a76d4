"""Privacy-preserving distributed nonnegative matrix factorisation."""
