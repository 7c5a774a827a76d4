"""Error against exchanges, bytes and seconds: both protocols beside pooled NMF.

Run ``python benchmarks/bench_protocols.py [--quick]``. The table of digits and its
figure (protocols.png in SKPPDNMF_OUTPUT or ./output) take "simulated" fits for the
error of the encrypted consensus, and `estimate_cost` for its bytes and seconds under
2048-bit keys, as a whole encrypted fit takes many minutes.
"""

from __future__ import annotations

import os
import resource
import sys
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from _reference import CBCL, best_pooled_error
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF, MiniBatchNMF

from skppdnmf import (
    PrivateDistributedNMF,
    estimate_cost,
    load_cbcl,
    make_paper_synthetic,
)
from skppdnmf.exchange import SecureSum

QUICK = "--quick" in sys.argv
N_AGENTS = 10


def secure_sum(n_components: int, **parameters) -> PrivateDistributedNMF:
    """Make an estimator under the secure sum that runs all its iterations."""
    parameters = {"partition": N_AGENTS, "random_state": 0, "tol": 0, **parameters}
    return PrivateDistributedNMF(n_components, protocol="secure-sum", **parameters)


def relative_error(model, X) -> float:
    """Return ``||X - W H|| / ||X||``."""
    norm = sparse.linalg.norm(X) if sparse.issparse(X) else np.linalg.norm(X)
    return float(model.reconstruction_err_ / norm)


def timed(call):
    """Return a call's result and its seconds."""
    started = time.perf_counter()
    result = call()
    return result, time.perf_counter() - started


def print_quality() -> None:
    """Print errors over the best of three converged pooled runs."""
    print("\n## Secure sum: error over the best of three converged NMF runs, 10 seeds")
    digits = load_digits().data
    seeds = range(3 if QUICK else 10)
    data = {
        "digits, K=10": (10, lambda seed: digits),
        "synthetic, K=5": (5, lambda seed: make_paper_synthetic(random_state=seed)[0]),
    }
    for name, (n_components, draw) in data.items():
        best = {}
        for exchanges in (60, 100):
            ratios = []
            for seed in seeds:
                X = draw(seed)
                key = 0 if name.startswith("digits") else seed
                if key not in best:
                    best[key] = best_pooled_error(X, n_components)
                model = secure_sum(
                    n_components, max_iter=exchanges, random_state=seed
                ).fit(X)
                ratios.append(relative_error(model, X) / best[key])
            print(
                f"{name:16} {exchanges:4} exchanges: median {np.median(ratios):.5f}, "
                f"worst {max(ratios):.5f}"
            )


def print_protocols(output: Path) -> None:
    """Print and draw the table of digits."""
    X = load_digits().data
    print("\n## Digits, K=10, 10 agents: error, exchanges, bytes, seconds")
    print(f"{'':38}{'error':>8}{'exchanges':>11}{'MB':>10}{'seconds':>10}")
    curves = {}
    for masking in ("entrywise", "scalar"):
        model = PrivateDistributedNMF(
            10,
            partition=N_AGENTS,
            masking=masking,
            encryption="simulated",
            tol=0,
            random_state=0,
        ).fit(X)
        cost = estimate_cost(model.set_params(encryption="paillier"), X.shape[1])
        name = f"consensus, Paillier, {masking} (estimated)"
        share = model.history_["exchanges"] / model.n_exchanges_
        curves[name] = (
            model.history_["exchanges"],
            share * cost.bytes,
            share * cost.seconds,
            model.history_["shared_error"],
        )
        _row(name, relative_error(model, X), cost.exchanges, cost.bytes, cost.seconds)
    for exchanges in (60, 100):
        model, seconds = timed(lambda n=exchanges: secure_sum(10, max_iter=n).fit(X))
        _row(
            f"secure sum, {exchanges} exchanges",
            relative_error(model, X),
            model.n_exchanges_,
            model.traffic_["bytes"],
            seconds,
        )
    history = model.history_
    curves["secure sum"] = (
        history["exchanges"],
        history["bytes"],
        history["seconds"],
        history["shared_error"],
    )
    for estimator in (
        NMF(10, init="random", max_iter=200, random_state=0),
        NMF(10, init="nndsvda", max_iter=200, random_state=0),
        MiniBatchNMF(10, random_state=0),
    ):
        model, seconds = timed(lambda e=estimator: e.fit(X))
        name = type(estimator).__name__
        init = f", init={estimator.init}" if estimator.init else ""
        _row(f"pooled {name}{init}", relative_error(model, X), 0, 0, seconds)
        curves.setdefault("pooled NMF", relative_error(model, X))
    _draw(curves, output)


