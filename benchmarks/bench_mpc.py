"""What the factorisation on secret shares costs, and which solver it should have.

Three parties in one process, ABY3 over whole numbers of 128 bits, the data
scikit-learn's digits. Rounds, messages one after the other, and megabytes, by all
three parties, are SPU's own counts for one iteration, times the iterations. Seconds
are those of the processor, all threads together, and, in fits, by the clock, on a
machine that may have had other work. What links of 1, 20 and 100 ms would add is the
delay times the rounds.

Error: of the components, over that of ``NMF(init="random", max_iter=200)`` from as many
starts; medians over seeds. Each solver gets the fewest iterations of the list after
which the median is within 1 % of NMF, or the most.

Run it from the project's root, where the extra ``mpc`` is installed:
``python benchmarks/bench_mpc.py [--quick]``; SKPPDNMF_QUICK=1 does what --quick does.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF

from skppdnmf import PrivateDistributedNMF
from skppdnmf._mpc import engine, solver
from skppdnmf._mpc.plain import PlainRun
from skppdnmf._mpc.settings import MpcSettings
from skppdnmf._mpc.solver import Penalties, State
from skppdnmf._nmf.nnls import solve_nnls
from skppdnmf._secure_sum.accountant import mu_of

DELAYS = (0.001, 0.020, 0.100)
COUNTS = re.compile(
    r"send bytes (\d+), recv bytes \d+, send actions (\d+), recv actions (\d+)"
)
RIDGE = 2.0**-20  # of the other solvers' divisors


def gradient(xp, X, state, weight):
    """Projected gradient with momentum, as it is built in."""
    return solver.iterated(xp, X, state, weight)


def multiplicative(xp, X, state, weight):
    """Multiplicative updates: a quotient for every entry of a factor."""
    left, right = state.left[0], state.right[0]
    right = right * (X @ left) / (right @ (left.T @ left) + RIDGE)
    left = left * (X.T @ right) / (left @ (right.T @ right) + RIDGE)
    return State(left[None], left[None], right[None], right[None])


def coordinates(xp, X, state, weight):
    """HALS with extrapolation: each column of a factor in turn."""

    def solved(data, other, factor):
        gram, products = other.T @ other, data @ other
        diagonal = xp.sum(gram * np.eye(gram.shape[0], dtype=np.float32), axis=0)
        step = 1.0 / (diagonal + RIDGE)
        columns = [factor[:, k] for k in range(gram.shape[0])]
        for k in range(gram.shape[0]):
            rest = products[:, k] - xp.stack(columns, axis=1) @ gram[:, k]
            columns[k] = xp.maximum(columns[k] + rest * step[k], 0.0)
        return xp.stack(columns, axis=1)

    def ahead(new, old):
        return xp.maximum(new + (new - old) * weight, 0.0)

    right = solved(X, state.left_ahead[0], state.right_ahead[0])
    right_ahead = ahead(right, state.right[0])
    left = solved(X.T, right_ahead, state.left_ahead[0])
    left_ahead = ahead(left, state.left[0])
    return State(left[None], left_ahead[None], right[None], right_ahead[None])


SOLVERS = {
    "multiplicative updates": (multiplicative, (100, 200, 400, 800)),
    "HALS, extrapolated": (coordinates, (20, 30, 40, 60, 100)),
    "gradient, accelerated": (gradient, (20, 30, 40, 60, 100)),
}


def begin(X, K, seed):
    """Scaled samples and the first state."""
    scaled, exponent = solver.normalised(X)
    data, _ = solver.scaled(np, [scaled], np.array([exponent]), Penalties())
    start = np.abs(np.random.RandomState(seed).standard_normal((1, K, X.shape[1])))
    state = solver.begun(np, len(X), start)
    # Multiplicative updates do not leave zero.
    right = np.full_like(state.right, np.sqrt(1.0 / state.right.size))
    return data, state._replace(right=right, right_ahead=right)


def error_of(X, H):
    """Of components, with the best right factor."""
    return np.linalg.norm(X - solve_nnls(X, np.asarray(H, dtype=float)) @ H)


def reached(name, X, K, n_iterations, seeds):
    """Errors of a solver after so many iterations, in floating point."""
    step, _ = SOLVERS[name]
    found = []
    for seed in seeds:
        data, state = begin(X, K, seed)
        for k in range(n_iterations):
            weight = np.float32(solver.weight_of(k, n_iterations))
            state = step(np, data, state, weight)
        found.append(error_of(X, state.left[0].T))
    return found


def on_shares(name, X, K, n_iterations, configure=None):
    """Seconds of the processor for an iteration on shares."""
    import jax.numpy as jnp

    step, _ = SOLVERS[name]
    data, state = begin(X, K, 0)
    names = ["X", *State._fields, "weight"]
    program = engine._compiled(
        lambda X, *given: tuple(step(jnp, X, State(*given[:4]), given[4])),
        [data, *state, np.zeros((), np.float32)],
        names,
        State._fields,
    )
    with engine.Simulator(configure) as simulator:
        for one, value in zip(names, [data, *state], strict=False):
            simulator.share(one, value)
        simulator.give("weight", np.array(0.2, dtype=np.float32))
        simulator.run(program)
        started = time.process_time()
        for _ in range(n_iterations):
            simulator.run(program)
        return (time.process_time() - started) / n_iterations


def count(name, n_samples):
    """Run one iteration with SPU's counters on: what a child process does."""
    spu = engine.require_spu()
    options = spu.libspu.logging.LogOptions()
    options.system_log_path = os.path.join(tempfile.mkdtemp(), "log")
    spu.libspu.logging.setup_logging(options)

    def counters(rank, config):
        config.enable_pphlo_profile = True

    on_shares(name, load_digits().data[:n_samples], 10, 1, counters)


