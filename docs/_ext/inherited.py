"""Docstrings made to stand by themselves.

Those that scikit-learn's mixins bring along refer to its glossary and user guide, which
are not part of these pages; the words of such references are kept. A line that ends in
a backslash goes on in the next, also where the docstring is a raw one. A fitted
attribute in a shape, ``(n_samples, n_components_)``, is no reference.
"""

from __future__ import annotations

import re
from typing import Any

_ROLE = re.compile(r":(?:term|ref|mod):`([^`<]*?)(?:\s*<[^`>]*>)?`", re.DOTALL)
_SHAPE = re.compile(r"of shape \([^()]*\)")


def unlink(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Replace references to labels of scikit-learn's own pages by their text."""
    text = "\n".join(lines).replace("\\\n", "")
    text = _ROLE.sub(r"\1", text)
    text = _SHAPE.sub(lambda shape: re.sub(r"_(?=[,)])", r"\\_", shape.group()), text)
    lines[:] = text.split("\n")


def setup(app: Any) -> dict[str, Any]:
    """Register the hook, ahead of numpydoc's."""
    app.connect("autodoc-process-docstring", unlink, priority=100)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
