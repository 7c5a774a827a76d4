"""The pages that the tests of the documentation read."""

import re
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
GENERATED = ("_build", "generated", "auto_examples", "benchmarks")

# The package's own names, looked up without Sphinx.
sys.path.insert(0, str(DOCS / "_ext"))
from locating import find_function, locate  # noqa: E402

__all__ = [
    "DOCS",
    "ROOT",
    "blocks",
    "code_lines",
    "find_function",
    "inline_code",
    "locate",
    "name_of",
    "pages",
    "prose",
    "text_of",
]

_FENCE = re.compile(r"^(`{3,}|~{3,})([^\n]*)\n(.*?)^\1[ ]*$", re.DOTALL | re.MULTILINE)


@cache
def pages():
    """README, changelog and every page written in Markdown."""
    own = [
        page
        for page in sorted(DOCS.rglob("*.md"))
        if page.relative_to(DOCS).parts[0] not in GENERATED
    ]
    return [ROOT / "README.md", ROOT / "CHANGELOG.md", *own]


def name_of(page):
    """What pytest calls a page."""
    return page.relative_to(ROOT).as_posix()


@cache
def text_of(page):
    """Text of a page."""
    return page.read_text(encoding="utf-8")


def blocks(page):
    """Fenced blocks: the words after the fence, the text, and what stands before."""
    text = text_of(page)
    for match in _FENCE.finditer(text):
        before = text[: match.start()].rstrip().rpartition("\n")[2]
        yield match.group(2).strip(), match.group(3), before


def code_lines(page):
    """Quoted lines of the package: function and lines."""
    for info, text, _ in blocks(page):
        if info.startswith("{code-line}"):
            yield info.split()[1], text.rstrip("\n").split("\n")


def prose(page):
    """The page without code, formulas, titles in italics and addresses."""
    text = _FENCE.sub("", text_of(page))
    text = re.sub(r"``.+?``|`[^`]*`", "", text, flags=re.DOTALL)
    text = re.sub(r"\$\$.*?\$\$|\$[^$\n]+\$", "", text, flags=re.DOTALL)
    text = re.sub(r"(?<![*\w])\*[^*]+\*(?!\*)", "", text)
    return re.sub(r"\]\([^)]*\)|https?://\S+", "]", text)


def inline_code(page):
    """What stands between single backticks in running text."""
    text = _FENCE.sub("", text_of(page))
    text = re.sub(r"``.+?``", "", text)
    return [" ".join(found.split()) for found in re.findall(r"`([^`]+)`", text)]