def _row(name: str, error: float, exchanges: int, n_bytes: int, seconds: float) -> None:
    """Print a row of the table."""
    print(f"{name:38}{error:8.4f}{exchanges:11d}{n_bytes / 1e6:10.2f}{seconds:10.2f}")


def _draw(curves: dict, output: Path) -> None:
    """Draw error against exchanges, bytes and seconds."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        print("no figure: matplotlib is not installed")
        return
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), sharey=True)
    pooled = curves.pop("pooled NMF")
    for place, (ax, label) in enumerate(
        zip(axes, ("exchanges", "bytes", "seconds"), strict=True)
    ):
        for name, curve in curves.items():
            ax.plot(curve[place], curve[3], label=name)
        ax.axhline(pooled, color="0.4", linestyle=":", label="pooled NMF")
        ax.set(xscale="log", xlabel=label)
    axes[0].set(ylabel="relative error", ylim=(0.31, 0.5))
    axes[-1].legend(fontsize=8)
    figure.tight_layout()
    output.mkdir(parents=True, exist_ok=True)
    figure.savefig(output / "protocols.png", dpi=150)
    print(f"figure: {(output / 'protocols.png').name}")


def print_cbcl() -> None:
    """Print the wall time on CBCL beside NMF's, and the share of masks and sums."""
    print("\n## CBCL, K=49, 10 agents, beside NMF(49, init='random', max_iter=200)")
    if not CBCL.exists():
        print(f"left out: {CBCL.name} is not there")
        return
    X = load_cbcl(CBCL)
    for repeat in range(1 if QUICK else 3):
        pooled = NMF(49, init="random", max_iter=200, random_state=0)
        _, pooled_seconds = timed(lambda p=pooled: p.fit(X))
        for exchanges in (50, 100):
            model, seconds = timed(
                lambda n=exchanges: secure_sum(49, max_iter=n).fit(X)
            )
            with MaskClock() as clock:
                secure_sum(49, max_iter=exchanges).fit(X)
            print(
                f"run {repeat}: {exchanges} exchanges, error "
                f"{relative_error(model, X):.5f} (NMF "
                f"{relative_error(pooled, X):.5f}), {seconds:.2f} s, "
                f"{seconds / pooled_seconds:.2f} times NMF's {pooled_seconds:.2f} s; "
                f"masks and sums {clock.seconds / seconds:.1%} of the fit"
            )


class MaskClock:
    """Measures the time that the sums take: keys, masks, additions and messages."""

    def __enter__(self):
        self.seconds = 0.0
        self._kept = {
            name: getattr(SecureSum, name) for name in ("start", "begin", "advance")
        }
        for name, method in self._kept.items():
            setattr(SecureSum, name, self._timed(method))
        return self

    def _timed(self, method):
        def call(*arguments):
            started = time.perf_counter()
            try:
                return method(*arguments)
            finally:
                self.seconds += time.perf_counter() - started

        return call

    def __exit__(self, *_):
        for name, method in self._kept.items():
            setattr(SecureSum, name, method)


