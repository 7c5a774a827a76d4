"""Sparse data and single precision, from end to end."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from _estimators import model
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_digits

FORMATS = [
    sparse.csr_matrix,
    sparse.csc_matrix,
    sparse.coo_matrix,
    sparse.csr_array,
    sparse.csc_array,
    sparse.coo_array,
    sparse.lil_array,
    sparse.dok_matrix,
    sparse.bsr_array,
    sparse.dia_matrix,
]


@pytest.fixture(scope="module")
def X():
    X = load_digits().data[:60, 10:40]
    return np.where(X > 6, X, 0)


@pytest.fixture(scope="module")
def fitted(X):
    return model().fit(X)


@pytest.mark.parametrize("convert", FORMATS, ids=lambda f: f.__name__)
def test_every_format_gives_the_dense_result(X, fitted, convert):
    data = convert(X)
    before = data.copy()
    estimator = model().fit(data)
    assert_allclose(estimator.components_, fitted.components_, rtol=1e-6, atol=1e-6)
    W = estimator.transform(data)
    assert isinstance(W, np.ndarray)
    assert_array_equal(W, model().fit_transform(data))
    assert_allclose(W, fitted.transform(X), rtol=1e-5, atol=1e-5)
    assert estimator.score(data) == pytest.approx(fitted.score(X), rel=1e-6)
    assert estimator.reconstruction_err_ == pytest.approx(
        fitted.reconstruction_err_, rel=1e-6
    )
    assert_array_equal(data.toarray(), before.toarray())


def test_explicit_zeros_and_duplicates_change_nothing(X, fitted):
    rows, columns = np.nonzero(X >= 0)  # all of them
    with_zeros = sparse.coo_array((X[rows, columns], (rows, columns)), shape=X.shape)
    assert with_zeros.nnz == X.size
    twice = sparse.coo_array(
        (np.tile(X[rows, columns] / 2, 2), (np.tile(rows, 2), np.tile(columns, 2))),
        shape=X.shape,
    )
    unsorted = sparse.csr_array(X)[:, ::-1][:, ::-1]
    for data in (with_zeros, twice, sparse.csr_array(with_zeros), unsorted):
        estimator = model().fit(data)
        assert_allclose(estimator.components_, fitted.components_, rtol=1e-6, atol=1e-6)
        assert_allclose(
            fitted.transform(data), fitted.transform(X), rtol=1e-9, atol=1e-9
        )


def test_parts_may_be_sparse(X, fitted):
    parts = [sparse.csr_array(X[:15]), sparse.coo_matrix(X[15:30]), X[30:45], X[45:]]
    estimator = model().fit(parts)
    assert_allclose(estimator.components_, fitted.components_, rtol=1e-6, atol=1e-6)
    assert_allclose(estimator.transform(parts), fitted.transform(X), atol=1e-5)


def test_no_stored_entry_at_all():
    estimator = model(2).fit(sparse.csr_array((9, 4)))
    assert_array_equal(estimator.transform(sparse.csc_matrix((3, 4))), 0)
    assert estimator.reconstruction_err_ == 0


LARGE = """
import resource, sys
import numpy as np
from scipy import sparse
from skppdnmf import PrivateDistributedNMF

rng = np.random.default_rng(0)
n_entries = 200_000
places = rng.integers(20_000, size=n_entries), rng.integers(10_000, size=n_entries)
X = sparse.coo_matrix((rng.random(n_entries), places), shape=(20_000, 10_000))
X = X.asformat(sys.argv[1])
assert X.shape[0] * X.shape[1] * X.dtype.itemsize > 1 << 30
model = PrivateDistributedNMF(
    3, encryption="simulated", max_iter=2, tol=0, random_state=0, partition=5
)
W = model.fit_transform(X)
assert W.shape == (20_000, 3) and np.isfinite(W).all()
assert -1 < model.score(X) < 0
# Linux counts in ru_maxrss what the parent held when it forked; not so in VmHWM.
try:
    with open("/proc/self/status") as status:
        lines = dict(line.split(":", 1) for line in status)
    print(int(lines["VmHWM"].split()[0]) * 1024)
except FileNotFoundError:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no resource module")
@pytest.mark.parametrize("kind", ["csr", "coo"])
def test_large_sparse_data_are_never_densified(kind):
    """The dense form takes 1.6 GB; the whole process stays below a third of it."""
    result = subprocess.run(
        [sys.executable, "-c", LARGE, kind],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) < 500e6


# Single precision -----------------------------------------------------------------


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("encryption", ["simulated", None])
def test_single_precision_from_end_to_end(X, convert, encryption):
    data = convert(X.astype(np.float32))
    estimator = model(encryption=encryption)
    W = estimator.fit_transform(data)
    assert W.dtype == np.float32
    for name in ("components_", "agent_components_"):
        assert getattr(estimator, name).dtype == np.float32
    assert estimator.transform(data).dtype == np.float32
    assert estimator.inverse_transform(W).dtype == np.float32
    assert_array_equal(W, estimator.transform(data))
    double = model(encryption=encryption).fit(X)
    assert estimator.score(data) == pytest.approx(double.score(X), rel=1e-4)
    # Data in double precision keep theirs, whatever the fit had.
    assert estimator.transform(X).dtype == np.float64
    assert_allclose(estimator.transform(X), W, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_agents_keep_single_precision(X, convert, monkeypatch):
    from skppdnmf._fit import run as _run

    seen = []
    run = _run.run_local

    def spy(agents, *args, **kwargs):
        seen.extend(agents)
        return run(agents, *args, **kwargs)

    monkeypatch.setattr(_run, "run_local", spy)
    model().fit(convert(X.astype(np.float32)))
    assert len(seen) == 4
    for factors in (agent.factors for agent in seen):
        assert factors.X.dtype == np.float32
        assert sparse.issparse(factors.X) == (convert is sparse.csr_array)
        for array in factors.right:
            assert array.dtype == np.float32
