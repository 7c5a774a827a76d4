"""Scikit-learn's callbacks, and progress without them."""

import re
import warnings

import numpy as np
import pytest
from _estimators import model
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

try:
    from sklearn import callback as callbacks
except ImportError:
    callbacks = None
needs_callbacks = pytest.mark.skipif(
    callbacks is None, reason="callbacks need scikit-learn 1.9"
)

# Penalties that no balance changes: an iteration does not depend on max_iter.
FIXED_PENALTIES = {"penalty_scaling": "absolute", "mu": 100.0, "eta": 100.0}


@pytest.fixture(scope="module")
def X():
    return load_digits().data[:90, 10:40]


def own_score(estimator, X, y):
    # ScoringMonitor(scoring=None) of version 1.9.1 fails with any estimator.
    return estimator.score(X)


class Recorder:
    """Keeps what it is called with; asks to stop after some iterations."""

    def __init__(self, stop_after=None):
        self.stop_after = stop_after
        self.calls = []
        self.fitted = []

    def setup(self, estimator, context):
        self.calls.append(("setup", context.task_name))

    def teardown(self, estimator, context):
        self.calls.append(("teardown", context.task_name))

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None):
        self.calls.append(("begin", context.task_name, context.task_id))

    def on_fit_task_end(
        self, estimator, context, *, X=None, y=None, fitted_estimator=None
    ):
        self.calls.append(("end", context.task_name, context.task_id))
        self.fitted.append((context.task_name, fitted_estimator, X, y))
        if context.task_name == "iteration" and self.stop_after is not None:
            return context.task_id + 1 >= self.stop_after
        return None


@needs_callbacks
def test_every_iteration_begins_and_ends(X):
    recorder = Recorder()
    model(max_iter=3).set_callbacks(recorder).fit(X)
    iterations = [(kind, "iteration", k) for k in range(3) for kind in ("begin", "end")]
    assert recorder.calls == [
        ("setup", "fit"),
        ("begin", "fit", 0),
        *iterations,
        ("end", "fit", 0),
        ("teardown", "fit"),
    ]


@needs_callbacks
@pytest.mark.parametrize("method", ["fit", "fit_transform"])
def test_callbacks_see_a_fitted_estimator(X, method):
    recorder = Recorder()
    estimator = model(**FIXED_PENALTIES).set_callbacks(recorder)
    getattr(estimator, method)(X)
    assert len(recorder.fitted) == 7
    for k, (name, fitted, data, _) in enumerate(recorder.fitted[:-1]):
        assert name == "iteration"
        assert data is X
        assert fitted.n_iter_ == k + 1 == len(fitted.history_["exchanges"])
        short = model(max_iter=k + 1, **FIXED_PENALTIES).fit(X)
        assert_array_equal(fitted.components_, short.components_)
        assert_array_equal(fitted.agent_components_, short.agent_components_)
        assert_array_equal(fitted.transform(X), short.transform(X))
        assert fitted.score(X) == short.score(X)
        assert fitted.consensus_error_ == short.consensus_error_
    name, fitted, _, _ = recorder.fitted[-1]
    assert name == "fit"
    assert_array_equal(fitted.components_, estimator.components_)
    assert fitted.reconstruction_err_ == estimator.reconstruction_err_


@needs_callbacks
def test_callbacks_do_not_change_the_fit(X):
    one = model().fit(X)
    other = model().set_callbacks(Recorder()).fit(X)
    assert_array_equal(other.components_, one.components_)
    assert other.traffic_ == one.traffic_
    assert set(vars(other)) - set(vars(one)) == {"_skl_callbacks"}


@needs_callbacks
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_callback_can_stop_the_fit(X, n_jobs):
    recorder = Recorder(stop_after=3)
    stopped = model(max_iter=50, tol=1e-8, n_jobs=n_jobs, **FIXED_PENALTIES)
    stopped.set_callbacks(recorder).fit(X)
    assert stopped.n_iter_ == 3
    assert ("begin", "iteration", 3) not in recorder.calls
    assert recorder.calls[-2:] == [("end", "fit", 0), ("teardown", "fit")]
    short = model(max_iter=3, **FIXED_PENALTIES).fit(X)
    assert_array_equal(stopped.components_, short.components_)


