"""Figure 1a of the paper: error against iterations on synthetic data.

Ten agents on random graphs of average degree 3 factorise the paper's synthetic data
with n_max = 10, 100, 1,000 and 1,000,000, with the update equations as printed and as
corrected, all other parameters being the paper's; means over trials, each with its own
data, graph and masks. Drawn are the paper's error, which takes each agent's own copy of
the left factor, and the error with the mean of the copies, which is what the agents
have in common. The centralised algorithm is the same one with all data at one agent.

Run it from the project's root: ``python examples/paper/fig1a.py``. The paper averages
over 100 trials: ``--trials 100``.
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np
from _common import ERRORS, PAPER, UPDATES, add_common_options, fit, paper_nmf, save
from joblib import Parallel, delayed

from skppdnmf import make_paper_synthetic

SCALES = (10, 100, 10**3, 10**6)
N_COMPONENTS = 5


def run(trial, update, n_max, max_iter):
    """One fit: the two error curves and the consensus error.

    ``n_max=None`` is the centralised algorithm.
    """
    X, agents, *_ = make_paper_synthetic(random_state=trial)
    model = paper_nmf(
        N_COMPONENTS, update=UPDATES[update], max_iter=max_iter, random_state=trial
    )
    if n_max is None:
        fit(model.set_params(partition=1), X)
    else:
        fit(model.set_params(n_max=n_max), X, agents)
    curves = [model.history_[name] for name in (*ERRORS, "consensus_error")]
    return np.array(curves)


def run_all(n_trials, max_iter, n_jobs):
    """Run all fits; means over the trials of shape (3, max_iter), for each case."""
    # The centralised algorithm does not exchange anything: one update serves both.
    cases = [("corrected", None)]
    cases += [(update, n_max) for update in UPDATES for n_max in SCALES]
    curves = Parallel(n_jobs=n_jobs)(
        delayed(run)(trial, *case, max_iter)
        for case in cases
        for trial in range(n_trials)
    )
    curves = np.reshape(curves, (len(cases), n_trials, 3, max_iter))
    return dict(zip(cases, curves.mean(axis=1), strict=True))


def mean_of(n_trials):
    """Say how many trials."""
    return "1 trial" if n_trials == 1 else f"mean of {n_trials} trials"


def print_table(means, max_iter, n_trials):
    """Print errors after some iterations and their ratio to the centralised one."""
    central = means["corrected", None][0]
    marks = sorted({max_iter // 10, max_iter // 5, max_iter // 2, max_iter})
    print(f"{mean_of(n_trials)}; {PAPER['max_admm_iter']} exchanges an iteration")
    print(f"{'':38}" + f"{'error after so many iterations':>{9 * len(marks)}}")
    print(
        f"{'update':10} {'n_max':>9} {'error':>8} {'':9}"
        + "".join(f"{mark:9}" for mark in marks)
        + f"{'over centralised':>18} {'consensus error':>16}"
    )
    row = "".join(f"{central[mark - 1]:9.4f}" for mark in marks)
    print(f"{'centralised':38}{row}{1:18.3f} {'-':>16}")
    for (update, n_max), (local, shared, consensus) in means.items():
        if n_max is None:
            continue
        for name, curve in (("local", local), ("shared", shared)):
            row = "".join(f"{curve[mark - 1]:9.4f}" for mark in marks)
            print(
                f"{update:10} {n_max:9,} {name:>8} {'':9}{row}"
                f"{curve[-1] / central[-1]:18.3f} {consensus[-1]:16.4f}"
            )


def draw(means, max_iter, n_trials):
    """Draw both errors (rows) for both updates (columns)."""
    figure, axes = plt.subplots(
        2, 2, figsize=(9, 7), sharex=True, sharey=True, layout="constrained"
    )
    iterations = np.arange(1, max_iter + 1)
    colors = plt.get_cmap("viridis")(np.linspace(0, 0.85, len(SCALES)))
    for column, update in zip(axes.T, UPDATES, strict=True):
        column[0].set_title(f"{update} update")
        for k, ax in enumerate(column):
            for n_max, color in zip(SCALES, colors, strict=True):
                ax.plot(
                    iterations, means[update, n_max][k], color=color, label=f"{n_max:,}"
                )
            ax.plot(
                iterations,
                means["corrected", None][k],
                "k--",
                lw=1.2,
                label="centralised",
            )
            ax.grid(alpha=0.3)
    for ax, label in zip(axes[:, 0], ERRORS.values(), strict=True):
        ax.set(ylabel=label, yscale="log")
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_formatter("{x:g}")
    for ax in axes[1]:
        ax.set_xlabel("iterations of block coordinate descent")
    axes[0, 1].legend(title="n_max")
    figure.suptitle(f"Relative error on synthetic data, {mean_of(n_trials)}")
    return figure


def main():
    """Run the trials, print the table, draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    add_common_options(parser)
    parser.add_argument("--trials", type=int, help="number of trials (default: 25)")
    options = parser.parse_args()
    n_trials = options.trials or (1 if options.quick else 25)
    max_iter = 12 if options.quick else PAPER["max_iter"]
    means = run_all(n_trials, max_iter, options.jobs)
    print_table(means, max_iter, n_trials)
    save(draw(means, max_iter, n_trials), "paper_fig1a.png")


if __name__ == "__main__":
    main()
