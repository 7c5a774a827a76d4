"""Links, names, terms and code of README and documentation pages."""

import contextlib
import inspect
import io
import os
import re
import subprocess
import sys
import warnings

import pytest
from _pages import (
    DOCS,
    ROOT,
    blocks,
    code_lines,
    find_function,
    inline_code,
    locate,
    name_of,
    pages,
    prose,
    text_of,
)
from sklearn.utils._param_validation import StrOptions, generate_valid_param

import skppdnmf
from skppdnmf import PrivateDistributedNMF
from skppdnmf._consensus.agent import Phase
from skppdnmf._consensus.messages import KIND_NAMES
from skppdnmf._secure_sum.exchange import Stage
from skppdnmf._secure_sum.messages import SUM_KIND_NAMES
from skppdnmf.exceptions import PrivacyWarning

PARAMETERS = PrivateDistributedNMF().get_params()
every_page = pytest.mark.parametrize("page", pages(), ids=name_of)
# Their examples are whole fits, and take long.
LONG = ("security.md", "uses.md", "penalties.md")


def with_long_journeys():
    """Return the pages, those that take long as journeys."""
    long = pytest.mark.journey
    return [
        pytest.param(page, marks=long) if page.name in LONG else page
        for page in pages()
    ]


def slug(heading):
    """The anchor that Markdown renderers give a heading."""
    plain = re.sub(r"[`*]", "", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


@every_page
def test_relative_links_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)\s]+)\)", text_of(page))
    for target in targets:
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        if file.startswith("auto_examples/"):  # made by the gallery
            continue
        found = (page.parent / file).resolve() if file else page
        assert found.exists(), f"{name_of(page)} links to {target}"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", text_of(found), re.MULTILINE)
            assert anchor in [slug(heading) for heading in headings], target


def test_pages_are_reachable_from_the_first():
    """Every page is in a table of contents."""
    listed = {"index"}
    for page in pages():
        for info, text, _ in blocks(page):
            if info == "{toctree}":
                folder = page.parent.relative_to(DOCS)
                entries = [line for line in text.split("\n") if line and line[0] != ":"]
                listed |= {(folder / entry).as_posix() for entry in entries}
    written = {page.relative_to(DOCS).with_suffix("").as_posix()
               for page in pages() if DOCS in page.parents}  # fmt: skip
    assert written <= listed, written - listed


@every_page
def test_named_objects_exist(page):
    for code in inline_code(page):
        # `skppdnmf.toml` is a file of a site, and no module.
        for name in re.findall(r"\bskppdnmf(?!\.toml\b)(?:\.\w+)+", code):
            find_function(name)  # raises
        if re.fullmatch(r"(skppdnmf|tests|benchmarks|docs|examples)/[\w/.]*", code):
            assert (ROOT / code).exists(), f"{name_of(page)} names {code}"


def test_a_wrong_name_would_be_found():
    with pytest.raises(AttributeError):
        find_function("skppdnmf._nmf.admm.right_step")
    with pytest.raises(ModuleNotFoundError):
        find_function("skppdnmfx.anything")


@every_page
def test_named_parameters_exist_and_take_the_named_values(page):
    others = {"n_features", "agents", "backend", "ax", "image_shape", "reference"}
    for code in inline_code(page):
        match = re.fullmatch(r"([a-z]\w*)=(.+)", code)
        if match is None:
            continue
        name, value = match.groups()
        assert name in PARAMETERS or name in others, f"{name_of(page)}: {code}"
        constraints = PrivateDistributedNMF._parameter_constraints.get(name, [])
        allowed = [
            option
            for constraint in constraints
            if isinstance(constraint, StrOptions)
            for option in constraint.options
        ]
        if value[0] == '"' and allowed:
            assert value.strip('"') in allowed, f"{name_of(page)}: {code}"


@every_page
def test_named_attributes_are_documented_ones(page):
    attributes = re.findall(
        r"^    (\w+_) : ", PrivateDistributedNMF.__doc__, re.MULTILINE
    )
    assert "components_" in attributes
    for code in inline_code(page):
        if re.fullmatch(r"[a-z]\w*_", code):
            assert code in attributes or code in ("best_score_", "figure_", "ax_"), (
                f"{name_of(page)}: {code}"
            )


@every_page
def test_quoted_lines_stand_in_the_functions(page):
    for name, lines in code_lines(page):
        file, number = locate(name, lines)
        line = (ROOT / file).read_text(encoding="utf-8").split("\n")[number - 1]
        assert line.strip() == lines[0].strip()


def test_derivation_quotes_every_step():
    quoted = {name for name, _ in code_lines(DOCS / "how_it_works.md")}
    steps = {"left_step", "published_left_step", "add_consensus", "right_factor"}
    assert {f"skppdnmf._nmf.admm.{step}" for step in steps} <= quoted
    with pytest.raises(ValueError, match="does not have the lines"):
        locate("skppdnmf._nmf.admm.left_step", ["H = np.maximum(U - P, 0.0)"])