def counted(name, n_samples):
    """Rounds and bytes of an iteration, of three parties."""
    done = subprocess.run(
        [sys.executable, __file__, "--count", name, "--samples", str(n_samples)],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line for line in done.stdout.splitlines() if "Link details" in line]
    found = np.array([[int(n) for n in COUNTS.search(line).groups()] for line in lines])
    n_runs = len(found) // engine.N_PARTIES
    n_bytes, _, received = found.sum(axis=0) / n_runs
    return received / engine.N_PARTIES, n_bytes


def by_solver(n_samples, seeds):
    """All solvers on the same data."""
    X = load_digits().data[:n_samples]
    pooled = [
        NMF(10, init="random", max_iter=200, random_state=seed)
        .fit(X)
        .reconstruction_err_
        for seed in seeds
    ]
    print(f"\nSolvers: digits, {n_samples} samples, K=10, one start")
    added = "".join(f"{f'+{1000 * delay:g} ms':>9}" for delay in DELAYS)
    print(
        f"{'':24}{'iterations':>11}{'error':>8}{'rounds':>9}{'MB':>8}{'CPU s':>7}"
        f"{added}"
    )
    for name, (_, lengths) in SOLVERS.items():
        for n_iterations in lengths:
            found = reached(name, X, 10, n_iterations, seeds)
            ratio = np.median(found) / np.median(pooled)
            if ratio < 1.01:
                break
        rounds, n_bytes = counted(name, n_samples)
        seconds = on_shares(name, X, 10, 3)
        later = "".join(f"{n_iterations * rounds * d:>9.0f}" for d in DELAYS)
        print(
            f"{name:24}{n_iterations:>11}{ratio:>8.3f}{n_iterations * rounds:>9.0f}"
            f"{n_iterations * n_bytes / 1e6:>8.0f}{n_iterations * seconds:>7.0f}"
            f"{later}",
            flush=True,
        )


def pools(quick):
    """What fits of small pools take and reach."""
    rng = np.random.default_rng(0)
    factors = rng.exponential(size=(200, 4)) @ rng.exponential(size=(4, 30))
    noisy = np.maximum(factors + 0.1 * rng.standard_normal(factors.shape), 0)
    digits = load_digits().data[:500]
    cases = [("200 x 30", noisy, 4, 1)]
    if not quick:
        cases += [("digits, 500", digits, 10, 1), ("digits, 500", digits, 10, 4)]
    print("\nFits by the estimator, max_iter=60: error over NMF's, best of as many")
    print(f"{'':14}{'K':>4}{'starts':>8}{'error':>8}{'CPU s':>7}{'s':>7}{'opened':>8}")
    for name, X, K, n_init in cases:
        pooled = min(
            NMF(K, init="random", max_iter=200, random_state=seed)
            .fit(X)
            .reconstruction_err_
            for seed in range(n_init)
        )
        model = PrivateDistributedNMF(
            K, protocol="mpc", partition=3, n_init=n_init, random_state=0
        )
        started = time.perf_counter(), time.process_time()
        model.fit(X)
        seconds = time.perf_counter() - started[0]
        processor = time.process_time() - started[1]
        n_opened = sum(model.privacy_["opened"].values())
        print(
            f"{name:14}{K:>4}{n_init:>8}{model.reconstruction_err_ / pooled:>8.3f}"
            f"{processor:>7.0f}{seconds:>7.0f}{n_opened:>8}",
            flush=True,
        )


