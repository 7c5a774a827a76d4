"""Whole encrypted fits: exchanges per second, bytes, and the ratio to plain phe.

Fits digits (K=10, five agents) and the paper's synthetic data (K=5, ten agents)
under real keys, with both maskings, and compares each with the same fit on phe,
number by number, extrapolated from a few values of one edge of this very run (a
whole fit on phe would take hours). Also the cost estimate beside the measured time,
and two jobs beside one. Then the lattice cipher: whole fits of ten agents, 300
exchanges with entrywise masks in two processes, beside Paillier, of which a few
exchanges are timed in the same run. The faces are CBCL's, if ``--faces PATH`` has them.

Run it from the project's root: ``python benchmarks/bench_fit.py [--quick]``.
"""

import argparse
import time
import warnings

import joblib
import numpy as np
import phe
from sklearn.datasets import load_digits

from skppdnmf import (
    PrivateDistributedNMF,
    estimate_cost,
    load_cbcl,
    make_paper_synthetic,
)
from skppdnmf._paillier.phe_reference import PheCipher
from skppdnmf.exchange import MASK_BITS, MaskStream, SlotLayout, integer_secrets

N_PHE_VALUES = 12


def phe_seconds_per_value(key_size):
    """Seconds of one value over one directed edge, number by number."""
    side = PheCipher(phe.generate_paillier_keypair(n_length=key_size)[1])
    layout = SlotLayout(N_PHE_VALUES, 24, MASK_BITS, "entrywise", key_size)
    rng = np.random.default_rng(0)
    values = rng.integers(-(2**20), 2**20, size=N_PHE_VALUES)
    masks, dither = integer_secrets(MaskStream(), layout)
    started = time.perf_counter()
    request = side.request(values, layout)
    reply = side.reply(side.public, request, values, masks, dither, layout)
    side.open(reply, layout)
    return (time.perf_counter() - started) / N_PHE_VALUES


def measure(name, estimator, X, agents, phe_value):
    """Fit once and print a row."""
    n_features = X.shape[1]
    if agents is not None:
        estimator.set_params(partition=len(np.unique(agents)))
    expected = estimate_cost(estimator, n_features)
    started = time.perf_counter()
    estimator.fit(X, agents=agents)
    seconds = time.perf_counter() - started
    n_edges = int(estimator.adjacency_.sum())
    values = estimator.components_.size * n_edges * estimator.n_exchanges_
    plain = values * phe_value
    jobs = estimator.n_jobs or 1
    print(
        f"{name:10} {estimator.encryption:8} {estimator.masking:10} {jobs:4} "
        f"{estimator.n_exchanges_:9} {seconds:9.1f} {expected.seconds:9.1f} "
        f"{estimator.n_exchanges_ / seconds:8.2f} "
        f"{estimator.traffic_['bytes'] / 1e6:9.1f} {plain / seconds / jobs:9.0f}",
        flush=True,
    )
    return seconds


def ten_agents(n_components, encryption, **parameters):
    """Estimator of the comparison; two jobs, in processes."""
    return PrivateDistributedNMF(
        n_components,
        partition=10,
        encryption=encryption,
        tol=0,
        random_state=0,
        n_jobs=2,
        **parameters,
    )


def paillier_seconds(X, n_components, timed_components, n_exchanges):
    """Seconds of a fit under Paillier: its beginning, and exchanges in proportion.

    Three exchanges are timed after the first, which builds the tables, of
    `timed_components` components: the time is proportional to their number.
    """
    estimator = ten_agents(timed_components, "paillier", max_iter=4, max_admm_iter=1)
    with joblib.parallel_config("loky", n_jobs=2):
        estimator.fit(X)
    begun, *_, ended = estimator.history_["seconds"]
    share = n_components / timed_components
    return begun + n_exchanges * share * (ended - begun) / 3


def compare_ciphers(name, X, n_components, timed_components, target, n_exchanges):
    """Fit under the lattice cipher, and print what Paillier would take."""
    paillier = paillier_seconds(X, n_components, timed_components, n_exchanges)
    estimator = ten_agents(n_components, "bfv", max_iter=n_exchanges // 5)
    expected = estimate_cost(estimator, X.shape[1]).seconds
    started = time.perf_counter()
    with joblib.parallel_config("loky", n_jobs=2):
        estimator.fit(X)
    seconds = time.perf_counter() - started
    ratio = paillier / seconds
    met = "met" if ratio >= target else "MISSED"
    print(
        f"{name:10} {n_components:4} {estimator.n_exchanges_:9} {seconds:9.1f} "
        f"{expected:9.1f} {estimator.traffic_['bytes'] / 1e9:9.1f} {paillier:9.0f} "
        f"{ratio:8.1f} (target {target}: {met}); {timed_components} components timed "
        "under Paillier",
        flush=True,
    )


def main():
    """Run all fits."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="one iteration a fit")
    parser.add_argument("--key-size", type=int, default=2048)
    parser.add_argument("--faces", help="where the CBCL faces are, for load_cbcl")
    parser.add_argument("--only-lattice", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if not arguments.only_lattice:
        compare_with_phe(arguments)
    print(
        f"\nBFV, two processes\n{'data':10} {'K':>4} {'exchanges':>9} "
        f"{'seconds':>9} {'estimate':>9} {'gigabytes':>9} {'Paillier':>9} {'ratio':>8}"
    )
    n_exchanges = 10 if arguments.quick else 300
    compare_ciphers("digits", load_digits().data, 10, 10, 8, n_exchanges)
    if arguments.faces:
        faces = load_cbcl(arguments.faces)
        compare_ciphers("CBCL", faces, 49, 4, 100, n_exchanges)
    print("'Paillier' is extrapolated from three exchanges with entrywise masks")


def compare_with_phe(arguments):
    """Fits under Paillier beside phe, one job and two."""
    phe_value = phe_seconds_per_value(arguments.key_size)
    print(
        f"phe, number by number: {1e3 * phe_value:.1f} ms per value and directed edge "
        f"({N_PHE_VALUES} values of one edge; its fits are extrapolated from that)"
    )
    print(
        f"{'data':10} {'cipher':8} {'masking':10} {'jobs':>4} {'exchanges':>9} "
        f"{'seconds':>9} {'estimate':>9} {'exch./s':>8} {'megabytes':>9} "
        f"{'phe ratio':>9}"
    )
    X, agents, *_ = make_paper_synthetic(random_state=0)
    digits = load_digits().data
    n_iter = 1 if arguments.quick else 6
    sets = (("digits", digits, None, 10, 5), ("synthetic", X, agents, 5, None))
    kinds = [(c, m) for c in ("paillier", "bfv") for m in ("entrywise", "scalar")]
    for encryption, masking in kinds:
        for name, data, labels, K, partition in sets:
            times = []
            for n_jobs in (None, 2):
                estimator = PrivateDistributedNMF(
                    K,
                    partition=partition,
                    encryption=encryption,
                    masking=masking,
                    key_size=arguments.key_size,
                    max_iter=n_iter,
                    tol=0,
                    n_jobs=n_jobs,
                    random_state=0,
                )
                times.append(measure(name, estimator, data, labels, phe_value))
            print(f"{'':10} two jobs over one: {times[0] / times[1]:.2f}")
    print(
        "'phe ratio' compares one job with one job; 'estimate' is made before the fit"
    )


if __name__ == "__main__":
    main()
