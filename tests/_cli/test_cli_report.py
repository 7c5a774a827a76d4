"""The HTML reports: complete, in one file, and checked before the fit."""

import base64
import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from _cli_runner import forbid_fit, refused, succeeded

from skppdnmf import PrivateDistributedNMF
from skppdnmf._cli import fit as fit_module
from skppdnmf._cli.page import Page

QUICK = (
    *("--encryption", "simulated", "--n-components", "3", "--max-iter", "4"),
    *("--tol", "0", "--random-state", "0"),
)


class Reader(HTMLParser):
    """Collects tags, links and text; complains of tags that do not match."""

    def __init__(self, page):
        super().__init__()
        self.open = []
        self.tags = []
        self.links = []
        self.texts = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.links += [v for k, v in attributes if k in ("src", "href", "srcset")]
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        self.texts.append(text)


@pytest.fixture
def data(tmp_path):
    X = np.random.default_rng(0).exponential(size=(20, 6))
    np.save(tmp_path / "<X>.npy", X)
    return tmp_path / "<X>.npy"


def size_of_png(link):
    prefix = "data:image/png;base64,"
    assert link.startswith(prefix)
    image = base64.b64decode(link.removeprefix(prefix))
    assert image.startswith(b"\x89PNG\r\n")
    return int.from_bytes(image[16:20], "big"), int.from_bytes(image[20:24], "big")


@pytest.mark.parametrize("shape", [(), ("--image-shape", "2x3")])
def test_the_report_on_a_fit(data, tmp_path, shape):
    file = tmp_path / "new" / "report.html"
    result = succeeded("fit", data, *QUICK, "--report", file, *shape)
    assert f"written: {file}" in result.stdout
    page = file.read_text(encoding="utf-8")
    reader = Reader(page)
    # Nothing is loaded from elsewhere, and names of files are no markup.
    assert len(reader.links) == 3
    assert not re.search(r"https?://", page)
    assert "<script" not in page
    assert "<X>" not in page
    for width, height in map(size_of_png, reader.links):
        assert width > 400
        assert height > 200
    model = PrivateDistributedNMF(
        3, encryption="simulated", max_iter=4, tol=0, random_state=0
    ).fit(np.load(data))
    assert f"{model.history_['shared_error'][-1]:.4g}" in reader.texts
    for error in model.history_["consensus_error"]:
        assert f"{error:.4g}" in reader.texts
    for name, value in model.get_params().items():
        at = reader.texts.index(name)
        assert reader.texts[at + 1] == repr(value)
    assert any("nothing was encrypted" in text for text in reader.texts)


def sum_report(data, tmp_path, *options):
    quick = ("--protocol", "secure-sum", "--n-components", "3", "--random-state", "0")
    result = succeeded("fit", data, *quick, *options, "--report", tmp_path / "sum.html")
    return result, Reader((tmp_path / "sum.html").read_text())


def test_the_secure_sum_has_no_rows_of_what_does_not_exist_there(data, tmp_path):
    """One left factor, no ciphertext, and a local error that is the shared one."""
    result, reader = sum_report(data, tmp_path, "--max-iter", "4", "--tol", "0")
    for name in ("consensus error", "ciphertexts", "local error"):
        assert name not in reader.texts
        assert name not in result.stdout
    assert "shared error" in reader.texts
    assert any("mean of the agents' copies" in text for text in reader.texts) is False
    assert any("common to all agents" in text for text in reader.texts)
    (said,) = [text for text in reader.texts if text.startswith("Protected: ")]
    assert "Not protected: who is in the pool" in said
    curves = size_of_png(reader.links[0])
    assert min(curves) > 200


def test_a_report_says_what_epsilon_bounds(tmp_path):
    X = np.random.default_rng(0).random((4000, 4))
    np.save(tmp_path / "X.npy", X)
    noise = ("--epsilon", "5", "--delta", "1e-5", "--clip", "2.5", "--partition", "4")
    _, reader = sum_report(tmp_path / "X.npy", tmp_path, *noise)
    (said,) = [text for text in reader.texts if text.startswith("Protected: ")]
    assert "epsilon=5, delta=1e-05" in said
    assert "any one sample" in said


def test_one_large_feature_does_not_hide_the_rest(data, tmp_path, monkeypatch):
    """Each weight is divided by the largest of its feature, which the page says."""
    X = np.load(data)
    X[:, 2] *= 1e6
    np.save(tmp_path / "large.npy", X)
    drawn = []
    genuine = fit_module.ComponentsDisplay.plot

    def plot(display, *args, **given):
        shown = genuine(display, *args, **given)
        drawn.append(np.asarray(shown.artists_[0].get_array()))
        return shown

    monkeypatch.setattr(fit_module.ComponentsDisplay, "plot", plot)
    _, reader = sum_report(tmp_path / "large.npy", tmp_path, "--max-iter", "9")
    np.testing.assert_allclose(drawn[0].max(axis=0), 1.0)
    assert any("divided by the largest of its component" in t for t in reader.texts)