@needs_callbacks
@pytest.mark.parametrize("stop_after", [1, 2, 5])
@pytest.mark.parametrize("adjacency", ["path", "complete"])
@pytest.mark.parametrize(
    "parameters",
    [
        {"protocol": "secure-sum"},
        {"protocol": "secure-sum", "n_init": 1},
        {"protocol": "secure-sum", "partition": 1},
        {"protocol": "secure-sum", "partition": 1, "n_init": 1},
        {"encryption": None},
        {"encryption": "simulated", "max_admm_iter": 1},
        {"encryption": "simulated", "partition": 9},
        {"partition": 1},
        {"encryption": "simulated", **FIXED_PENALTIES},
    ],
)
def test_a_stopped_fit_is_a_shorter_one(X, parameters, adjacency, stop_after):
    """Agents end a little later, together; what they reach then is not looked at."""
    parameters = {**parameters, "adjacency": adjacency}
    recorder = Recorder(stop_after)
    stopped = model(max_iter=60, tol=1e-8, **parameters).set_callbacks(recorder)
    with warnings.catch_warnings():
        # It was meant to end before it converged.
        warnings.simplefilter("error", ConvergenceWarning)
        stopped.fit(X)
    assert stopped.n_iter_ == stop_after
    onlooker = Recorder()
    model(max_iter=60, **parameters).set_callbacks(onlooker).fit(X)
    others = [onlooker.fitted[stop_after - 1][1]]
    if "n_init" in parameters or "penalty_scaling" in parameters:
        # How long the secure sum follows several starts depends on max_iter, and so
        # does how strongly links pull, unless penalties are given as they are.
        others.append(model(max_iter=stop_after, **parameters).fit(X))
    for other in others:
        assert stopped.n_exchanges_ == other.n_exchanges_
        assert_array_equal(stopped.components_, other.components_)
        assert_array_equal(stopped.agent_components_, other.agent_components_)
        assert stopped.consensus_error_ == other.consensus_error_
        assert stopped.score(X) == other.score(X)
        for column in set(other.history_) - {"seconds", "bytes"}:
            assert_array_equal(stopped.history_[column], other.history_[column])
    assert stopped.history_["bytes"][-1] <= stopped.traffic_["bytes"]
    iterations = [call for call in recorder.calls if call[1] == "iteration"]
    assert len(iterations) == 2 * stop_after


@needs_callbacks
def test_whoever_stops_in_the_last_iteration_changes_nothing(X):
    expected = model(max_iter=4).fit(X)
    stopped = model(max_iter=4).set_callbacks(Recorder(stop_after=4)).fit(X)
    assert stopped.traffic_ == expected.traffic_
    assert_array_equal(stopped.components_, expected.components_)


@needs_callbacks
def test_a_converged_fit_ends_what_it_began(X):
    recorder = Recorder()
    estimator = model(2, tol=1e-2, max_iter=300, partition=3)
    fitted = estimator.set_callbacks(recorder).fit(X)
    assert fitted.n_iter_ < 300
    begun = {call[1:] for call in recorder.calls if call[0] == "begin"}
    ended = {call[1:] for call in recorder.calls if call[0] == "end"}
    assert begun == ended
    assert len(ended) == fitted.n_iter_ + 1


@needs_callbacks
def test_a_failing_fit_tears_down(X):
    recorder = Recorder()
    estimator = model(key_size=16, n_max=1e300).set_callbacks(recorder)
    with pytest.raises((OverflowError, ValueError)):
        estimator.fit(X)
    assert not hasattr(estimator, "_callback_fit_ctx")
    if recorder.calls:
        assert recorder.calls[-1] == ("teardown", "fit")


