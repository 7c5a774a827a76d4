"""Each example and each script of the paper runs, and shows what it says it shows.

They run in quick mode, as subprocesses, so that they meet what a reader meets.
"""

import ast
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import matplotlib.image
import pytest
from _lattice_keys import need_tenseal

pytestmark = pytest.mark.journey

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
GALLERY = sorted(EXAMPLES.glob("plot_*.py"))
PAPER = sorted((EXAMPLES / "paper").glob("fig*.py"))
NUMBER = r"([\d,.]+)"


def run(script, output):
    """Run a script; its exit code, standard output and standard error."""
    environment = {
        **os.environ,
        "MPLBACKEND": "Agg",
        "SKPPDNMF_QUICK": "1",
        "SKPPDNMF_OUTPUT": str(output),
        "OPENBLAS_NUM_THREADS": "1",
        # The oldest matplotlib and pyparsing warn of each other.
        "PYTHONWARNINGS": "default,ignore::UserWarning:matplotlib._mathtext",
    }
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=output,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def numbers(line):
    """All numbers of a line."""
    return [float(n.replace(",", "")) for n in re.findall(r"\d[\d,]*\.?\d*", line)]


def row(text, name):
    """Numbers that follow `name` at the beginning of a line."""
    lines = [line for line in text.splitlines() if line.startswith(name)]
    assert len(lines) == 1, f"{len(lines)} lines begin with {name!r}:\n{text}"
    return numbers(lines[0][len(name) :])


def check_quickstart(text):
    private, summed, pooled = row(text, "relative error")
    assert pooled < private < 1.3 * pooled
    assert summed < 1.01 * pooled
    assert row(text, "ciphertexts")[0] > 500
    for name in ("secure sum", "pooled"):
        cosines = row(text, f"cosines, {name:11}")
        assert len(cosines) == 10
        assert all(0 < cosine <= 1 for cosine in cosines)


def check_pipeline(text):
    assert sum(row(text, f"  {site}")[0] for site in ("east", "harbour")) < 700
    assert row(text, "accuracy with routed labels:")[0] > 0.9
    assert row(text, "accuracy with fractions:")[0] > 0.9
    for count in (5, 10, 20, 30):
        pooled, _, private, _ = row(text, f"{count:10}")
        assert abs(pooled - private) < 0.05
    assert row(text, f"{30:10}")[2] > row(text, f"{5:10}")[2] + 0.1


def check_grid_search(text):
    match = re.search(
        rf"best: mu={NUMBER}, eta={NUMBER}, n_max=(\S+), held-out error {NUMBER}", text
    )
    mu, _, n_max, error = match.groups()
    assert float(mu) == 1
    assert float(n_max) >= 30
    assert float(error) < 0.11


def check_topologies(text):
    graphs = ["path", "ring", "random", "star", "complete"]
    edges, gaps, needed, _, _ = zip(
        *(row(text, graph) for graph in graphs), strict=True
    )
    assert edges == (11, 12, 18, 11, 66)
    # By hand: 2 - 2 cos(pi / 12), 2 - 2 cos(2 pi / 12), 1 and 12.
    assert (gaps[0], gaps[1], gaps[3], gaps[4]) == (0.068, 0.268, 1, 12)
    assert needed[0] > needed[1] > needed[2] > needed[4]


