"""Figures 1b and 1c of the paper: error and components on the CBCL faces.

Ten agents factorise 2,429 faces of 19 x 19 pixels into 49 components, with the paper's
parameters and the update equations as printed and as corrected, then with this
package's defaults, whose penalties follow the scale of the data. The centralised
algorithm is the same one with all data at one agent; the horizontal line is
scikit-learn's NMF.

The faces are not part of this package: give the path of the folder with the .pgm files
or of an .npz file. Without one, scikit-learn's digits stand in for them. Run it from
the project's root: ``python examples/paper/fig1bc.py PATH``.

Ciphertexts are simulated. With ``--encryption bfv`` the fit with default penalties is
really encrypted, under the lattice cipher, and its time is printed; the result is the
same, bit for bit.
"""

import argparse
import time
import warnings

import matplotlib.pyplot as plt
import numpy as np
from _common import ERRORS, PAPER, UPDATES, add_common_options, fit, paper_nmf, save
from joblib import Parallel, delayed
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from skppdnmf import PrivateDistributedNMF, load_cbcl

N_AGENTS = 10
CENTRAL = "centralised"
DEFAULTS = "corrected, default penalties"


def load_data(path, quick):
    """Load the data; also the number of components and the shape of an image."""
    if path is None:
        print("no path given: scikit-learn's digits stand in for the CBCL faces")
        X, n_components, shape, name = load_digits().data / 16, 10, (8, 8), "digits"
    else:
        X, n_components, shape, name = load_cbcl(path), 49, (19, 19), "CBCL faces"
    if quick:
        X = X[::4]
    return X, n_components, shape, name


def run(name, X, n_components, max_iter, encryption="simulated", n_jobs=None):
    """Fit one of the algorithms; all are compared after as many iterations."""
    if name == DEFAULTS:
        model = PrivateDistributedNMF(
            n_components,
            partition=N_AGENTS,
            encryption=encryption,
            n_jobs=n_jobs,
            max_iter=max_iter,
            tol=0,
            random_state=0,
        )
        return fit(model, X)
    update = UPDATES["corrected" if name == CENTRAL else name]
    n_agents = 1 if name == CENTRAL else N_AGENTS
    model = paper_nmf(
        n_components,
        update=update,
        partition=n_agents,
        max_iter=max_iter,
        random_state=0,
    )
    return fit(model, X)


def pooled_error(X, n_components):
    """Relative error of scikit-learn's NMF."""
    with warnings.catch_warnings():
        # Its last digits do not matter here.
        warnings.simplefilter("ignore", ConvergenceWarning)
        nmf = NMF(n_components, init="nndsvda", max_iter=300, random_state=0).fit(X)
    return nmf.reconstruction_err_ / np.linalg.norm(X)


def print_table(models, pooled):
    """Print the final errors."""
    print(
        f"{'':32} {'exchanges':>9} {'local error':>12} {'shared error':>13} "
        f"{'over NMF':>9} {'consensus error':>16}"
    )
    for name, model in models.items():
        local, shared = (model.history_[key][-1] for key in ERRORS)
        exchanges = 0 if name == CENTRAL else model.n_exchanges_
        print(
            f"{name:32} {exchanges:9,} {local:12.4f} {shared:13.4f} "
            f"{shared / pooled:9.3f} {model.consensus_error_:16.4f}"
        )
    print(f"{'scikit-learn NMF':32} {0:9} {'-':>12} {pooled:13.4f} {1:9.3f} {'-':>16}")


