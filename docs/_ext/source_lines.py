"""A directive that shows lines of a function and where they stand, checked."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from locating import find_function, locate
from sphinx.util.docutils import SphinxDirective


class CodeLine(SphinxDirective):
    """Show lines of code under the name of their function."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the nodes."""
        name = self.arguments[0]
        try:
            file, number = locate(name, list(self.content))
        except (AttributeError, ImportError, ValueError) as error:
            raise self.error(str(error)) from error
        caption = nodes.paragraph(classes=["code-place"])
        caption += nodes.literal("", find_function(name).__qualname__)
        caption += nodes.Text(f" in {file}, line {number}")
        text = "\n".join(self.content)
        block = nodes.literal_block(text, text)
        block["language"] = "python"
        return [caption, block]


def setup(app: Any) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("code-line", CodeLine)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
