"""What the totals tell of who is in the pool, and of single samples.

The data are scikit-learn's digits of 8 x 8 pixels, ten components. An honest but
curious agent with 20 samples attacks two others that hold the pool, half each, under
the secure sum unless the table says otherwise. It uses 20 of the 60 totals, knows how
many samples the others hold, and has reference samples of the same distribution that
are in no pool. Where there are not enough digits they are also shifted by one pixel,
up, down, left and right, which makes five of each.

AUC: the area under the ROC curve over up to 200 members and as many others; 0.5 is a
guess. Rates are true positives at 1 % false ones. Medians and ranges over seeds, and
the interval of 95 % (DeLong) of the first seed's AUC. From the components alone: by an
agent that knows nothing but the components and its own samples. Under the consensus the
attacker is everybody's neighbour, or, "path", the end of a path; it uses what the
answers add up to at the end of 20 iterations.

Run it from the project's root: ``python benchmarks/bench_membership.py [--quick]``; the
variable SKPPDNMF_QUICK=1 does what --quick does.
"""

import argparse
import os
import warnings

import numpy as np
from sklearn.datasets import load_digits

from skppdnmf import PrivateDistributedNMF
from skppdnmf.audit import (
    AttributeAttack,
    DropoutAttack,
    MembershipAttack,
    record,
)
from skppdnmf.exceptions import ExcessiveNoiseError

N_COMPONENTS, N_ITERATIONS, N_OWN = 10, 60, 20
MOST_JUDGED = 200
CLIP = 60.0  # norm of a sample; longer ones are shortened
VALUE = 8.0  # of the binary attribute; pixels go to 16


def digits(n_needed, rng):
    """Digits in random order; shifted ones where there are not enough."""
    images = load_digits().images
    shifts = [(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)]
    if n_needed <= len(images):
        shifts = shifts[:1]
    X = np.concatenate([np.roll(images, shift, axis=(1, 2)) for shift in shifts])
    X = np.unique(X.reshape(len(X), -1), axis=0)
    return X[rng.permutation(len(X))]


def dealt(n_pool, n_others, seed, attribute=False):
    """The attacker's samples, the pool, and others."""
    rng = np.random.default_rng(seed)
    X = digits(N_OWN + n_pool + n_others, rng)
    if attribute:  # a coin is tossed for each sample
        X = np.c_[X, VALUE * rng.integers(2, size=len(X))]
    return np.split(X[: N_OWN + n_pool + n_others], [N_OWN, N_OWN + n_pool])


def fit(own, pool, seed, dropouts=None, **parameters):
    """Record a fit of three agents, or more where the pool is a list."""
    given = {
        "protocol": "secure-sum",
        "adjacency": "complete",
        "encryption": "simulated",
        "max_iter": N_ITERATIONS,
        "tol": 0,
        **parameters,
    }
    parts = pool if isinstance(pool, list) else np.array_split(pool, 2)
    model = PrivateDistributedNMF(N_COMPONENTS, random_state=seed, **given)
    return record(model, [own, *parts], dropouts=dropouts)


def spread(values):
    """Median and range."""
    return f"{np.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def by_list(pools, seeds):
    """All candidates of a list that contains the members."""
    print("\nA list of candidates that contains the members: share decided rightly")
    print(f"{'pool':>6}{'list':>8}{'n_init=1':>12}{'components alone, AUC':>26}")
    for n_pool, n_list in pools:
        shares, areas = [], []
        for seed in seeds:
            own, pool, rest = dealt(n_pool, n_list - n_pool, seed)
            leakage = MembershipAttack().run(
                fit(own, pool, seed, n_init=1), 0, np.vstack([pool, rest])
            )
            shares.append(leakage.details["decided"])
            areas.append(leakage.details["components_auc"])
        share = 100 * np.median(shares)
        print(f"{n_pool:>6}{n_list:>8}{share:>10.1f} %{spread(areas):>26}", flush=True)


def judged(attack, transcript, pool, others):
    """Attack members and as many others."""
    n = min(len(pool), MOST_JUDGED, len(others))
    candidates = np.vstack([pool[:n], others[:n]])
    return attack.run(transcript, 0, candidates).details