def draw_curves(models, pooled, name):
    """Draw both errors against the iterations."""
    figure, axes = plt.subplots(
        1, 2, figsize=(10, 4.4), sharey=True, layout="constrained"
    )
    for ax, (key, label) in zip(axes, ERRORS.items(), strict=True):
        for kind, model in models.items():
            style = {"color": "black", "ls": "--"} if kind == CENTRAL else {}
            curve = model.history_[key]
            ax.plot(np.arange(1, len(curve) + 1), curve, label=kind, **style)
        ax.axhline(pooled, color="gray", lw=1, ls=":", label="scikit-learn's NMF")
        ax.set(
            title=label, xlabel="iterations of block coordinate descent", yscale="log"
        )
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_formatter("{x:g}")
        ax.grid(alpha=0.3)
    axes[0].set_ylabel(f"relative error on the {name}")
    axes[0].legend(loc="upper right")
    return figure


def montage(components, shape):
    """Arrange components, each scaled to its own maximum, in a full rectangle."""
    count = len(components)
    columns = next(c for c in range(1, count + 1) if c * c >= count and not count % c)
    rows = count // columns
    height, width = shape
    sheet = np.full((rows * (height + 1) - 1, columns * (width + 1) - 1), np.nan)
    for k, component in enumerate(components):
        row, column = (k // columns) * (height + 1), (k % columns) * (width + 1)
        scaled = component / (component.max() or 1)
        sheet[row : row + height, column : column + width] = scaled.reshape(shape)
    return sheet


def draw_components(models, shape):
    """Draw the left factors: what one agent holds, and what the agents share."""
    published, corrected = models["published"], models["corrected"]
    panels = {
        "published: agent 0's own copy": published.agent_components_[0],
        "published: agent 1's own copy": published.agent_components_[1],
        "published: mean of the copies": published.components_,
        "corrected: mean of the copies": corrected.components_,
        f"{DEFAULTS}:\nmean of the copies": models[DEFAULTS].components_,
        CENTRAL: models[CENTRAL].components_,
    }
    sheets = {title: montage(panel, shape) for title, panel in panels.items()}
    height, width = next(iter(sheets.values())).shape
    size = (10, 6.4 * height / width + 1)
    figure, axes = plt.subplots(2, 3, figsize=size, layout="constrained")
    colors = plt.get_cmap("gray_r").with_extremes(bad="lightskyblue")
    for ax, (title, sheet) in zip(axes.flat, sheets.items(), strict=True):
        ax.imshow(sheet, cmap=colors)
        ax.set_title(title, fontsize=10)
        ax.axis("off")
    return figure


def main():
    """Run the four algorithms, print the table, draw both figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument(
        "path", nargs="?", help="folder of .pgm files or .npz file with the CBCL faces"
    )
    parser.add_argument(
        "--encryption",
        choices=["simulated", "bfv"],
        default="simulated",
        help="of the fit with default penalties (default: %(default)s)",
    )
    add_common_options(parser)
    options = parser.parse_args()
    X, n_components, shape, name = load_data(options.path, options.quick)
    max_iter = 8 if options.quick else PAPER["max_iter"]
    kinds = [*UPDATES, DEFAULTS, CENTRAL]
    simulated = [kind for kind in kinds if kind != DEFAULTS]
    fits = Parallel(n_jobs=options.jobs)(
        delayed(run)(kind, X, n_components, max_iter) for kind in simulated
    )
    models = dict(zip(simulated, fits, strict=True))
    started = time.perf_counter()
    given = X, n_components, max_iter, options.encryption, options.jobs
    models[DEFAULTS] = run(DEFAULTS, *given)
    seconds = time.perf_counter() - started
    models = {kind: models[kind] for kind in kinds}
    pooled = pooled_error(X, n_components)
    print(f"{name}: {X.shape[0]:,} images, {n_components} components")
    print_table(models, pooled)
    if options.encryption != "simulated":
        sent = models[DEFAULTS].traffic_["bytes"] / 1e9
        print(
            f"{DEFAULTS}: really encrypted under {options.encryption}, in "
            f"{seconds:.0f} seconds with {options.jobs} jobs; {sent:.1f} GB sent"
        )
    save(draw_curves(models, pooled, name), "paper_fig1b.png")
    save(draw_components(models, shape), "paper_fig1c.png")


if __name__ == "__main__":
    main()
