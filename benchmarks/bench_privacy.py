"""What differential privacy costs, and what it leaves of a test of membership.

The data are scikit-learn's digits, shifted by up to a pixel and turned by up to 15
degrees at random, samples of unit norm, of ten agents; ten components, delta 1e-5. The
first table is the error over that of the best of several converged scikit-learn runs
on the pooled samples: median, and worst, over seeds, of which each draws a start and
noise anew. The second is a test of membership under the secure sum, with and without
epsilon, by an attacker that knows all parameters, the path and reference samples, but
none of the pool, and that colludes with as many as the noise allows for: of a candidate
it knows what it would add to the totals, and it weighs that by the covariance of what
other samples add and of the noise. It takes the last point of the path for all of it.

The third table is what else was weighed: other shares of the budget for W^T W, more or
less of it for later totals, other numbers of totals, and samples drawn for each total
in secret, with the noise that this allows for by the privacy loss distributions of
dp-accounting (skppdnmf[dp]; without it these lines are left out). The fourth is the
price of privacy_unit="agent", for images of 4 x 4 pixels and four components: what as
many samples are worth where all of an agent's are hidden together.

Run it from the project's root: ``python benchmarks/bench_privacy.py [--quick]``.
"""

import argparse
import copy
import math
import warnings

import numpy as np
from _reference import best_pooled_error
from scipy import ndimage
from scipy.stats import rankdata
from sklearn.datasets import load_digits

from skppdnmf import PrivateDistributedNMF, estimate_noise
from skppdnmf._nmf.nnls import solve_nnls
from skppdnmf._secure_sum.accountant import Guarantee, mu_of
from skppdnmf._secure_sum.noisy_path import NoisyPath
from skppdnmf._secure_sum.noisy_totals import Samples
from skppdnmf._secure_sum.settings import COUNT_SHARE, GRAM_SHARE, NoiseSettings
from skppdnmf.exceptions import ExcessiveNoiseError

DELTA = 1e-5
N_COMPONENTS, N_AGENTS = 10, 10


def digits(n, seed):
    """Digits, shifted and turned, of unit norm."""
    rng = np.random.RandomState(seed)
    images = load_digits().images
    X = np.empty((n, 64))
    for row, k in zip(X, rng.randint(0, len(images), n), strict=True):
        image = ndimage.rotate(images[k], rng.uniform(-15, 15), reshape=False, order=1)
        image = ndimage.shift(image, rng.uniform(-1, 1, 2), order=1)
        row[:] = np.maximum(image, 0.0).ravel()
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def private(epsilon, seed, **given):
    """Estimator with noise."""
    return PrivateDistributedNMF(
        N_COMPONENTS,
        protocol="secure-sum",
        partition=N_AGENTS,
        epsilon=epsilon,
        delta=DELTA,
        clip=1.0,
        random_state=seed,
        **given,
    )


def errors(sizes, epsilons, n_seeds):
    """Print the table of errors."""
    print("\nerror over that of pooled samples: median (worst), totals, expected")
    head = "".join(f"{f'epsilon {epsilon:g}':>28}" for epsilon in epsilons)
    print(f"{'samples':>8}{head}")
    for n in sizes:
        X = digits(n, 0)
        best = best_pooled_error(X, N_COMPONENTS)
        row = ""
        for epsilon in epsilons:
            ratios = []
            for seed in range(n_seeds):
                model = private(epsilon, seed).fit(X)
                ratios.append(-model.score(X) / best)
            expected = 1 + estimate_noise(model, n, 64).excess_error
            cell = f"{np.median(ratios):.3f} ({max(ratios):.3f})"
            row += f"{cell:>16}{model.n_iter_:>4}{expected:>8.3f}"
        print(f"{n:>8}{row}", flush=True)


def summands(H, X):
    """What each sample would add to the products and to the triangle."""
    samples = Samples.clipped(X, 1.0)
    W = samples.right_factors(H, np.zeros((len(H), len(X))))
    factor = np.minimum(1.0, 0.5 / np.maximum(np.linalg.norm(W, axis=0), 1e-12))
    return np.einsum("kn,nf->nkf", W * factor, X * factor[:, None]).reshape(len(X), -1)


