"""Runs the blocks of Python that a page marks, and shows what they print.

A block is marked by the comment ``<!-- run -->`` before it. The blocks of a page share
their names, as if typed one after the other.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from typing import Any

from docutils import nodes
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

from skppdnmf import PrivacyWarning

logger = logging.getLogger(__name__)
MARK = "<!-- run -->"


def _is_mark(node: nodes.Node | None) -> bool:
    """Whether a node is the comment that marks the block after it."""
    return isinstance(node, nodes.raw | nodes.comment) and MARK in (
        node.astext() if isinstance(node, nodes.raw) else f"<!-- {node.astext()} -->"
    )


class Execute(SphinxTransform):
    """Insert the output of marked blocks."""

    default_priority = 400

    def apply(self, **kwargs: Any) -> None:
        """Run the blocks of a page in turn."""
        namespace: dict[str, Any] = {}
        for block in list(self.document.findall(nodes.literal_block)):
            siblings = block.parent.children
            place = siblings.index(block)
            if not place or not _is_mark(siblings[place - 1]):
                continue
            printed = io.StringIO()
            try:
                with contextlib.redirect_stdout(printed), warnings.catch_warnings():
                    warnings.simplefilter("error")
                    # Pages fit small, public data with seeds, so that all see the same.
                    for start in ("membership: ", "random_state is an integer"):
                        warnings.filterwarnings("ignore", start, PrivacyWarning)
                    code = compile(block.astext(), self.env.docname, "exec")
                    exec(code, namespace)
            except Exception as error:
                logger.warning(
                    "block failed: %s: %s",
                    type(error).__name__,
                    error,
                    location=block,
                )
                continue
            text = printed.getvalue().rstrip()
            if text:
                output = nodes.literal_block(text, text, classes=["output"])
                output["language"] = "none"
                block.parent.insert(place + 1, output)


def setup(app: Any) -> dict[str, Any]:
    """Register the transform."""
    app.add_transform(Execute)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
