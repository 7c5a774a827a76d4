"""A self-contained HTML page: tables, texts and figures within the file."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff;
  max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { white-space: nowrap; padding: 0.2rem 0.9rem 0.2rem 0; text-align: right;
  border-bottom: 1px solid #ddd; }
th:first-child, td:first-child { text-align: left; }
figure { margin: 1.5rem 0; } img { max-width: 100%; height: auto; }
figcaption { color: #555; }
pre { background: #f5f5f5; padding: 0.8rem; overflow-x: auto; font-size: 0.85rem; }
.warning { border-left: 4px solid #d55e00; padding-left: 0.8rem; }
p, figcaption { overflow-wrap: anywhere; }
@media (prefers-color-scheme: dark) {
  body { color: #e6e6e6; background: #16181c; }
  th, td { border-color: #3a3f47; } figcaption { color: #b5b5b5; }
  pre { background: #22262c; } img { background: #fff; border-radius: 4px; }
}
"""


class Page:
    """An HTML page that needs no other file.

    Parameters
    ----------
    title : str
        Title and first heading.

    Examples
    --------
    >>> from skppdnmf._cli.page import Page
    >>> page = Page("A fit")
    >>> page.table([("error", "0.1")])
    >>> "<td>error</td><td>0.1</td>" in page.render()
    True
    """

    def __init__(self, title: str) -> None:
        self._title = html.escape(title)
        self._parts = [f"<h1>{self._title}</h1>"]

    def heading(self, text: str) -> None:
        """Begin a section."""
        self._parts.append(f"<h2>{html.escape(text)}</h2>")

    def paragraph(self, text: str, warning: bool = False) -> None:
        """Add a paragraph, set off if it is a warning."""
        kind = ' class="warning"' if warning else ""
        self._parts.append(f"<p{kind}>{html.escape(text)}</p>")

    def text(self, text: str) -> None:
        """Add a text whose columns and lines stay as they are."""
        self._parts.append(f"<pre>{html.escape(text)}</pre>")

    def table(
        self,
        rows: Iterable[Sequence[object]],
        header: Sequence[object] | None = None,
        folded: str | None = None,
    ) -> None:
        """Add a table.

        Parameters
        ----------
        rows : iterable of sequences
            Its cells.
        header : sequence or None, default=None
            Names of the columns.
        folded : str or None, default=None
            Title under which it is hidden until clicked.
        """
        body = "".join(f"<tr>{_cells('td', row)}</tr>\n" for row in rows)
        head = f"<thead><tr>{_cells('th', header)}</tr></thead>" if header else ""
        table = (
            f'<div class="scroll"><table>{head}<tbody>\n{body}</tbody></table></div>'
        )
        if folded is not None:
            table = (
                f"<details><summary>{html.escape(folded)}</summary>{table}</details>"
            )
        self._parts.append(table)

    def figure(self, figure: Figure, caption: str) -> None:
        """Add a figure of matplotlib, as PNG within the page."""
        image = io.BytesIO()
        figure.savefig(image, format="png", dpi=144)
        data = base64.b64encode(image.getvalue()).decode("ascii")
        caption = html.escape(caption)
        self._parts.append(
            f'<figure><img alt="{caption}" src="data:image/png;base64,{data}">'
            f"<figcaption>{caption}</figcaption></figure>"
        )

    def render(self) -> str:
        """Return the page's text."""
        body = "\n".join(self._parts)
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{self._title}</title>\n<style>{_STYLE}</style>\n</head>\n"
            f"<body>\n{body}\n</body>\n</html>\n"
        )


def new_figure(width: float, height: float) -> tuple[Any, Any]:
    """Return a figure of that many inches, of no window and no global state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.add_subplot()


def _cells(tag: str, cells: Sequence[Any]) -> str:
    """Cells of a row."""
    return "".join(f"<{tag}>{html.escape(str(cell))}</{tag}>" for cell in cells)