def exactness(n_seeds):
    """How far the shares' components are from those of floating point."""
    rng = np.random.default_rng(1)
    X = rng.exponential(size=(60, 4)) @ rng.exponential(size=(4, 20))
    settings = MpcSettings((20, 20, 20), 60, 15, Penalties())
    worst = 0.0
    for seed in range(n_seeds):
        start = np.random.RandomState(seed).standard_normal((1, 4, 20))
        parts, starts = np.split(X, 3), np.abs(start)
        run = PlainRun(parts, starts, settings)
        for _ in range(settings.n_iterations):
            run.advance()
        programs = engine.make_programs(settings, starts)
        with engine.Simulator() as simulator:
            for i, part in enumerate(parts):
                samples, exponent = engine.inputs_of(part)
                simulator.share(f"samples {i}", samples)
                simulator.share(f"exponent {i}", exponent)
            left = engine.factorised(simulator, programs, settings)["left"][0]
        expected = run.components
        distance = np.linalg.norm(left.T - expected) / np.linalg.norm(expected)
        worst = max(worst, distance)
    print(
        f"\nComponents on shares and in floating point, 60 iterations, {n_seeds} seeds:"
    )
    print(f"largest relative distance {worst:.1e}", flush=True)


def noise_on_components(n_samples, epsilon=3.0, delta=1e-5):
    """What noise on the components would be, if it were added once."""
    X, K = load_digits().data[:n_samples], 10
    settings = MpcSettings((n_samples,), 60, 15, Penalties())
    start = np.abs(np.random.RandomState(0).standard_normal((1, K, 64)))

    def unit_rows(samples):
        given = MpcSettings((len(samples),), *list(vars(settings).values())[1:])
        run = PlainRun([samples], start, given)
        for _ in range(60):
            run.advance()
        H = run.components
        return H / np.linalg.norm(H, axis=1, keepdims=True)

    whole = unit_rows(X)
    moved = [
        np.linalg.norm(unit_rows(np.delete(X, one, axis=0)) - whole)
        for one in range(0, n_samples, max(1, n_samples // 20))
    ]
    bound, mu = np.sqrt(2.0 * K), mu_of(epsilon, delta)
    rng = np.random.default_rng(0)
    print(
        f"\nNoise on the components, once: {n_samples} digits, K={K}, rows of norm one"
    )
    print(f"epsilon={epsilon:g}, delta={delta:g}; mu={mu:.2f}")
    print(f"one of 20 samples left out moves them by {np.median(moved):.3f} (median),")
    print(f"{max(moved):.3f} (most); the only bound is {bound:.2f}")
    print("error over that without noise:")
    print(f"{'noise for a movement of':>26}{'error':>8}")
    base = error_of(X, whole)
    for name, movement in (("the bound", bound), ("the most of these", max(moved))):
        noisy = whole + movement / mu * rng.standard_normal(whole.shape)
        ratio = error_of(X, np.maximum(noisy, 0)) / base
        print(f"{name:>26}{ratio:>8.2f}", flush=True)


def main():
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="few samples, one seed")
    parser.add_argument("--count", help=argparse.SUPPRESS)
    parser.add_argument("--samples", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.count:
        count(options.count, options.samples)
        return
    quick = options.quick or os.environ.get("SKPPDNMF_QUICK") == "1"
    by_solver(100 if quick else 500, range(1 if quick else 5))
    pools(quick)
    exactness(1 if quick else 10)
    noise_on_components(100 if quick else 500)


if __name__ == "__main__":
    main()
