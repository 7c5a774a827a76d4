"""What is installed: the wheel made from the sdist, and types for those who use it."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.journey
ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = Path(__file__).with_name("typed_example.py")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder outside of the checkout with the wheel in it, and nothing else."""
    pytest.importorskip("build")
    folder = tmp_path_factory.mktemp("distribution")
    source = folder / "source"
    subprocess.run(
        ["git", "clone", "--quiet", "--depth=1", f"file://{ROOT}", source], check=True
    )
    subprocess.run(
        [sys.executable, "-m", "build", "--outdir", folder / "dist", source], check=True
    )
    (wheel,) = (folder / "dist").glob("*.whl")
    assert len(list((folder / "dist").glob("*.tar.gz"))) == 1
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def test_the_wheel_passes_the_demo_outside_of_the_checkout(site, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(site), "MPLBACKEND": "Agg"}
    where = subprocess.run(
        [sys.executable, "-c", "import skppdnmf; print(skppdnmf.__file__)"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(where.stdout.strip()).is_relative_to(site)
    done = subprocess.run(
        [sys.executable, "-m", "skppdnmf", "demo"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_the_wheel_says_that_it_is_typed(site):
    assert (site / "skppdnmf" / "py.typed").exists()
    assert not (site / "tests").exists()


def check_types(file, tmp_path):
    return subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent"),
            *("--ignore-missing-imports", "--config-file=", "--cache-dir", tmp_path),
            file,
        ],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )


def test_typed_code_may_use_the_public_names(tmp_path):
    """Under mypy's strictest settings, and a wrong type is found."""
    pytest.importorskip("mypy")
    done = check_types(EXAMPLE, tmp_path)
    assert done.returncode == 0, done.stdout
    wrong = tmp_path / "wrong.py"
    text = EXAMPLE.read_text(encoding="utf-8")
    wrong.write_text(text.replace("n_features=8", 'n_features="eight"', 1))
    done = check_types(wrong, tmp_path)
    assert done.returncode == 1
    assert 'incompatible type "str"' in done.stdout