def check_non_identical_agents(text):
    alone = [row(text, f"agent {d}, {d + 1} alone") for d in range(0, 10, 2)]
    private, pooled = row(text, "five agents, private"), row(text, "pooled NMF")
    for k, errors in enumerate(alone):
        own = errors[2 * k], errors[2 * k + 1]
        others = [e for d, e in enumerate(errors[:10]) if d // 2 != k]
        assert max(own) < min(others)
        assert private[10] < errors[10] - 0.05
    assert abs(private[10] - pooled[10]) < 0.02


def check_text(text):
    private, pooled = row(text, "private")
    assert private == pytest.approx(pooled, rel=0.01)
    source = (EXAMPLES / "plot_text.py").read_text(encoding="utf-8")
    topics = re.search(r"^TOPICS = (\{.*?^\})", source, re.MULTILINE | re.DOTALL)[1]
    lines = [set(line.split()) for line in text.splitlines()]
    for topic, words in ast.literal_eval(topics).items():
        # One of the words that occur everywhere may be among them.
        found = [
            line
            for line in lines
            if len(line) == 7 and len(line & set(words.split())) >= 6
        ]
        assert len(found) == 1, f"{topic}: {found}"


def check_signatures(text):
    alone, together, pooled = (
        numbers(text.split(f"{name}:")[1].splitlines()[0])[0]
        for name in ("one hospital alone", "all hospitals, two known", "pooled NMF")
    )
    assert together > 0.95
    assert together > max(alone, pooled - 0.01)


def check_sensors(text):
    private = numbers(text.split("nobody shows:")[1].splitlines()[0])[-1]
    mean, zero = (
        numbers(text.split(f"{name}:")[1].splitlines()[0])[-1]
        for name in ("daily mean of the sensor", "gaps as zeros, pooled NMF")
    )
    assert private < 0.1 < 0.3 * min(mean, zero) + 0.07


def check_spectra(text):
    assert "known spectra kept: True" in text
    fixed = numbers(text.split("known fixed:")[1].splitlines()[0])
    pooled = numbers(text.split("pooled NMF:")[1].splitlines()[0])
    assert min(fixed) > max(pooled) > 0.99


def check_cost_of_privacy(text):
    lines = text.splitlines()
    pairs = [
        (numbers(line), numbers(lines[k + 1]))
        for k, line in enumerate(lines)
        if " estimate " in line
    ]
    assert len(pairs) == 2
    for estimate, measured in pairs:
        assert estimate[:2] == measured[:2]
    entrywise = row(text, "consensus, entrywise masks")
    scalar = row(text, "consensus, scalar masks")
    secure = row(text, "secure sum")
    assert entrywise[1] > 10 * scalar[1] > 10 * secure[1]
    assert secure[2] < 0.1 * scalar[2]
    assert secure[3] < 1.01 * row(text, "pooled NMF")[3]


def check_audit(text):
    # Columns: scalar masks without dither, scalar, entrywise.
    assert row(text, "greatest common divisor") == [100, 0, 0]
    assert row(text, "joint mask fit")[1] > 90
    assert row(text, "joint mask fit")[2] < 50
    assert row(text, "simulation ")[2] > 70
    assert row(text, "eavesdropper")[2] < 5
    assert "Weakest agent: 3 (it holds one sample; it has one neighbour)." in text
    on_path, on_ring = (row(text, graph)[-1] for graph in ("path", "ring"))
    assert on_path > on_ring + 10


def check_fig1a(text):
    assert text.startswith("1 trial; 30 exchanges")
    for n_max in ("10", "100", "1,000", "1,000,000"):
        # ..., last error, over centralised, consensus error.
        *_, local, _, consensus = row(text, f"published  {n_max:>9}    local")
        *_, shared, _, _ = row(text, f"published  {n_max:>9}   shared")
        assert shared > 2 * local
        assert consensus > 0.2
        *_, corrected, _, agreed = row(text, f"corrected  {n_max:>9}   shared")
        assert corrected < 0.7 * shared
        assert agreed < 0.7 * consensus


def check_fig1bc(text):
    assert text.startswith("no path given: scikit-learn's digits stand in")
    _, local, shared, _, consensus = row(text, "published")
    assert shared > 1.5 * local
    assert consensus > 0.5
    _, local, shared, over, consensus = row(text, "corrected, default penalties")
    assert shared < 1.02 * local
    assert over < 1.1
    assert consensus < 0.06


CHECKS = {
    name.removeprefix("check_"): check
    for name, check in list(globals().items())
    if name.startswith("check_")
}


def name_of(script):
    return script.stem.removeprefix("plot_")


def test_every_script_is_checked():
    assert {name_of(script) for script in GALLERY + PAPER} == set(CHECKS)


@pytest.mark.parametrize("script", GALLERY + PAPER, ids=name_of)
def test_runs_and_shows_what_it_says(script, tmp_path):
    if script.name == "plot_quickstart.py":
        need_tenseal()
    code, text, complaints = run(script, tmp_path)
    assert code == 0, complaints
    assert "Warning" not in complaints
    pictures = [
        Path(line.removeprefix("figure: "))
        for line in text.splitlines()
        if line.startswith("figure: ")
    ]
    assert sorted(pictures) == sorted(tmp_path.iterdir())
    assert pictures
    for picture in pictures:
        pixels = matplotlib.image.imread(picture)
        assert min(pixels.shape[:2]) > 400
        assert pixels[..., :3].std() > 0.05
    CHECKS[name_of(script)](text)


@pytest.mark.parametrize("script", GALLERY, ids=name_of)
def test_is_a_gallery_script(script):
    source = script.read_text(encoding="utf-8")
    title, underline, blank, *_ = ast.get_docstring(ast.parse(source)).splitlines()
    assert underline == "=" * len(title)
    assert not blank
    assert source.count("\n# %%\n") >= 2
    for heading, line in re.findall(r"\n# %%\n# (.+)\n# (-+)\n", source):
        assert len(heading) == len(line)


@pytest.mark.parametrize("script", PAPER, ids=name_of)
def test_paper_scripts_say_how_to_run_them(script):
    explanation = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8")))
    assert f"``python examples/paper/{script.name}" in explanation


def test_a_path_without_faces_is_refused(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES / "paper")
    script = importlib.import_module("fig1bc")
    with pytest.raises(FileNotFoundError, match="no file or folder 'no/where'"):
        script.load_data("no/where", quick=True)
