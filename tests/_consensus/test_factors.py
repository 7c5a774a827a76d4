import numpy as np
import pytest
from _helpers import drive, make_agents, random_start, split_parts
from scipy import sparse

from skppdnmf._consensus import factors as _factors

K, F = 3, 6


def plain_right(X, H, V, R, old_eta, eta):
    """Equations (12) to (14), as often as the agents go through them at most."""
    R = R * (old_eta / eta) if old_eta else R
    inverse = np.linalg.inv(H @ H.T + eta * np.eye(len(H)))
    for _ in range(_factors._RIGHT_MAX_ITER):
        W = np.maximum(V + R, 0)
        V = (X @ H.T + eta * (W - R)) @ inverse
        R = R - (W - V)
    return np.maximum(V + R, 0), V, R


def plain_nmf(X, H, n_iter, n_inner, mu=1.0, eta=1.0, scaling="data"):
    """Block coordinate descent by ADMM on all of X; the left factors on the way."""
    X = X.toarray() if sparse.issparse(X) else X
    U, P = H.copy(), np.zeros_like(H)
    V = R = np.zeros((len(X), len(H)))

    def scaled(penalty, gram):
        if scaling == "absolute":
            return penalty
        return penalty * _factors.UNIT_PENALTY * np.trace(gram) / len(gram)

    left, errors = [], []
    last_eta = scaled(eta, H @ H.T)
    W, V, R = plain_right(X, H, V, R, 0.0, last_eta)
    W_before, last_mu = W, None
    for n in range(n_iter):
        weight = 0.0
        if n >= 2:
            half_life = _factors._EXTRAPOLATION_HALF_LIFE
            weight = _factors._EXTRAPOLATION * half_life / (half_life + n)
        ahead = W + weight * (W - W_before)
        W_before = W
        new_mu = scaled(mu, ahead.T @ ahead)
        if last_mu:
            P = P * (last_mu / new_mu)
        last_mu = new_mu
        for _ in range(n_inner):
            H = np.maximum(U + P, 0)  # (8)
            system = ahead.T @ ahead + new_mu * np.eye(len(H))
            U = np.linalg.solve(system, ahead.T @ X + new_mu * (H - P))  # (9)
            P = P - (H - U)  # (10)
        H = np.maximum(U + P, 0)
        new_eta = scaled(eta, H @ H.T)
        W, V, R = plain_right(X, H, V, R, last_eta, new_eta)
        last_eta = new_eta
        left.append(H)
        errors.append(np.linalg.norm(X - W @ H) ** 2)
    return left, errors


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"mu": 0.4, "eta": 2.5, "max_admm_iter": 3},
        {"penalty_scaling": "absolute", "mu": 5.0, "eta": 3.0},
        {"max_admm_iter": 1},
    ],
)
def test_one_agent_is_plain_nmf(parameters, convert, monkeypatch):
    monkeypatch.setattr(_factors, "right_tolerance", lambda iteration: 0.0)
    X, start = split_parts([25], F)[0], random_start(K, F)
    X[X < 0.3] = 0
    settings = {"max_iter": 8, "max_admm_iter": 5, **parameters}
    agents = make_agents("path", [convert(X)], start, **settings)
    (reports,), sent = drive(agents)
    left, errors = plain_nmf(
        X,
        start,
        settings["max_iter"],
        settings["max_admm_iter"],
        settings.get("mu", 1.0),
        settings.get("eta", 1.0),
        settings.get("penalty_scaling", "data"),
    )
    assert sent == []
    assert [report.iteration for report in reports] == list(range(1, 9))
    for report, H, error in zip(reports, left, errors, strict=True):
        np.testing.assert_allclose(report.H, H, rtol=1e-8, atol=1e-10)
        assert report.squared_error == pytest.approx(error, rel=1e-8)
        assert report.n_exchanges == 0


@pytest.mark.parametrize("tol", [1e-6, 1e-9])
@pytest.mark.parametrize("seed", range(5))
def test_one_agent_reaches_a_stationary_point(seed, tol):
    X, start = split_parts([30], F, seed=seed)[0], random_start(K, F)
    agents = make_agents("path", [X], start, max_iter=600, max_admm_iter=10, tol=tol)
    (reports,), _ = drive(agents)
    assert reports[-1].stopped
    assert len(reports) < 600
    H, W = reports[-1].H, agents[0].factors.right.W
    for factor, gradient in (
        (H, W.T @ (W @ H - X)),
        (W, (W @ H - X) @ H.T),
    ):
        scale = np.abs(W.T @ X).max() if factor is H else np.abs(X @ H.T).max()
        assert (factor >= 0).all()
        assert gradient.min() > -1e-3 * scale
        assert np.abs(factor * gradient).max() < 1e-3 * scale * factor.max()


def test_right_factor_is_solved_ever_more_exactly():
    tolerances = [_factors.right_tolerance(iteration) for iteration in range(200)]
    assert tolerances == sorted(tolerances, reverse=True)
    assert tolerances[0] >= 10 * tolerances[-1]


def test_inexact_right_factors_cost_nothing_in_the_end(monkeypatch):
    parts, start = split_parts([12, 18, 5], F, seed=4), random_start(K, F)
    total = sum(np.sum(X**2) for X in parts)

    def final_errors():
        agents = make_agents("path", parts, start, max_iter=100, tol=0)
        reports, _ = drive(agents)
        return np.sqrt(sum(one[-1].squared_error for one in reports) / total)

    as_built = final_errors()
    monkeypatch.setattr(_factors, "right_tolerance", lambda iteration: 0.0)
    assert as_built == pytest.approx(final_errors(), rel=2e-3)
