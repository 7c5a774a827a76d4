"""Whole pools found from the totals, begun from samples of the same kind.

The data are scikit-learn's digits of 8 x 8 pixels, ten components, and as many starts
as the defaults follow. An agent with 20 samples attacks two others that hold the pool,
half each, from 1,200 reference samples that are in no pool: `PooledSimulationAttack`
takes nonnegative combinations of them for its first guesses, and mends these.

Run it from the project's root: ``python benchmarks/bench_reconstruction.py [--quick]``;
the variable SKPPDNMF_QUICK=1 does what --quick does.
"""

import argparse
import os
import warnings

import numpy as np
from bench_membership import N_COMPONENTS, dealt, fit

from skppdnmf.audit import PooledSimulationAttack


def found(n_pool, n_references, seed, **given):
    """Return the share of samples found within 5 %, and the error over all."""
    own, pool, references = dealt(n_pool, n_references, seed)
    attack = PooledSimulationAttack(max_fitted=n_pool, references=references, **given)
    leakage = attack.run(fit(own, pool, seed), 0)
    each = np.linalg.norm(leakage.reconstruction - leakage.truth, axis=1)
    near = np.mean(each < 0.05 * np.linalg.norm(leakage.truth, axis=1))
    return near, leakage.error, leakage.guess_error


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="one small pool")
    quick = parser.parse_args().quick or os.environ.get("SKPPDNMF_QUICK") == "1"
    warnings.simplefilter("ignore")
    pools = [4] if quick else [N_COMPONENTS, 2 * N_COMPONENTS]
    n_references = 100 if quick else 1200
    print(
        f"{'pool':>5}{'seed':>6}{'found within 5 %':>18}{'error':>10}"
        f"{'error of guessing':>19}"
    )
    for n_pool in pools:
        for seed in range(1 if quick else 3):
            near, error, guess = found(
                n_pool, n_references, seed, n_starts=3, max_steps=60
            )
            row = f"{n_pool:>5}{seed:>6}{100 * near:>16.0f} %{error:>10.2g}"
            print(f"{row}{guess:>19.2g}", flush=True)


if __name__ == "__main__":
    main()
