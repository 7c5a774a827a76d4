"""How much of an agent's data its neighbour recovers, and what that depends on.

The data are scikit-learn's digits, averaged to 4 x 4 pixels. The victim is the last of
a path of agents that hold 30 samples each, unless the table says otherwise; medians,
and the range, over several victims. Recovered is 1 - error / error of guessing, within
0 and 100 %: of the sample itself where the victim holds one, and of the mean of x x^T
over its samples otherwise; more than eight samples are represented by eight, which say
nothing of each. Attackers are told the number of samples.

Under the secure sum an agent that holds 30 samples attacks all others, who hold few
unless the table says otherwise: one of them, the victim, by name, and all of them as a
set without names. Guessing is the mean of all samples but the victim's there; for the
set it is what comes closest of the attacker's mean and its own samples.

Writes a figure to the folder in the variable SKPPDNMF_OUTPUT, or to ``output``.

Run it from the project's root: ``python benchmarks/bench_leakage.py [--quick]``.
"""

import argparse
import itertools
import os
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.datasets import load_digits

from skppdnmf import PrivateDistributedNMF
from skppdnmf.audit import (
    EavesdropperAttack,
    Estimate,
    GcdAttack,
    JointMaskAttack,
    LeastSquaresAttack,
    PooledSimulationAttack,
    SimulationAttack,
    record,
)
from skppdnmf.audit._attacks.leakage import in_order_of, score
from skppdnmf.audit._attacks.pool import Pool
from skppdnmf.audit._attacks.pool_fit import PoolFit

N_OTHERS, N_OTHER_SAMPLES = 4, 30
N_COMPONENTS, N_ROUNDS = 4, 60
PROTECTIONS = {
    "scalar, no dither": ("scalar", False),
    "scalar": ("scalar", True),
    "entrywise": ("entrywise", True),
}


def pooled_digits():
    """Digits of 4 x 4 pixels."""
    images = load_digits().images
    return images.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16)


def graph(n_neighbours):
    """A ring of the others, and the victim beside the last of them.

    One neighbour means the end of a path.
    """
    n = N_OTHERS + 1
    adjacency = np.zeros((n, n))
    for k in range(N_OTHERS - 1):
        adjacency[k, k + 1] = 1
    if n_neighbours > 1:
        adjacency[0, N_OTHERS - 1] = 1
    for k in range(n_neighbours):
        adjacency[N_OTHERS - 1 - k, n - 1] = 1
    return np.maximum(adjacency, adjacency.T)


