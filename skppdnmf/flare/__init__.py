"""Runs a federation at the parties: NVIDIA FLARE carries the envelopes.

`NMFRecipe` is submitted as FLARE's own recipes are; `load` reads what a run has left at
a site. What a site allows is in its `skppdnmf.toml`. FLARE comes with
``pip install "skppdnmf[flare]"`` and is imported when a recipe is made.
"""

from __future__ import annotations

from typing import Any

from .results import load

__all__ = ["NMFRecipe", "load"]


def __getattr__(name: str) -> Any:
    """Import the recipe, and with it FLARE, when it is asked for."""
    if name != "NMFRecipe":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        import nvflare  # noqa: F401
    except ImportError as error:
        raise ImportError(
            'a federation needs NVIDIA FLARE: pip install "skppdnmf[flare]"'
        ) from error
    from .recipe import NMFRecipe

    return NMFRecipe