def test_images_differ_from_a_heat_map(data, tmp_path):
    pages = []
    for k, shape in enumerate([(), ("--image-shape", "2x3"), ("--image-shape", "3X2")]):
        succeeded("fit", data, *QUICK, "--report", tmp_path / f"{k}.html", *shape)
        pages.append(Reader((tmp_path / f"{k}.html").read_text()).links)
    curves, components, networks = zip(*pages, strict=True)
    assert len(set(components)) == 3
    assert len(set(networks)) == 1
    assert len(curves) == 3


def test_one_agent_and_names_of_features(tmp_path):
    (tmp_path / "a.csv").write_text("one,two\n1,2\n3,4\n5,7\n")
    one = ("--n-components", "1", "--partition", "1", "--tol", "0", "--max-iter", "2")
    succeeded("fit", tmp_path / "a.csv", *one, "--report", tmp_path / "r.html")
    reader = Reader((tmp_path / "r.html").read_text())
    assert len(reader.links) == 3


def test_the_report_is_not_replaced(data, tmp_path):
    file = tmp_path / "r.html"
    file.write_text("mine")
    assert refused("fit", data, *QUICK, "--report", file) == (
        f"{file}: exists; --force replaces it"
    )
    assert file.read_text() == "mine"
    succeeded("fit", data, *QUICK, "--report", file, "--force", "--quiet")
    assert file.read_text().startswith("<!doctype html>")


def test_what_is_refused_before_the_fit(data, tmp_path, monkeypatch):
    forbid_fit(monkeypatch)
    file = tmp_path / "r.html"
    report = ("--report", file)
    assert "is for --report, which is not given" in refused(
        "fit", data, "--image-shape", "2x3"
    )
    assert refused("fit", data, *report, "--image-shape", "8x8").endswith(
        "has 64 pixels, but " + str(data) + " has 6 features"
    )
    for shape in ("8", "x8", "2x3x1", "2xa", "0x6", "-2x-3"):
        assert refused("fit", data, *report, "--image-shape", shape) == (
            f"Invalid value for '--image-shape': {shape!r} is not rows x columns, such "
            "as 8x8."
        )
    assert refused("fit", data, "--report", tmp_path) == (
        f"Invalid value for '--report': File '{tmp_path}' is a directory."
    )
    for name in ("both.npz", "both.html", "both"):
        both = tmp_path / name
        assert refused("fit", data, "--out", both, "--report", both).startswith(
            "Invalid value for '--"
        )
    assert not file.exists()


@pytest.mark.parametrize("command", ["fit", "audit"])
@pytest.mark.parametrize("name", ["r.txt", "r.pdf", "r", "r.html.gz", ".html"])
def test_a_report_is_named_as_html(data, tmp_path, monkeypatch, command, name):
    forbid_fit(monkeypatch)
    file = tmp_path / name
    expected = (
        f"Invalid value for '--report': '{file}' does not end in .html or .htm; the "
        "report is written as HTML."
    )
    assert refused(command, data, "--report", file) == expected
    file.write_text("mine")
    refusal = refused(command, data, "--report", file, "--force")
    assert refusal == expected
    assert file.read_text() == "mine"


def test_a_report_may_be_named_otherwise(data, tmp_path):
    for name in ("r.htm", "R.HTML"):
        succeeded("fit", data, *QUICK, "--report", tmp_path / name)
        assert (tmp_path / name).read_text().startswith("<!doctype html>")


@pytest.mark.parametrize("command", ["fit", "audit"])
def test_without_matplotlib(data, tmp_path, monkeypatch, command):
    forbid_fit(monkeypatch)
    for module in [name for name in sys.modules if name.startswith("matplotlib")]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert refused(command, data, "--report", tmp_path / "r.html") == (
        '--report needs matplotlib: pip install "skppdnmf[plot]"'
    )


def test_a_fit_without_report_does_not_need_matplotlib(data, monkeypatch):
    for module in [name for name in sys.modules if name.startswith("matplotlib")]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    succeeded("fit", data, *QUICK)


def test_texts_of_a_page_are_no_markup():
    page = Page("<t>")
    page.heading("<h>")
    page.paragraph("<p>", warning=True)
    page.text("<x>")
    page.table([("<c>", 1)], header=["<n>", "m"], folded="<f>")
    rendered = page.render()
    for text in ("<t>", "<n>", "<x>", "<c>", "<f>"):
        assert text not in rendered
    reader = Reader(rendered)
    assert reader.texts.count("<t>") == 2
    assert {"<n>", "<c>", "1", "<f>", "<x>"} <= set(reader.texts)