def transcript(
    seed,
    n_samples=1,
    n_neighbours=1,
    n_components=N_COMPONENTS,
    n_rounds=N_ROUNDS,
    masking="entrywise",
    dither=True,
    **parameters,
):
    """Record one fit; the victim is the last agent."""
    X = pooled_digits()
    n = N_OTHERS * N_OTHER_SAMPLES + n_samples
    rows = np.random.default_rng(seed).permutation(len(X))[:n]
    agents = np.minimum(np.arange(n) // N_OTHER_SAMPLES, N_OTHERS)
    model = PrivateDistributedNMF(
        n_components,
        adjacency=graph(n_neighbours),
        masking=masking,
        max_iter=n_rounds // 5,
        tol=0,
        random_state=seed,
        **{"encryption": "simulated", **parameters},
    )
    return record(model, X[rows], agents, dither=dither)


def run(attack, seed, **setting):
    """Recovered shares of one attack of the victim's neighbour.

    Of the target by default, and of the samples themselves.
    """
    fit = transcript(seed, **setting)
    leakage = attack.run(fit, N_OTHERS - 1, N_OTHERS)
    found = leakage.details.get("samples")
    if found is None:
        return leakage.recovered, 0.0
    view = fit.view(N_OTHERS - 1)
    each = score("", fit, view, N_OTHERS, Estimate(found), "samples")
    return leakage.recovered, each.recovered


def shares(calls, seeds):
    """Recovered shares: of the target and of samples, by calls, by seeds."""
    flat = Parallel(n_jobs=2)(
        delayed(run)(attack, seed, **setting)
        for attack, setting in calls
        for seed in seeds
    )
    return np.array(flat).reshape(len(calls), -1, 2).transpose(2, 0, 1)


def cell(values):
    """Median and range, in percent."""
    values = 100 * np.asarray(values)
    low, high = values.min(), values.max()
    return f"{np.median(values):.0f} ({low:.0f} to {high:.0f})"


def table(title, name, settings, columns):
    """Print one table."""
    print(f"\n{title}")
    print(f"{name:>24}" + "".join(f"{column:>26}" for column in columns))
    for k, setting in enumerate(settings):
        cells = "".join(f"{cell(values[k]):>26}" for values in columns.values())
        print(f"{setting:>24}{cells}")


def simulation(n_samples):
    """Make the attack, with bounds on what it may take."""
    return SimulationAttack(n_samples, max_fitted=8, n_starts=2, max_steps=15)


def by_protection(seeds):
    """Every attack under every protection, on a victim of one sample."""
    attacks = {
        "greatest common divisor": GcdAttack(),
        "least squares": LeastSquaresAttack(n_samples=1),
        "the same, masks known": LeastSquaresAttack("known", n_samples=1),
        "joint mask fit": JointMaskAttack(n_samples=1),
        "simulation": simulation(1),
    }
    columns = {}
    for name, (masking, dither) in PROTECTIONS.items():
        setting = {"masking": masking, "dither": dither}
        columns[name] = shares([(a, setting) for a in attacks.values()], seeds)[0]
    table(
        "Recovered share in %, one sample, one neighbour, by attack and protection\n"
        "(of the masks for the greatest common divisor)",
        "attack",
        list(attacks),
        columns,
    )


def by_setting(title, name, key, values, seeds, several=False):
    """Recovered shares as one setting changes; the numbers for the figure."""
    settings = [{key: value} for value in values]

    def n_samples(setting):
        return setting.get("n_samples", 1)

    simulated, each = shares([(simulation(n_samples(s)), s) for s in settings], seeds)
    joint, _ = shares(
        [
            (JointMaskAttack(n_samples=n_samples(s)), {**s, "masking": "scalar"})
            for s in settings
        ],
        seeds,
    )
    columns = {"simulation, entrywise": simulated, "joint fit, scalar": joint}
    if several:
        columns["the samples, entrywise"] = each
    table(title, name, values, columns)
    return values, columns


def summed(sizes, seed, n_components=N_COMPONENTS, n_sums=20, n_init=1):
    """Record one fit of the secure sum, agent k with ``sizes[k]`` samples."""
    X = pooled_digits()
    n = sum(sizes)
    rows = np.random.default_rng(seed).permutation(len(X))[:n]
    model = PrivateDistributedNMF(
        n_components,
        protocol="secure-sum",
        partition=list(sizes),
        n_init=n_init,
        max_iter=n_sums,
        tol=0,
        random_state=seed,
    )
    return record(model, X[rows])


def run_pooled(sizes, seed, **setting):
    """Recovered shares: the victim's samples, its moments, and the set."""
    fit = summed(sizes, seed, **setting)
    attack = PooledSimulationAttack(target="samples")
    named, everyone = attack.run_many(fit, 0, [1, None])
    moments = PooledSimulationAttack(target="moments").run(fit, 0, 1)
    return named.recovered, moments.recovered, everyone.recovered


def run_nearby(n_samples, seed, distance=0.1):
    """Share of an error that the fit mends if it is begun near the truth."""
    fit = summed((N_OTHER_SAMPLES, 1, n_samples - 1), seed, n_init="auto")
    truth = np.vstack([fit.view(agent).X for agent in (1, 2)])
    noise = np.random.default_rng(seed).normal(size=truth.shape)
    start = np.maximum(truth * (1 + distance * noise), 0)
    pool = Pool(fit.view(0), max_sums=20)
    found = in_order_of(PoolFit(pool, n_samples).run(start, max_steps=100).rows, truth)
    error = np.linalg.norm(found - truth) / np.linalg.norm(start - truth)
    return max(0.0, 1.0 - error)


def by_pool(title, name, values, settings, seeds, n_init=(1, "auto")):
    """Recovered shares under the secure sum as one setting changes."""
    calls = itertools.product(settings, n_init, seeds)
    flat = Parallel(n_jobs=2)(
        delayed(run_pooled)(seed=seed, n_init=n, **one) for one, n, seed in calls
    )
    shares = np.reshape(flat, (len(settings), len(n_init), len(seeds), 3))
    columns = {
        "the victim's samples": shares[:, 0, :, 0],
        "its second moments": shares[:, 0, :, 1],
    }
    for k, n in enumerate(n_init):
        columns[f"the set, n_init={n}"] = shares[:, k, :, 2]
    table(f"Secure sum: {title}", name, values, columns)


def secure_sum(seeds, few):
    """All tables of the secure sum."""
    own = N_OTHER_SAMPLES
    pools = [1, 2, 3, 4, 6, 8, 12, 40][few]
    by_pool(
        "recovered share in %, by the number of all others' samples,\n"
        "one of them the victim's and the rest a third agent's (1: two agents)",
        "samples",
        pools,
        [{"sizes": (own, 1, m - 1) if m > 1 else (own, 1)} for m in pools],
        seeds,
    )
    pools = [4, 8, 12, 20, 40][few]
    calls = [delayed(run_nearby)(m, seed) for m in pools for seed in seeds]
    table(
        "Secure sum: share in % of an error of 10 % in every value of all others'\n"
        "samples that the fit mends: what totals determine, not what is found from far",
        "samples",
        pools,
        {"mended, n_init=auto": np.reshape(Parallel(2)(calls), (len(pools), -1))},
    )
    agents = [2, 3, 5, 9, 14][few]
    by_pool(
        "recovered share in %, by the number of agents, three samples each\n"
        "but the attacker",
        "agents",
        agents,
        [{"sizes": (own, *[3] * (n - 1))} for n in agents],
        seeds,
    )
    by_pool(
        "recovered share in %, by the number of agents, 30 samples each",
        "agents",
        agents,
        [{"sizes": [own] * n} for n in agents],
        seeds,
        n_init=("auto",),
    )
    components, sums = [2, 3, 4, 6, 8][few], [1, 2, 5, 10, 20][few]
    by_pool(
        "recovered share in %, by the number of components, of six samples",
        "components",
        components,
        [{"sizes": (own, 1, 5), "n_components": K} for K in components],
        seeds,
    )
    by_pool(
        "recovered share in %, by the number of sums recorded, of four samples",
        "sums",
        sums,
        [{"sizes": (own, 1, 3), "n_sums": n} for n in sums],
        seeds,
    )
    leakage = EavesdropperAttack().run(summed((own, 1, 20, 9), 0, n_init="auto"))
    details = leakage.details
    sizes = max(map(len, details["sizes"].values()))
    print(
        f"\nLinks of a secure sum: {details['words']} masked words, "
        f"{details['repeated']} repeated, sizes for one layout: {sizes}, recovered "
        f"{100 * leakage.recovered:.0f} %; in clear: "
        f"{', '.join(details['in_clear']) or 'nothing'}"
    )


def eavesdropping(seed):
    """What the links tell."""
    leakage = EavesdropperAttack().run(
        transcript(seed, n_rounds=10, encryption="paillier", key_size=512)
    )
    details = leakage.details
    sizes = max(map(len, details["sizes"].values()))
    print(
        f"\nLinks (keys of 512 bits): {details['ciphertexts']} ciphertexts, "
        f"{details['repeated']} repeated, {100 * details['odd']:.1f} % odd, sizes for "
        f"one layout: {sizes}, recovered {100 * leakage.recovered:.0f} %"
    )


def draw(results):
    """Write the figure."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 4, figsize=(12, 3), sharey=True)
    for ax, (label, (values, columns)) in zip(panels, results.items(), strict=True):
        for marker, (name, data) in zip("os^", columns.items(), strict=False):
            data = 100 * data
            middle = np.median(data, axis=1)
            spread = np.abs(np.array([data.min(axis=1), data.max(axis=1)]) - middle)
            ax.errorbar(
                values, middle, spread, marker=marker, label=name, capsize=2, alpha=0.8
            )
        ax.set_xlabel(label)
        if max(values) > 8 * min(values):
            ax.set_xscale("log")
            ax.minorticks_off()
        ax.set_xticks(values, [str(value) for value in values])
    panels[0].set_ylabel("recovered, %")
    panels[0].legend(fontsize=7)
    figure.tight_layout()
    folder = Path(os.environ.get("SKPPDNMF_OUTPUT", "output"))
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "leakage.png"
    figure.savefig(file, dpi=120)
    print(f"\nwritten to {file}")


def main():
    """Run all tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="one victim, few settings")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore")
    seeds = range(1 if quick else 5)
    few = slice(None, None, 2) if quick else slice(None)
    by_protection(seeds)
    results = {
        "victim's samples": by_setting(
            "Recovered share in %, by the victim's number of samples",
            "samples",
            "n_samples",
            [1, 3] if quick else [1, 2, 3, 5, 8, 30],
            seeds,
            several=True,
        ),
        "victim's neighbours": by_setting(
            "Recovered share in %, by the victim's number of neighbours",
            "neighbours",
            "n_neighbours",
            [1, 2, 3, 4][few],
            seeds,
        ),
        "components": by_setting(
            "Recovered share in %, by the number of components",
            "components",
            "n_components",
            [2, 3, 4, 6, 8][few],
            seeds,
        ),
        "exchanges": by_setting(
            "Recovered share in %, by the number of exchanges recorded",
            "exchanges",
            "n_rounds",
            [5, 10, 20, 40, 60][few],
            seeds,
        ),
    }
    eavesdropping(0)
    secure_sum(seeds, few)
    draw(results)


if __name__ == "__main__":
    main()
