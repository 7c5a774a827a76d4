"""The command line; `python -m skppdnmf` and the script `skppdnmf` run it."""

from .main import cli

__all__ = ["cli"]
