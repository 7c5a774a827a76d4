"""Directives for what programs print: recorded benchmarks and the command's help."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

HERE = Path(__file__).resolve().parents[1]


def _literal(text: str) -> list[nodes.Node]:
    """Return a block of text as printed."""
    block = nodes.literal_block(text, text)
    block["language"] = "none"
    return [block]


class Recorded(SphinxDirective):
    """Show ``docs/benchmarks/NAME.txt``, or say how to make it."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the nodes."""
        name = self.arguments[0]
        file = HERE / "benchmarks" / f"{name}.txt"
        self.env.note_dependency(str(file))
        if file.is_file():
            return _literal(file.read_text(encoding="utf-8").rstrip())
        note = nodes.note()
        note += nodes.paragraph("", "Not recorded for this version. To see it, run")
        note += _literal(f"python benchmarks/{name}.py")
        return [note]


class CommandHelp(SphinxDirective):
    """Show what ``skppdnmf COMMAND --help`` prints."""

    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the nodes."""
        words = [*self.arguments, "--help"]
        shown = "$ skppdnmf " + " ".join(words)
        if importlib.util.find_spec("skppdnmf.__main__") is None:
            raise self.error("skppdnmf has no command line")
        done = subprocess.run(
            [sys.executable, "-m", "skppdnmf", *words],
            capture_output=True,
            text=True,
            env={**os.environ, "COLUMNS": "84", "NO_COLOR": "1"},
        )
        if done.returncode:
            raise self.error(f"{shown} failed: {done.stderr.strip()}")
        printed = done.stdout.rstrip().replace("python -m skppdnmf", "skppdnmf")
        return _literal(f"{shown}\n{printed}")


def setup(app: Any) -> dict[str, Any]:
    """Register the directives."""
    app.add_directive("recorded", Recorded)
    app.add_directive("command-help", CommandHelp)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