def code_tables():
    """Steps and functions of the tables that say where to read the code."""
    text = text_of(DOCS / "how_it_works.md").partition("## Where to read the code")[2]
    rows = re.findall(r"^\| (.+?) \| (.+?) \|$", text, re.MULTILINE)
    return [(step, re.findall(r"`(skppdnmf[\w.]+)`", code)) for step, code in rows]


def test_every_step_of_both_protocols_has_its_function():
    rows = code_tables()
    steps = " ".join(step for step, _ in rows)
    for number in (3, *range(7, 15)):
        assert f"({number})" in steps, f"equation ({number})"
    kinds = (*KIND_NAMES, *SUM_KIND_NAMES)
    stages = [one.value for one in (*Phase, *Stage)]
    for word in (*kinds, *stages):
        assert f'"{word}"' in steps, word
    functions = {name for _, names in rows for name in names}
    assert len(functions) > 50
    for name in functions:
        find_function(name)  # raises


def test_every_file_of_the_protocols_is_in_the_tables():
    named = {name for _, names in code_tables() for name in names}
    modules = {find_function(name).__module__ for name in named}
    around = {"build", "cost", "advice", "privacy", "protocol", "settings", "messages"}
    for room in ("_consensus", "_secure_sum", "_mpc", "_nmf"):
        for file in (ROOT / "skppdnmf" / room).glob("[a-z]*.py"):
            if file.stem not in around | {"threads"}:
                assert f"skppdnmf.{room}.{file.stem}" in modules, file


WORDS = {
    r"neighbor": "neighbour",
    r"factoriz": "factorise",
    r"non-?\s?negativ(?<!nonnegativ)": "nonnegative",
    r"\bnodes?\b(?![^\n]*networkx)(?<!networkx graph; its nodes)": "agent",
    r"\b(clients?|peers?|participants?)\b": "agent",
    r"\bcypher|\bcipher[ -]texts?|\bencrypted (texts?|messages?)\b": "ciphertext",
    r"\bcommunication rounds?\b": "exchange",
    r"\b(left|right|basis|coefficient|mixing) matri(x|ces)\b": "left or right factor",
    r"\bregularization|\bnormaliz|\binitializ|\bminimiz|\bpenaliz|\boptimiz": "-ise",
    r"\bbehavior|\bcolor\b|\bcenter(ed)?\b": "British spelling",
    r"\bhelper\b|\bissue \d+\b(?! of)": "nothing about how the work is organised",
}


@every_page
def test_terms_are_spelt_in_one_way(page):
    text = prose(page)
    for pattern, instead in WORDS.items():
        found = re.search(pattern, text, re.IGNORECASE)
        assert found is None, (
            f"{name_of(page)}: {found.group()!r} in "
            f"{text[max(0, found.start() - 30) : found.end() + 30]!r}; "
            f"write: {instead}"
        )


@pytest.mark.parametrize("word", ["neighbor", "node", "clients", "non-negative"])
def test_a_wrong_word_would_be_found(word):
    text = f"Each {word} has a copy."
    assert any(re.search(pattern, text, re.IGNORECASE) for pattern in WORDS)


@pytest.mark.parametrize("page", with_long_journeys(), ids=name_of)
def test_python_blocks_run(page, tmp_path, monkeypatch):
    """All compile; README's and those after ``<!-- run -->`` are executed in turn."""
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for info, text, before in blocks(page):
        if info != "python":
            continue
        code = compile(text, name_of(page), "exec")
        if before == "<!-- run -->" or page.name == "README.md":
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # also those on privacy
                # Pages fit small, public data with seeds, so that all see the same.
                for start in ("membership: ", "random_state is an integer"):
                    warnings.filterwarnings("ignore", start, PrivacyWarning)
                exec(code, namespace)


def test_enough_blocks_are_run():
    marked = {
        name_of(page)
        for page in pages()
        for info, _, before in blocks(page)
        if info == "python" and before == "<!-- run -->"
    }
    guide = {name_of(page) for page in (DOCS / "user_guide").glob("*.md")}
    # What troubleshooting quotes is compared in a test of its own, and questions
    # about federations show no Python.
    others = ("index", "command_line", "troubleshooting", "federation_questions")
    without = {f"docs/user_guide/{name}.md" for name in others}
    assert guide - without - {"docs/user_guide/backends.md"} <= marked


def test_reference_lists_every_public_name():
    text = (DOCS / "reference.rst").read_text(encoding="utf-8")
    listed, module = set(), None
    for line in text.split("\n"):
        if line.startswith(".. currentmodule::"):
            module = line.split()[-1]
        elif re.fullmatch(r"    \w+", line):
            listed.add(f"{module}.{line.strip()}")
    for name in listed:
        find_function(name)
    expected = {f"skppdnmf.{name}" for name in skppdnmf.__all__}
    for module in ("skppdnmf.exceptions", "skppdnmf.audit", "skppdnmf.plot"):
        try:
            public = find_function(module).__all__
        except ModuleNotFoundError:
            continue
        expected |= {f"{module}.{name}" for name in public}
    # Listed once, where they belong.
    expected -= {"skppdnmf.__version__", *(
        f"skppdnmf.{name}" for name in find_function("skppdnmf.exceptions").__all__
    )}  # fmt: skip
    assert expected <= listed, expected - listed


