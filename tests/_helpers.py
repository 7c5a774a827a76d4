"""Helpers shared by several test files."""

GRAPHS = ("random", "path", "star", "ring", "complete")