def print_large() -> None:
    """Print time and memory on large sparse data and with many agents."""
    rng = np.random.default_rng(0)
    n = 200_000
    X = sparse.csr_matrix(
        (rng.random(n), (rng.integers(20_000, size=n), rng.integers(10_000, size=n))),
        shape=(20_000, 10_000),
    )
    print("\n## Sparse 20,000 x 10,000, 0.1 % nonzeros, K=20, 50 agents, 30 exchanges")
    model, seconds = timed(lambda: secure_sum(20, partition=50, max_iter=30).fit(X))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{seconds:.1f} s, error {relative_error(model, X):.4f}; peak memory of this "
        f"process so far {peak:.0f} MB"
    )
    print("\n## 1,000 agents of 10 samples, 64 features, K=10")
    model = secure_sum(10, partition=1000, max_iter=6).fit(rng.random((10_000, 64)))
    seconds = np.diff(model.history_["seconds"])
    print(
        f"{np.median(seconds):.2f} s an exchange, {model.history_['seconds'][0]:.1f} s "
        "until the first total of an iteration (keys, setup, first right factor)"
    )


def noisy_low_rank(n_samples: int, n_features: int, rank: int) -> np.ndarray:
    """Return samples of parts of which half the features have none, and noise."""
    rng = np.random.default_rng(0)
    H = rng.exponential(size=(rank, n_features))
    H *= rng.random(H.shape) < 0.5
    X = rng.exponential(size=(n_samples, rank)) @ H
    X += 0.1 * rng.exponential(size=X.shape)
    return X


def print_speed() -> None:
    """Print seconds beside those of NMF, by turns, all at their defaults."""
    K, F = 20, 200
    print(f"\n## Secure sum beside NMF(init='random'): {F} features, K={K}, defaults")
    print("means of turns; NMF uses every core")
    sizes = {2_000: (20,), 20_000: (20,), 200_000: (20, 3)}
    for n_samples, agents in list(sizes.items())[: 2 if QUICK else 3]:
        X = noisy_low_rank(n_samples, F, K)

        def distributed(seed: int, n_agents: int, n_jobs: int, X=X):
            return PrivateDistributedNMF(
                K,
                protocol="secure-sum",
                partition=n_agents,
                random_state=seed,
                n_jobs=n_jobs,
            ).fit(X)

        makers = {
            "NMF": lambda seed, X=X: NMF(K, init="random", random_state=seed).fit(X)
        }
        for n_agents in agents:
            for n_jobs in (1, 2):
                makers[f"{n_agents} agents, n_jobs={n_jobs}"] = partial(
                    distributed, n_agents=n_agents, n_jobs=n_jobs
                )
        runs: dict[str, list] = {name: [] for name in makers}
        for turn in range(1 if QUICK else 2):
            for name, make in makers.items():
                model, seconds = timed(lambda make=make, turn=turn: make(turn))
                runs[name].append(
                    (seconds, relative_error(model, X), float(model.n_iter_))
                )
                del model
        means = {name: np.mean(each, axis=0) for name, each in runs.items()}
        print(f"{n_samples} samples")
        for name, (seconds, error, n_iter) in means.items():
            print(
                f"    {name:20} error {error:.5f} {n_iter:4.0f} iterations "
                f"{seconds:7.2f} s, {seconds / means['NMF'][0]:.2f} of NMF's"
            )
        for n_agents in agents:
            one, two = (means[f"{n_agents} agents, n_jobs={k}"][0] for k in (1, 2))
            print(f"    {n_agents} agents: two jobs {one / two:.2f} times as fast")


def print_transform() -> None:
    """Print seconds of `transform` beside NMF's, by turns."""
    X = load_digits().data
    print("\n## transform of the digits beside NMF's: milliseconds, least of 20 turns")
    for K in (10, 20, 30):
        models = (
            secure_sum(K).fit(X),
            NMF(K, init="random", random_state=0).fit(X),
        )
        times = [
            [timed(lambda model=model: model.transform(X))[1] for model in models]
            for _ in range(20)
        ]
        exact, nmf = 1e3 * np.min(times, axis=0)
        print(f"K={K}: exact {exact:.2f}, NMF {nmf:.2f}, ratio {exact / nmf:.2f}")


def main() -> None:
    """Print everything."""
    warnings.simplefilter("ignore")
    output = Path(os.environ.get("SKPPDNMF_OUTPUT", "output"))
    print_speed()
    print_transform()
    print_large()
    print_quality()
    print_protocols(output)
    print_cbcl()


if __name__ == "__main__":
    main()