def membership(n_pool, n_pools, epsilon, references):
    """Return the area under the curve of a test on the last total's products."""
    scores, members = [], []
    for seed in range(n_pools):
        X = digits(2 * n_pool, 100 + seed)
        pool, others = X[:n_pool], X[n_pool:]
        if epsilon is None:
            model = PrivateDistributedNMF(
                N_COMPONENTS,
                protocol="secure-sum",
                partition=N_AGENTS,
                max_iter=15,
                n_init=1,
                random_state=seed,
            ).fit(pool)
            noise = 0.0
            n_totals = 1
        else:
            model = private(epsilon, seed).fit(pool)
            told = model.privacy_
            honest = np.sqrt(told["n_honest"] / N_AGENTS)
            noise = honest * told["noise"]["products"]
            n_totals = model.n_iter_
        H = model.components_ / np.linalg.norm(model.components_, axis=1)[:, None]
        known = summands(H, references)
        total = summands(H, pool).sum(axis=0)
        # All totals together are as good as one with so much less noise.
        deviation = noise / np.sqrt(n_totals)
        rng = np.random.default_rng(seed)
        total += deviation * rng.standard_normal(total.shape)
        mean = known.mean(axis=0)
        covariance = n_pool * np.cov(known.T)
        covariance += (deviation**2 + 1e-6 * np.trace(covariance) / len(mean)) * np.eye(
            len(mean)
        )
        direction = np.linalg.solve(covariance, total - n_pool * mean)
        for candidates, is_member in ((pool[:200], 1), (others[:200], 0)):
            added = summands(H, candidates) - mean
            spread = np.einsum(
                "nd,nd->n", added, np.linalg.solve(covariance, added.T).T
            )
            scores += list(added @ direction - spread / 2)
            members += [is_member] * len(candidates)
    members = np.array(members, dtype=bool)
    ranks = rankdata(scores)
    n = members.sum()
    return (ranks[members].sum() - n * (n + 1) / 2) / (n * (~members).sum())


def memberships(pools, epsilons, n_pools):
    """Print the table of tests of membership."""
    references = digits(3000, 99)
    print("\narea under the curve of a test of membership (at most, by the guarantee)")
    names = ["none" if epsilon is None else f"{epsilon:g}" for epsilon in epsilons]
    print(f"{'pool':>8}" + "".join(f"{f'epsilon {name}':>20}" for name in names))
    for n_pool in pools:
        row = ""
        for epsilon in epsilons:
            most = 1.0
            if epsilon is not None:
                most = estimate_noise(private(epsilon, 0), n_pool, 64).membership_auc
            try:
                auc = membership(n_pool, n_pools, epsilon, references)
                cell = f"{auc:.3f} ({most:.3f})"
            except ExcessiveNoiseError:
                cell = f"refused ({most:.3f})"
            row += f"{cell:>20}"
        print(f"{n_pool:>8}{row}", flush=True)