def by_candidate(pools, n_references, seeds):
    """Single candidates, by n_init, sums, protocol and from the components alone."""
    noise = {"delta": 1e-5, "clip": CLIP}
    settings = {
        "n_init=1": ({"n_init": 1}, 20),
        "n_init=8": ({"n_init": 8}, 20),
        "one sum, n_init=1": ({"n_init": 1}, 1),
        "consensus": ({"protocol": "consensus"}, 20),
        "consensus, path": ({"protocol": "consensus", "adjacency": "path"}, 20),
        "epsilon=8": ({"epsilon": 8.0, **noise}, None),
        "epsilon=3": ({"epsilon": 3.0, **noise}, None),
    }
    print(f"\nA single candidate, {n_references} references")
    print(
        f"{'pool':>6}  {'':20}{'AUC':>22}{'interval':>16}{'rate':>7}"
        f"{'components alone: AUC':>28}{'rate':>7}"
    )
    for n_pool in pools:
        for name, (parameters, max_sums) in settings.items():
            found = []
            for seed in seeds if n_pool <= 500 else seeds[:1]:
                own, pool, rest = dealt(n_pool, MOST_JUDGED + n_references, seed)
                others, references = rest[:MOST_JUDGED], rest[MOST_JUDGED:]
                attack = MembershipAttack(references, max_sums)
                try:
                    transcript = fit(own, pool, seed, **parameters)
                except ExcessiveNoiseError:
                    break
                found.append(judged(attack, transcript, pool, others))
            if not found:
                print(f"{n_pool:>6}  {name:20}{'refused: too few samples':>38}")
                continue
            columns = {key: [one[key] for one in found] for key in found[0]}
            low, high = found[0]["auc_interval"]
            print(
                f"{n_pool:>6}  {name:20}{spread(columns['auc']):>22}"
                f"{f'{low:.2f} to {high:.2f}':>16}"
                f"{np.median(columns['true_positives']):>7.2f}"
                f"{spread(columns['components_auc']):>28}"
                f"{np.median(columns['components_true_positives']):>7.2f}",
                flush=True,
            )


def by_attribute(pools, n_references, seeds):
    """A coin that is tossed for each sample, as one more feature."""
    print("\nA binary attribute of a known sample, n_init=1: share in % read rightly")
    print(f"{'pool':>6}{'totals':>26}{'components alone':>26}")
    for n_pool in pools:
        found = []
        for seed in seeds:
            own, pool, references = dealt(n_pool, n_references, seed, attribute=True)
            without, with_it = pool.copy(), pool.copy()
            without[:, -1], with_it[:, -1] = 0.0, VALUE
            attack = AttributeAttack(references)
            transcript = fit(own, pool, seed, n_init=1)
            details = attack.run(transcript, 0, without, with_it).details
            found.append((details["right"], details["components_right"]))
        cells = [
            f"{100 * np.median(some):.0f} ({100 * min(some):.0f} to "
            f"{100 * max(some):.0f})"
            for some in np.transpose(found)
        ]
        print(f"{n_pool:>6}{cells[0]:>26}{cells[1]:>26}", flush=True)


def by_dropout(n_pool, n_references, seeds):
    """An agent that drops out, of one sample and of 60."""
    print(
        f'\nA dropout under on_dropout="continue", {n_pool} samples left: the lost\n'
        "agent's sample, recovered share in %; the summand of one of 60, error in %"
    )
    print(f"{'iteration':>10}{'sample':>26}{'summand':>26}")
    for at in (30, 40, 50):
        cells = []
        for n_lost in (1, 60):
            found = []
            for seed in seeds:
                own, pool, rest = dealt(n_pool, n_lost + n_references, seed)
                lost, references = np.split(rest, [n_lost])
                parts = [*np.array_split(pool, 2), lost]
                transcript = fit(
                    own, parts, seed, {3: at}, n_init=1, on_dropout="continue"
                )
                leakage = DropoutAttack(references).run(transcript, 0, 3)
                found.append(leakage.recovered if n_lost == 1 else leakage.error)
            found = 100 * np.array(found)
            cells.append(
                f"{np.median(found):.1f} ({min(found):.1f} to {max(found):.1f})"
            )
        print(f"{at:>10}{cells[0]:>26}{cells[1]:>26}", flush=True)


def main():
    """Run all tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="one seed, small pools")
    quick = parser.parse_args().quick or os.environ.get("SKPPDNMF_QUICK") == "1"
    warnings.simplefilter("ignore")
    seeds = range(1 if quick else 3)
    lists = [(20, 200), (100, 600), (500, 1600), (1200, 1600), (2000, 5000)]
    by_list(lists[:2] if quick else lists, seeds[:1])
    n_references = 300 if quick else 1000
    by_candidate([20, 100] if quick else [20, 100, 500, 2000], n_references, seeds)
    by_attribute([20] if quick else [20, 100, 500], n_references, seeds)
    by_dropout(100, n_references, seeds)


if __name__ == "__main__":
    main()