def test_the_estimator_links_to_its_page():
    """What scikit-learn's HTML representation shows leads to the reference."""
    link = PrivateDistributedNMF()._get_doc_link()
    assert link.startswith("https://skppdnmf.readthedocs.io/en/stable/")
    assert link.endswith("/generated/skppdnmf.PrivateDistributedNMF.html")
    first = (DOCS / "reference.rst").read_text(encoding="utf-8").split("\n\n")
    assert ".. currentmodule:: skppdnmf" in first
    assert "    :toctree: generated" in first[first.index(
        ".. currentmodule:: skppdnmf") + 1].split("\n")  # fmt: skip
    hosted = (ROOT / ".readthedocs.yaml").read_text(encoding="utf-8")
    assert "configuration: docs/conf.py" in hosted


def test_docstrings_name_the_parameters_that_there_are():
    """As numpydoc reads them; a type that breaks its line would make up names."""
    docscrape = pytest.importorskip("numpydoc.docscrape")
    for name in ("PrivateDistributedNMF", "estimate_cost", "stack_parts",
                 "load_cbcl", "make_paper_synthetic"):  # fmt: skip
        function = getattr(skppdnmf, name)
        # Raw docstrings keep their backslashes; the pages join such lines.
        text = inspect.getdoc(function).replace("\\\n", "")
        documented = [
            single.strip()
            for parameter in docscrape.NumpyDocString(text)["Parameters"]
            for single in parameter.name.split(",")
        ]
        assert documented == list(inspect.signature(function).parameters), name


def test_constraints_are_read_as_they_are():
    """The check of values above looks at the right thing."""
    constraint = PrivateDistributedNMF._parameter_constraints["masking"][0]
    assert generate_valid_param(constraint) in ("entrywise", "scalar")


@pytest.mark.skipif(os.name == "nt", reason="the commands are POSIX")
def test_the_commands_of_the_pages_exist():
    """Subcommands shown in console blocks are subcommands."""
    pytest.importorskip("skppdnmf.__main__")
    shown = set()
    for page in pages():
        for info, text, _ in blocks(page):
            if info == "console":
                shown |= set(re.findall(r"^skppdnmf (\w+)", text, re.MULTILINE))
            elif info.startswith("{command-help} "):
                shown.add(info.split()[1])
    assert {"fit", "audit", "bench", "demo"} <= shown
    done = subprocess.run(
        [sys.executable, "-m", "skppdnmf", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    for command in shown:
        assert re.search(rf"^\s+{command}\b", done.stdout, re.MULTILINE), command


def test_what_is_said_of_active_adversaries_has_its_tests():
    """Every row of the table names a test that there is."""
    text = (DOCS / "security.md").read_text(encoding="utf-8")
    section = text.split("## Active adversaries")[1].split("\n## ")[0]
    named = re.findall(r"`(test_\w+)` \|$", section, re.MULTILINE)
    assert len(named) >= 8
    source = "".join(
        file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("test_*.py")
    )
    for name in named:
        assert f"def {name}(" in source, name


def test_every_test_that_a_page_names_exists():
    """A claim of security is shown by a test, not by its name."""
    tests = "\n".join(text_of(one) for one in ROOT.glob("tests/**/test_*.py"))
    defined = set(re.findall(r"^ *def (test_\w+)\(", tests, re.MULTILINE))
    page = text_of(DOCS / "security.md")
    named = set(re.findall(r"`(test_\w+)`", page))
    table = page.split("## Active adversaries")[1].split("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][2:]
    assert rows
    assert [row for row in rows if not re.search(r"`test_\w+` \|$", row)] == []
    # With its positive control, or no measure that could be switched off.
    off = r"`test_(without|it_goes|noise|all_others)\w+`|no measure"
    control = rf"\| ({off}) \| `test_\w+` \|$"
    assert [row for row in rows if not re.search(control, row)] == []
    assert sorted(named - defined) == []


def test_output_that_the_readme_shows_is_what_is_printed(tmp_path, monkeypatch):
    """A block of text after a block of Python is its output."""
    monkeypatch.chdir(tmp_path)
    namespace, printed, compared = {}, "", 0
    for info, text, _ in blocks(ROOT / "README.md"):
        if info == "python":
            output = io.StringIO()
            with (
                contextlib.redirect_stdout(output),
                warnings.catch_warnings(),
            ):
                warnings.simplefilter("ignore")
                exec(compile(text, "README.md", "exec"), namespace)
            printed = output.getvalue()
        elif info == "text":
            assert text == printed
            compared += 1
    assert compared == 2
