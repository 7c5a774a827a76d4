"""
Three hospitals, nothing but the components
===========================================

Three sites hold some images of digits each. They run the factorisation on secret
shares, each in a process of its own, as they would on three machines: every site has a
folder with its identity, its data and its policy, and all have the same job file. Needs
the extra ``mpc``.

Run it with ``python examples/mpc/three_sites.py [folder]``.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from scipy.optimize import nnls
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF

from skppdnmf.exchange import Identity, write_public_identity

SITES = {"north": 9310, "south": 9320, "west": 9330}
N_COMPONENTS, N_SAMPLES = 5, 120


def prepare(folder, samples):
    """Write what each site has, and the job that all have agreed upon."""
    identities = {name: Identity.new() for name in SITES}
    roster = "\n".join(
        f'{name} = "{write_public_identity(one.public)}"'
        for name, one in identities.items()
    )
    for name, X in samples.items():
        site = folder / name
        site.mkdir()
        identities[name].save(site / "identity.pem")
        np.savetxt(site / "digits.csv", X, delimiter=",", fmt="%g")
        (site / "skppdnmf.toml").write_text(
            f'name = "{name}"\n'
            f"[roster]\n{roster}\n"
            '[datasets.digits]\nfile = "digits.csv"\n'
            '[policy]\nprotocols = ["mpc"]\nmin_other_samples_per_component = 10\n'
        )
    addresses = "\n".join(
        f'{name} = "127.0.0.1:{port}"' for name, port in SITES.items()
    )
    job = folder / "job.toml"
    job.write_text(
        'name = "first-run"\ndataset = "digits"\n'
        f"parties = {list(SITES)}\n"
        f"n_components = {N_COMPONENTS}\nn_init = 2\nmax_iter = 20\n"
        f"[sites]\n{addresses}\n"
    )
    return job


def main(folder):
    """Run the three sites, and compare with the pooled factorisation."""
    X = load_digits().data[:N_SAMPLES]
    job = prepare(folder, dict(zip(SITES, np.array_split(X, 3), strict=True)))
    command = [sys.executable, "-m", "skppdnmf", "mpc", str(job), "--quiet", "--site"]
    processes = [subprocess.Popen([*command, str(folder / name)]) for name in SITES]
    for process in processes:
        if process.wait(timeout=300):
            raise SystemExit("a site has failed")
    found = [
        np.load(folder / name / "results" / "first-run" / "components.npz")
        for name in SITES
    ]
    first, *others = (one["components"] for one in found)
    print(
        "all sites have the same components:",
        all((one == first).all() for one in others),
    )
    W = np.array([nnls(first.T, x)[0] for x in X])
    error = np.linalg.norm(X - W @ first) / np.linalg.norm(X)
    pooled = NMF(N_COMPONENTS, init="random", random_state=0, max_iter=1000).fit(X)
    print(f"error, on shares: {error:.3f}")
    print(f"error, pooled:    {pooled.reconstruction_err_ / np.linalg.norm(X):.3f}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