def spent(X, epsilon, n_totals, seed, share=GRAM_SHARE, growth=0.0, rate=1.0, less=1):
    """Return the error of one process that takes the noise of all upon itself.

    Later totals get a share of the budget that grows with a power of their number; each
    takes a sample at a rate, with so much less noise.
    """
    settings = NoiseSettings(N_AGENTS, n_totals, epsilon, DELTA, 1.0, N_AGENTS // 3)
    rng = np.random.default_rng(seed)
    start = np.abs(rng.standard_normal((N_COMPONENTS, X.shape[1]))) ** 3
    path = NoisyPath(start, settings)
    count_share = COUNT_SHARE["sample"]
    path.numbers.guarantee = Guarantee.of(epsilon, DELTA, share, count_share)
    path.iteration, numbers = 0, path.numbers.of_length(n_totals)
    shares = np.arange(1, n_totals + 1) ** float(growth)
    shares *= n_totals / shares.sum()
    samples = Samples.clipped(X, 1.0)
    W = np.zeros((N_COMPONENTS, len(X)))
    rows, columns = np.triu_indices(N_COMPONENTS)
    for part in shares:
        one = copy.copy(numbers)
        for name in ("gram_scale", "off_diagonal_scale", "product_scale"):
            setattr(one, name, int(getattr(numbers, name) * less / math.sqrt(part)))
        path.numbers = one
        W = samples.right_factors(path.H, W / path.divisors[:, None])
        drawn = rng.random(len(X)) < rate
        some = Samples(np.ascontiguousarray(samples.data[:, drawn]))
        words = one.summand(*one.whole(some, W[:, drawn]))
        scale = np.full(len(words), float(one.product_scale))
        scale[: len(rows)] = np.where(
            rows == columns, one.gram_scale, one.off_diagonal_scale
        )
        noise = math.sqrt(N_AGENTS) * scale * rng.standard_normal(len(words))
        path = path.take((words + np.rint(noise).astype(np.int64)).view(np.uint64))
    return np.linalg.norm(X - solve_nnls(X, path.H) @ path.H) / np.linalg.norm(X)


def less_noise(rate, n_totals, epsilon):
    """Return how much less noise a rate allows for; None without dp-accounting."""
    try:
        import dp_accounting
        from dp_accounting.pld import PLDAccountant
    except ImportError:
        return None
    full = math.sqrt(n_totals) / mu_of(epsilon, DELTA)
    low, high = 0.5 * rate, min(1.0, 2.0 * rate + 0.5)
    for _ in range(12):
        middle = (low + high) / 2
        accountant = PLDAccountant(value_discretization_interval=1e-3)
        event = dp_accounting.GaussianDpEvent(middle * full)
        event = dp_accounting.PoissonSampledDpEvent(rate, event)
        accountant.compose(event, n_totals)
        if accountant.get_epsilon(DELTA) <= epsilon:
            high = middle
        else:
            low = middle
    return high


def weighed(sizes, n_seeds):
    """Print what other ways to spend the budget come to."""
    print("\nother ways to spend epsilon 3: error over that of pooled samples, median")
    for n, n_totals in sizes:
        X = digits(n, 0)
        best = best_pooled_error(X, N_COMPONENTS)

        def line(name, n=n, best=best, X=X, n_totals=n_totals, **given):
            given = {"n_totals": n_totals, **given}
            found = [spent(X, 3.0, seed=s, **given) / best for s in range(n_seeds)]
            print(f"{n:>8}  {name:44}{np.median(found):>8.3f}", flush=True)

        line(f"as it is, {n_totals} totals")
        for share in (0.06, 0.25):
            line(f"{share:.0%} for W^T W, not {GRAM_SHARE:.0%}", share=share)
        for growth in (-0.5, 0.5):
            line(f"shares of the totals like t ** {growth:g}", growth=growth)
        for other in (n_totals // 2, n_totals * 2):
            line(f"{other} totals", n_totals=other)
        for rate in (0.5, 0.2):
            less = less_noise(rate, n_totals, 3.0)
            if less is not None:
                name = f"{rate:.0%} drawn: noise over signal {less / rate:.2f} times"
                line(name, rate=rate, less=less)


def by_agent(numbers, epsilon, n_seeds):
    """Print the price of hiding agents."""
    print(
        f"\nprivacy_unit at epsilon {epsilon:g}, 40 samples for each agent: error over "
        "that of pooled samples, median"
    )
    print(f"{'agents':>8}{'samples':>9}{'sample':>12}{'agent':>12}{'expected':>10}")
    for n_agents in numbers:
        images = digits(40 * n_agents, 0).reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4))
        X = images.reshape(len(images), 16)
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        best = best_pooled_error(X, 4)
        cells = []
        for unit in ("sample", "agent"):
            found = []
            for seed in range(n_seeds):
                model = private(epsilon, seed, privacy_unit=unit)
                model.set_params(n_components=4, partition=n_agents, key_degree=8)
                try:
                    found.append(-model.fit(X).score(X) / best)
                except ExcessiveNoiseError:
                    break
            cells.append(f"{np.median(found):.3f}" if found else "refused")
        expected = 1 + estimate_noise(model, len(X), 16).excess_error
        print(
            f"{n_agents:>8}{len(X):>9}{cells[0]:>12}{cells[1]:>12}{expected:>10.3f}",
            flush=True,
        )


def main():
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="less of everything")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore")
    sizes = [2000] if quick else [2000, 5000, 16_000]
    errors(sizes, [8.0, 3.0, 1.0, 20.0], 2 if quick else 5)
    memberships([500] if quick else [500, 2000], [None, 3.0], 1 if quick else 3)
    weighed([(2000, 15)] if quick else [(2000, 15), (5000, 60)], 1 if quick else 5)
    by_agent([50] if quick else [50, 150], 8.0, 1 if quick else 2)


if __name__ == "__main__":
    main()
