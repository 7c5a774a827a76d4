"""The recipe: what it sends, and one run in FLARE's simulator."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from _sites import NAMES, SIZES, last, make_sites, samples
from numpy.testing import assert_array_equal

from skppdnmf import PrivacyBudget, PrivateDistributedNMF
from skppdnmf.flare import load

needs_flare = pytest.mark.skipif(
    find_spec("nvflare") is None, reason="a federation needs skppdnmf[flare]"
)
SUMS = {"protocol": "secure-sum", "max_iter": 3, "tol": 0, "random_state": 0}

# FLARE leaves threads and connections behind, and warns of its own use of others: it
# has processes of its own here.
SCRIPT = """
import sys
from nvflare.recipe import SimEnv
from skppdnmf import PrivateDistributedNMF
from skppdnmf.flare import NMFRecipe
if __name__ == "__main__":
    model = PrivateDistributedNMF(3, {parameters})
    recipe = NMFRecipe(model, min_sites=4, name="suite")
    recipe.execute(SimEnv(clients={names}, workspace_root={root!r}))
"""


def python(code, tmp_path, **variables):
    file = tmp_path / "script.py"
    file.write_text(code)
    done = subprocess.run(
        [sys.executable, str(file)],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, **variables},
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    return done.stdout


@needs_flare
def test_a_federation_in_the_simulator(tmp_path):
    """Four sites, with folders and keys of their own; bit for bit as in one process."""
    X = samples()
    make_sites(tmp_path / "sites", X)
    script = SCRIPT.format(
        parameters=", ".join(f"{name}={value!r}" for name, value in SUMS.items()),
        names=list(NAMES),
        root=str(tmp_path / "flare"),
    )
    python(script, tmp_path, SKPPDNMF_SITES=str(tmp_path / "sites"))
    model = PrivateDistributedNMF(3, partition=list(SIZES), **SUMS).fit(X)
    for name in NAMES:
        done = last(tmp_path / "sites", name)
        assert done["event"] == "finished"
        here = load(tmp_path / "sites" / name / "results" / done["run"])
        assert_array_equal(here.components_, model.components_)
    # Of the data nothing is in what FLARE has written.
    written = [
        file.read_bytes() for file in (tmp_path / "flare").rglob("*") if file.is_file()
    ]
    assert done["run"].encode() in b"".join(written)
    for value in (X[0, 0], model.components_[0, 0]):
        for form in (value.tobytes(), str(value).encode()):
            assert not any(form in data for data in written)


CHECKS = """
import json, sys
from pathlib import Path
from skppdnmf import PrivateDistributedNMF
from skppdnmf.flare import NMFRecipe
recipe = NMFRecipe(PrivateDistributedNMF(3, protocol="secure-sum"))
recipe.export(sys.argv[0] + ".job")
print(json.dumps(recipe.spec.parameters))
"""


@needs_flare
def test_a_job_carries_parameters_and_no_code(tmp_path):
    parameters = json.loads(python(CHECKS, tmp_path).splitlines()[-1])
    assert isinstance(parameters["random_state"], int)
    assert not {"n_jobs", "verbose", "partition"} & parameters.keys()
    files = [file for file in (tmp_path / "script.py.job").rglob("*") if file.is_file()]
    assert files
    assert not [file for file in files if file.suffix != ".json"]


def test_what_has_no_meaning_among_sites_is_refused():
    from skppdnmf.flare.job import parameters_of

    with pytest.raises(ValueError, match='n_components="auto" has no meaning'):
        parameters_of(PrivateDistributedNMF())
    budget = PrivacyBudget(epsilon=1.0, delta=1e-5)
    model = PrivateDistributedNMF(
        3,
        protocol="secure-sum",
        epsilon=1.0,
        delta=1e-5,
        clip=1.0,
        privacy_budget=budget,
    )
    with pytest.raises(ValueError, match="privacy_budget is of one process"):
        parameters_of(model)
    arrays = PrivateDistributedNMF(2, init=np.eye(2), adjacency=np.ones((3, 3)))
    read = json.loads(json.dumps(parameters_of(arrays)))
    assert read["init"] == np.eye(2).tolist()


WITHOUT = """
import sys
import skppdnmf, skppdnmf.audit, skppdnmf.exchange, skppdnmf.plot, skppdnmf.flare
from skppdnmf._cli import cli
from skppdnmf.flare import party, results, run
assert not [name for name in sys.modules if name.split(".")[0] == "nvflare"]
sys.modules["nvflare"] = None
try:
    from skppdnmf.flare import NMFRecipe
except ImportError as error:
    print(error)
"""


def test_nothing_else_imports_flare_and_its_absence_is_named(tmp_path):
    assert 'pip install "skppdnmf[flare]"' in python(WITHOUT, tmp_path)
