"""Reads matrices and tables from files."""