@needs_callbacks
def test_parts_and_names_reach_the_callbacks(X):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=[f"f{k}" for k in range(30)])
    monitor = callbacks.ScoringMonitor(scoring={"score": own_score})
    model(max_iter=2).set_callbacks(monitor).fit([frame[:50], frame[50:]])
    scores = [row["score"] for row in monitor.get_logs().data]
    assert len(scores) == 3
    model(max_iter=2, partition=[50, 40]).set_callbacks(monitor).fit(X.tolist())
    assert_allclose([row["score"] for row in monitor.get_logs().data], scores)


@needs_callbacks
def test_scoring_monitor(X):
    monitor = callbacks.ScoringMonitor(scoring={"score": own_score})
    fitted = model().set_callbacks(monitor).fit(X)
    log = monitor.get_logs().data
    assert [row["task_name"] for row in log] == ["fit"] + ["iteration"] * 6
    scores = [row["score"] for row in log]
    assert scores[0] == scores[-1] == fitted.score(X)
    assert scores[1] < scores[-1]


@needs_callbacks
@pytest.mark.parametrize("in_pipeline", [True, False])
def test_scoring_monitor_in_a_parallel_search(X, in_pipeline):
    monitor = callbacks.ScoringMonitor(scoring={"score": own_score})
    nmf = model(max_iter=3).set_callbacks(monitor)
    prefix = "privatedistributednmf__" if in_pipeline else ""
    estimator = make_pipeline(MinMaxScaler(clip=True), nmf) if in_pipeline else nmf
    GridSearchCV(
        estimator, {f"{prefix}mu": [0.5, 1.0, 2.0]}, cv=2, n_jobs=2, refit=False
    ).fit(X)
    rows = [row for log in monitor.get_logs(select="all") for row in log.data]
    scores = [row["score"] for row in rows if row["task_name"] == "iteration"]
    assert len(scores) == 3 * 2 * 3
    assert np.isfinite(scores).all()


@needs_callbacks
def test_progress_bar(X, capsys):
    pytest.importorskip("rich")
    model().set_callbacks(callbacks.ProgressBar()).fit(X)
    shown = capsys.readouterr().out
    assert "PrivateDistributedNMF - fit" in shown
    assert "100%" in shown


@needs_callbacks
def test_progress_bar_of_a_parallel_search(X, capsys):
    pytest.importorskip("rich")
    search = GridSearchCV(model(max_iter=3), {"mu": [0.5, 2.0]}, cv=2, n_jobs=2)
    search.set_callbacks(callbacks.ProgressBar(max_propagation_depth=2)).fit(X)
    shown = capsys.readouterr().out
    assert "GridSearchCV" in shown
    assert len(re.findall("PrivateDistributedNMF", shown)) >= 4
    assert "_parent_callback_ctx" not in vars(search.best_estimator_)


@needs_callbacks
def test_a_callback_stops_fits_of_a_search(X):
    recorder = Recorder(stop_after=2)
    search = GridSearchCV(
        model(max_iter=9).set_callbacks(recorder), {"mu": [0.5, 2.0]}, cv=2
    ).fit(X)
    assert search.best_estimator_.n_iter_ == 2
    assert recorder.calls.count(("teardown", "fit")) == 5


@pytest.mark.skipif(callbacks is not None, reason="only without callbacks")
def test_without_support_callbacks_do_nothing(X):
    recorder = Recorder()
    fitted = model().set_callbacks(recorder).fit(X)
    assert recorder.calls == []
    assert_array_equal(fitted.components_, model().fit(X).components_)


def test_callbacks_survive_cloning_where_there_are_any(X):
    recorder = Recorder()
    clone(model(max_iter=1).set_callbacks(recorder)).fit(X)
    assert bool(recorder.calls) == (callbacks is not None)


def test_verbose_reports_without_callbacks(X, capsys):
    model(verbose=1, max_iter=2).fit(X)
    shown = capsys.readouterr()
    assert re.search(r"exchanges 10, error 0\.\d+, consensus", shown.out + shown.err)
