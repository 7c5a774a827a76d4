"""Sphinx configuration; nothing here or in the pages needs a network."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))

# The gallery is drawn with few iterations; its figures go beside the build.
os.environ.setdefault("SKPPDNMF_QUICK", "1")
os.environ.setdefault("SKPPDNMF_OUTPUT", "../docs/_build/output")
os.environ.setdefault("MPLBACKEND", "Agg")

from skppdnmf import __version__  # noqa: E402

project = "skppdnmf"
author = "The skppdnmf developers"
copyright = f"{author}, BSD-3-Clause"
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "executed",
    "inherited",
    "mathml",
    "recorded",
    "source_lines",
]
exclude_patterns = [
    "_build",
    "**/README.rst",
    "sg_execution_times.rst",
    "**/sg_execution_times.rst",
]
templates_path = ["_templates"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
default_role = "code"
nitpicky = False
toc_object_entries_show_parents = "hide"
# The benchmarks' tables and other plain text stay as they are.
smartquotes = False

autosummary_generate = True
autodoc_typehints = "none"
autodoc_default_options = {"members": False}
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["auto_examples"],
    "filename_pattern": r"[\\/]plot_",
    "ignore_pattern": r"[\\/](paper|mpc|_)",
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("skppdnmf",),
    "reference_url": {"skppdnmf": None},
    "within_subsection_order": "ExampleTitleSortKey",
    "default_thumb_file": None,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "min_reported_time": 1e9,  # times belong to the benchmarks
    "plot_gallery": "True",
    "abort_on_example_error": False,
}
# The gallery puts its configuration, which holds functions, into the cache's key.
suppress_warnings = ["config.cache"]

html_theme = "pydata_sphinx_theme"
html_title = f"skppdnmf {release}"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_show_sourcelink = False
html_copy_source = False
html_baseurl = os.environ.get("READTHEDOCS_CANONICAL_URL", "")
html_theme_options = {
    "logo": {"text": "skppdnmf"},
    "navbar_align": "left",
    "header_links_before_dropdown": 5,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {
    "index": [],
    "tutorial": [],
    "security": [],
    "how_it_works": [],
    "paper": [],
    "comparison": [],
    "benchmarks": [],
    "changelog": [],
    "contributing": [],
}
