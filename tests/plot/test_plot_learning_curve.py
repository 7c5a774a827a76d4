"""Learning curves: what is drawn is what the history says."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import load_digits

from skppdnmf import PrivateDistributedNMF
from skppdnmf.plot import LearningCurveDisplay
from skppdnmf.plot._learning_curve import distinguish

ERRORS = ["shared_error", "local_error", "consensus_error"]


def model(**parameters):
    defaults = {"encryption": "simulated", "max_iter": 6, "tol": 0, "random_state": 0}
    X = load_digits().data[:80]
    return PrivateDistributedNMF(4, **{**defaults, **parameters}).fit(X)


@pytest.fixture(scope="module")
def fitted():
    return model()


@pytest.fixture(scope="module")
def others():
    return [model(n_max=n, mu=mu) for n, mu in ((10, 1.0), (1000, 2.0))]


def history(n=30, **columns):
    """A history whose errors fall over three decades."""
    falling = np.logspace(0, -3, n)
    return {
        "exchanges": 5 * np.arange(1, n + 1),
        "seconds": np.arange(1, n + 1) / 10,
        "bytes": 1_500_000 * np.arange(1, n + 1),
        "local_error": falling * 0.9,
        "shared_error": falling,
        "consensus_error": falling / 10,
        **columns,
    }


@pytest.mark.parametrize(
    ("x", "label"),
    [
        ("exchanges", "Exchanges between neighbours"),
        ("seconds", "Time (s)"),
        ("bytes", "Sent by all agents"),
        ("iterations", "Iterations of block coordinate descent"),
    ],
)
def test_curves_are_the_history(fitted, x, label):
    display = LearningCurveDisplay.from_estimator(fitted, x=x)
    assert display.lines_.shape == (1, 3)
    expected = np.arange(1, 7) if x == "iterations" else fitted.history_[x]
    for line, name in zip(display.lines_[0], ERRORS, strict=True):
        assert_array_equal(line.get_xdata(), expected)
        assert_array_equal(line.get_ydata(), fitted.history_[name])
    assert display.ax_.get_xlabel() == label
    assert display.ax_.get_ylabel() == "Relative error"
    assert display.ax_.get_yscale() == "log"
    assert display.figure_ is display.ax_.figure
    assert not display.zeros_
    display.figure_.canvas.draw()


def test_errors_are_selectable_and_named(fitted):
    display = LearningCurveDisplay.from_estimator(
        fitted, errors=["consensus_error", "local_error", "local_error"]
    )
    assert [line.get_label() for line in display.lines_[0]] == [
        "consensus error",
        "local error",
    ]
    one = LearningCurveDisplay.from_estimator(fitted, errors="consensus_error")
    assert one.ax_.get_ylabel() == "Consensus error, relative to the components"
    assert one.legend_ is None  # one curve, nothing to tell apart


def test_several_estimators_are_labelled_by_what_differs(others):
    display = LearningCurveDisplay.from_estimator(others)
    assert display.lines_.shape == (2, 1)
    labels = [line.get_label() for line in display.lines_[:, 0]]
    assert labels == ["mu=1.0, n_max=10", "mu=2.0, n_max=1000"]
    assert [text.get_text() for text in display.legend_.get_texts()] == labels
    colours = {line.get_color() for line in display.lines_[:, 0]}
    markers = {line.get_marker() for line in display.lines_[:, 0]}
    assert len(colours) == len(markers) == 2
    for line, one in zip(display.lines_[:, 0], others, strict=True):
        assert_array_equal(line.get_ydata(), one.history_["shared_error"])


def test_keys_of_a_mapping_are_labels(others):
    display = LearningCurveDisplay.from_estimator(
        dict(zip(("coarse", "fine"), others, strict=True)), reference={"pooled": 0.3}
    )
    names = [text.get_text() for text in display.legend_.get_texts()]
    assert names == ["coarse", "fine", "pooled"]
    with pytest.raises(ValueError, match="labelled by its keys"):
        LearningCurveDisplay.from_estimator({"a": others[0]}, labels=["b"])


def test_many_curves_have_a_legend_that_is_a_sum():
    display = LearningCurveDisplay(
        [history() for _ in range(3)], labels=["a", "b", "c"], reference=0.01
    ).plot(errors=ERRORS)
    names = [text.get_text() for text in display.legend_.get_texts()]
    assert names == [
        *("a", "b", "c"),
        *("shared error", "local error", "consensus error"),
        "reference",
    ]
    for row in display.lines_:
        assert len({line.get_color() for line in row}) == 1
        assert len({line.get_linestyle() for line in row}) == 3


def test_labels_without_parameters_that_tell_apart(fitted):
    assert distinguish([fitted, fitted]) == ["estimator 0", "estimator 1"]

    class Bare:
        history_ = None

    assert distinguish([Bare(), Bare()]) == ["estimator 0", "estimator 1"]
    # An array is no label.
    one, two = (
        PrivateDistributedNMF(2, init=np.full((2, 9), value)) for value in (1.0, 2.0)
    )
    assert distinguish([one, two]) == ["estimator 0", "estimator 1"]
    two.set_params(mu=3)
    assert distinguish([one, two]) == ["mu=1.0", "mu=3"]


def test_references_are_horizontal_lines(fitted):
    display = LearningCurveDisplay.from_estimator(
        fitted, reference={"NMF": 0.4, "noise": 0.2}, reference_kw={"c": "red"}
    )
    assert [line.get_label() for line in display.reference_lines_] == ["NMF", "noise"]
    for line, value in zip(display.reference_lines_, (0.4, 0.2), strict=True):
        assert list(line.get_ydata()) == [value, value]
        assert line.get_color() == "red"


def test_exact_zeros_are_marked_at_the_edge():
    zeros = np.zeros(30)
    display = LearningCurveDisplay(history(consensus_error=zeros)).plot()
    assert display.ax_.get_yscale() == "log"
    (marks,) = display.zeros_
    assert set(marks.get_xdata()) <= set(history()["exchanges"])
    display.figure_.canvas.draw()
    pixels = marks.get_transform().transform(marks.get_xydata())
    bottom = display.ax_.bbox.y0
    assert (pixels[:, 1] > bottom).all()
    assert (pixels[:, 1] < bottom + 0.1 * display.ax_.bbox.height).all()
    assert np.isnan(display.lines_[0, 2].get_ydata()).all()
    names = [text.get_text() for text in display.legend_.get_texts()]
    assert "exactly 0" in names


def test_some_zeros_leave_the_rest_of_the_curve():
    error = history()["consensus_error"]
    error[20:] = 0.0
    display = LearningCurveDisplay(history(consensus_error=error)).plot(
        errors="consensus_error"
    )
    drawn = display.lines_[0, 0].get_ydata()
    assert_array_equal(drawn[:20], error[:20])
    assert np.isnan(drawn[20:]).all()
    assert min(display.zeros_[0].get_xdata()) == 105


def test_zeros_alone_take_a_linear_axis():
    zeros = np.zeros(30)
    display = LearningCurveDisplay(history(consensus_error=zeros)).plot(
        errors="consensus_error"
    )
    assert display.ax_.get_yscale() == "linear"
    assert_array_equal(display.lines_[0, 0].get_ydata(), zeros)
    assert not display.zeros_
    # On an axis that is logarithmic already they are marks.
    ax = LearningCurveDisplay(history()).plot().ax_
    again = LearningCurveDisplay(history(consensus_error=zeros)).plot(
        ax, errors="consensus_error"
    )
    assert len(again.zeros_) == 1
    assert ax.get_yscale() == "log"


def test_infinite_errors_are_gaps():
    error = history()["consensus_error"]
    error[:3] = np.inf
    display = LearningCurveDisplay(history(consensus_error=error)).plot()
    display.figure_.canvas.draw()
    assert np.isfinite(display.ax_.get_ylim()).all()


def test_one_agent_alone_is_drawn_against_iterations():
    alone = model(partition=1)
    display = LearningCurveDisplay.from_estimator(alone)
    assert_array_equal(display.lines_[0, 0].get_xdata(), np.arange(1, 7))
    assert "Iterations" in display.ax_.get_xlabel()
    display.figure_.canvas.draw()


def test_a_single_iteration_is_visible():
    display = LearningCurveDisplay(history(1)).plot()
    assert all(line.get_marker() != "None" for line in display.lines_[0])


def test_axes_of_the_user_and_a_second_display(fitted):
    _, ax = plt.subplots()
    first = LearningCurveDisplay.from_estimator(
        fitted, ax=ax, errors="shared_error", labels=["a"]
    )
    second = LearningCurveDisplay.from_estimator(
        fitted, ax=ax, errors="shared_error", labels=["b"]
    )
    assert first.ax_ is second.ax_ is ax
    assert first.lines_[0, 0].get_color() != second.lines_[0, 0].get_color()
    assert [text.get_text() for text in second.legend_.get_texts()] == ["a", "b"]


def test_styles_for_all_and_for_each(others):
    display = LearningCurveDisplay.from_estimator(others, line_kw={"lw": 4})
    assert [line.get_linewidth() for line in display.lines_[:, 0]] == [4, 4]
    display = LearningCurveDisplay.from_estimator(
        others, line_kw=[{"c": "red"}, {"color": "blue"}], legend=False
    )
    assert [line.get_color() for line in display.lines_[:, 0]] == ["red", "blue"]
    assert display.legend_ is None
    with pytest.raises(ValueError, match="line_kw has 1 mappings for 2 histories"):
        LearningCurveDisplay.from_estimator(others, line_kw=[{}])


@pytest.mark.parametrize(
    ("low", "high"),
    [(0.31, 0.44), (0.19, 0.55), (0.07, 0.53), (0.004, 0.5), (1e-9, 0.5)],
)
def test_ticks_are_readable_at_any_span(low, high):
    error = np.geomspace(high, low, 30)
    display = LearningCurveDisplay(history(shared_error=error)).plot(
        errors="shared_error"
    )
    display.figure_.canvas.draw()
    ax = display.ax_
    bottom, top = ax.get_ylim()
    texts = [
        label.get_text()
        for label, at in zip(ax.get_yticklabels(), ax.get_yticks(), strict=True)
        if bottom <= at <= top and label.get_text()
    ]
    assert 3 <= len(texts) <= 12
    assert len(set(texts)) == len(texts)
    assert not any(label.get_text() for label in ax.get_yticklabels(minor=True))


def test_bytes_are_counted_in_a_unit():
    display = LearningCurveDisplay(history()).plot(x="bytes")
    display.figure_.canvas.draw()
    labels = dict(
        zip(
            display.ax_.get_xticks(),
            (label.get_text() for label in display.ax_.get_xticklabels()),
            strict=True,
        )
    )
    assert labels[20e6] == "20 MB"


def test_logarithmic_costs():
    fast = history(bytes=np.geomspace(2e4, 3e6, 30))
    slow = history(bytes=np.geomspace(5e7, 4e9, 30))
    display = LearningCurveDisplay([fast, slow]).plot(x="bytes", xscale="log")
    display.figure_.canvas.draw()
    ax = display.ax_
    low, high = ax.get_xlim()
    shown = {
        label.get_text()
        for label, at in zip(ax.get_xticklabels(), ax.get_xticks(), strict=True)
        if low <= at <= high
    }
    assert {"100 kB", "10 MB", "1 GB"} <= shown
    assert ax.get_xlabel() == "Sent by all agents"
    counts = LearningCurveDisplay(history()).plot(xscale="log")
    assert counts.ax_.get_xscale() == "log"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"x": "epochs"}, "x='epochs' is not one of 'exchanges'"),
        ({"xscale": "symlog"}, "xscale='symlog' is not one of"),
        ({"yscale": "symlog"}, "yscale='symlog' is not one of"),
        ({"errors": ["bias"]}, "errors='bias' is not one of"),
        ({"errors": []}, "errors is empty"),
        ({"reference": -0.1}, r"reference=-0.1 \(reference\) must be"),
        ({"reference": {"pooled": np.nan}}, r"\(pooled\) must be a finite number"),
        ({"reference": "NMF"}, "reference='NMF'"),
        ({"reference": 0}, "use yscale='linear'"),
        ({"labels": ["a", "b"]}, "labels has 2 entries for 1 histories"),
    ],
)
def test_bad_arguments_are_refused_before_a_figure_is_made(fitted, arguments, message):
    before = plt.get_fignums()
    with pytest.raises(ValueError, match=message):
        LearningCurveDisplay.from_estimator(fitted, **arguments)
    assert plt.get_fignums() == before


def test_zero_reference_on_a_linear_axis(fitted):
    display = LearningCurveDisplay.from_estimator(fitted, reference=0, yscale="linear")
    assert display.ax_.get_yscale() == "linear"
    assert len(display.reference_lines_) == 1


def test_histories_are_checked():
    with pytest.raises(ValueError, match=r"estimator=\[\] is empty"):
        LearningCurveDisplay.from_estimator([])
    with pytest.raises(ValueError, match=r"histories\[1\] has no local_error, bytes"):
        LearningCurveDisplay(
            [
                history(),
                {
                    name: column
                    for name, column in history().items()
                    if name not in ("local_error", "bytes")
                },
            ]
        ).plot()
