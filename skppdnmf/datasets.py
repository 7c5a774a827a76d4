"""Data sets of the paper and of its predecessors."""

from __future__ import annotations

import os
import re
import zipfile
from numbers import Real
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import softmax
from sklearn.utils import check_random_state

from ._numbers import python_count, python_number

__all__ = ["load_cbcl", "make_paper_synthetic"]

CBCL_SIDE = 19
# Magic number, width, height and greatest value, which white space and comments
# may separate; a single white space precedes the pixels.
PGM_HEADER = re.compile(
    rb"P5(?:\s|#[^\n]*\n)+(\d+)(?:\s|#[^\n]*\n)+(\d+)(?:\s|#[^\n]*\n)+(\d+)\s"
)


def make_paper_synthetic(
    random_state: Any = None,
    *,
    n_features: int = 30,
    n_samples: int = 200,
    n_components: int = 5,
    n_agents: int = 10,
    left_mean: float = 0.033,
    right_mean: float = 0.8,
    noise_variance: float = 3.6e-4,
    min_samples: int = 4,
    max_samples: int = 40,
) -> tuple[
    NDArray[np.float64],
    NDArray[np.intp],
    NDArray[np.float64],
    NDArray[np.float64],
]:
    """Generate the synthetic data of the paper (arXiv 2403.18326).

    The entries of both factors are exponentially distributed; X is their product
    plus white Gaussian noise. The agents hold unequal numbers of samples, drawn
    with equal probability from all ways to give each agent between `min_samples`
    and `max_samples` of them.

    Parameters
    ----------
    random_state : int, RandomState instance or None, default=None
        Pass an int for reproducible data.
    n_features : int, default=30
        Number of features, L in the paper.
    n_samples : int, default=200
        Number of samples of all agents together, M in the paper.
    n_components : int, default=5
        Number of components, K.
    n_agents : int, default=10
        Number of agents, N.
    left_mean : float, default=0.033
        Mean of the entries of the paper's left factor, our H.
    right_mean : float, default=0.8
        Mean of the entries of the paper's right factor, our W.
    noise_variance : float, default=3.6e-4
        Variance of the noise; 0 for exact low rank.
    min_samples, max_samples : int, default=4 and 40
        Least and greatest number of samples of an agent; an agent of 0 samples
        has no entry in `agents`.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features), dtype float64
        The data, ``W @ H`` plus noise. Noise can make an entry negative, and NMF
        takes nonnegative data only: such entries are set to zero.
    agents : ndarray of shape (n_samples,), dtype intp
        The agent, 0..n_agents-1, that holds each sample; ascending.
    W : ndarray of shape (n_samples, n_components), dtype float64
        The right factor of the paper, transposed.
    H : ndarray of shape (n_components, n_features), dtype float64
        The left factor of the paper, transposed.

    Raises
    ------
    ValueError
        If a parameter is out of its range, or if `n_agents` agents of
        `min_samples` to `max_samples` samples cannot hold `n_samples`.

    Examples
    --------
    >>> from skppdnmf import make_paper_synthetic
    >>> X, agents, W, H = make_paper_synthetic(random_state=0)
    >>> X.shape, W.shape, H.shape
    ((200, 30), (200, 5), (5, 30))
    >>> int(agents.max())
    9
    """
    n_features = python_count(n_features, "n_features")
    n_samples = python_count(n_samples, "n_samples")
    n_components = python_count(n_components, "n_components")
    n_agents = python_count(n_agents, "n_agents")
    min_samples = python_count(min_samples, "min_samples", least=0)
    max_samples = python_count(max_samples, "max_samples")
    left_mean, right_mean, noise_variance = map(
        python_number, (left_mean, right_mean, noise_variance)
    )
    scales = {
        "left_mean": left_mean,
        "right_mean": right_mean,
        "noise_variance": noise_variance,
    }
    for name, scale in scales.items():
        in_range = (
            isinstance(scale, Real)
            and np.isfinite(scale)
            and (scale > 0 or (name == "noise_variance" and scale == 0))
        )
        if not in_range:
            sign = "nonnegative" if name == "noise_variance" else "positive"
            raise ValueError(f"{name}={scale!r} must be a {sign} finite number")
    if min_samples > max_samples:
        raise ValueError(f"min_samples={min_samples} exceeds max_samples={max_samples}")
    if not n_agents * min_samples <= n_samples <= n_agents * max_samples:
        raise ValueError(
            f"n_agents={n_agents} of min_samples={min_samples} to "
            f"max_samples={max_samples} samples hold {n_agents * min_samples} to "
            f"{n_agents * max_samples} together, not n_samples={n_samples}"
        )
    rng = check_random_state(random_state)
    sizes = _draw_sizes(n_samples, n_agents, min_samples, max_samples, rng)
    W = rng.exponential(right_mean, size=(n_samples, n_components))
    H = rng.exponential(left_mean, size=(n_components, n_features))
    noise = rng.normal(scale=noise_variance**0.5, size=(n_samples, n_features))
    X = np.maximum(W @ H + noise, 0)
    return X, np.repeat(np.arange(n_agents, dtype=np.intp), sizes), W, H


def _draw_sizes(
    total: int, n_agents: int, least: int, greatest: int, rng: np.random.RandomState
) -> NDArray[np.intp]:
    """Draw sizes in [least, greatest] that sum to total, each such set alike.

    Independent draws with probabilities proportional to exp(tilt * size), given
    their sum, are uniform whatever the tilt; the one that makes the mean right
    keeps rejections rare, also where `total` is close to what the limits allow.
    """
    sizes = np.arange(least, greatest + 1)
    mean = total / n_agents
    if mean in (least, greatest):
        return np.full(n_agents, int(mean))
    steps = np.arange(sizes.size)

    def excess(tilt: float) -> float:
        return float(softmax(tilt * steps) @ sizes) - mean

    bound = 1.0
    while excess(-bound) > 0 or excess(bound) < 0:
        bound *= 2
    tilt = brentq(excess, -bound, bound)
    weights = softmax(tilt * steps)
    # The sum determines the last size, so it is not drawn; accepting it in
    # proportion to its weight gives the law of a drawn one.
    acceptance = weights / weights.max()
    while True:
        drawn = rng.choice(sizes, size=n_agents - 1, p=weights)
        last = total - int(drawn.sum())
        if least <= last <= greatest and rng.uniform() < acceptance[last - least]:
            return np.append(drawn, last)


def load_cbcl(
    path: str | os.PathLike[str],
    normalisation: Literal["grey", "leeseung"] = "grey",
) -> NDArray[np.float64]:
    r"""Load the MIT-CBCL face images, which Lee and Seung factorised.

    The images are not part of this package; the training set of the MIT-CBCL
    face database no. 1 (research use) has 2429 faces of 19 x 19 pixels.

    Parameters
    ----------
    path : str or path-like
        The folder with the faces, ``*.pgm`` files (binary, 8 bits a pixel), which
        are read in the order of their names; or an ``.npz`` file with an array
        ``X`` of grey levels 0..255 and, optionally, ``X_leeseung``, the same in
        Lee and Seung's normalisation times 255.
    normalisation : {"grey", "leeseung"}, default="grey"
        "grey" divides the grey levels by 255. "leeseung" first scales each image
        to mean 0.25 and standard deviation 0.25, clips it to [0, 1] and rounds
        it down to a multiple of 1/255. It is computed from the grey levels where
        the file has no ``X_leeseung``.

    Returns
    -------
    X : ndarray of shape (n_images, 361), dtype float64
        An image per row, between 0 and 1; ``X[k].reshape(19, 19)`` is upright.

    Raises
    ------
    FileNotFoundError
        If `path` does not exist, or is a folder without ``.pgm`` files.
    ValueError
        If a file is not of the format described, an array is missing or an image
        is not of 19 x 19 pixels.

    Examples
    --------
    A folder with one face, made up:

    >>> import tempfile
    >>> from pathlib import Path
    >>> from skppdnmf.datasets import load_cbcl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "face00001.pgm")
    ...     _ = file.write_bytes(b"P5 19 19 255\n" + bytes(range(180)) + bytes(181))
    ...     X = load_cbcl(folder)
    >>> X.shape
    (1, 361)
    >>> float(X[0, 51])
    0.2
    """
    if normalisation not in ("grey", "leeseung"):
        raise ValueError(
            f"normalisation={normalisation!r} is not one of 'grey', 'leeseung'"
        )
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(
            f"no file or folder {str(path)!r}; load_cbcl reads a folder of .pgm files "
            "or an .npz file"
        )
    if path.is_dir():
        levels = _read_pgm_folder(path)
    else:
        levels, is_normalised = _read_npz(path, normalisation)
        if is_normalised:
            return levels / 255
    return (_normalise(levels) if normalisation == "leeseung" else levels) / 255


def _normalise(levels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Lee and Seung's normalisation, in whole multiples of 1/255."""
    centred = levels - levels.mean(axis=1, keepdims=True)
    deviations = levels.std(axis=1, ddof=1, keepdims=True)
    deviations[deviations == 0] = 1
    return np.floor(255 * np.clip(0.25 + 0.25 * centred / deviations, 0, 1))


def _read_npz(path: Path, normalisation: str) -> tuple[NDArray[np.float64], bool]:
    """Levels 0..255 of an .npz file, and whether they are in Lee and Seung's form."""
    try:
        archive = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{str(path)!r} is not an .npz file: {error}") from error
    if not isinstance(archive, np.lib.npyio.NpzFile):
        raise ValueError(f"{str(path)!r} holds a single array; an .npz file is needed")
    with archive:
        is_normalised = normalisation == "leeseung" and "X_leeseung" in archive
        name = "X_leeseung" if is_normalised else "X"
        if name not in archive:
            raise ValueError(
                f"{str(path)!r} has no array {name!r}; it has "
                f"{', '.join(map(repr, archive.files)) or 'none'}"
            )
        levels = archive[name]
    n_pixels = CBCL_SIDE**2
    if levels.ndim != 2 or levels.shape[1] != n_pixels or not levels.shape[0]:
        raise ValueError(
            f"array {name!r} of {str(path)!r} must have shape (n_images, {n_pixels}); "
            f"it has {levels.shape}"
        )
    if levels.dtype.kind not in "uif" or not (
        levels.min() >= 0 and levels.max() <= 255
    ):
        raise ValueError(
            f"array {name!r} of {str(path)!r} must hold grey levels 0..255; it holds "
            f"{levels.dtype} from {levels.min()} to {levels.max()}"
        )
    return levels.astype(np.float64), is_normalised


def _read_pgm_folder(folder: Path) -> NDArray[np.float64]:
    """Levels 0..255 of all .pgm files of a folder, in the order of their names."""
    files = sorted(file for file in folder.iterdir() if file.suffix.lower() == ".pgm")
    if not files:
        raise FileNotFoundError(f"no .pgm files in folder {str(folder)!r}")
    return np.stack([_read_pgm(file) for file in files]).astype(np.float64)


def _read_pgm(file: Path) -> NDArray[np.uint8]:
    """Pixels of a binary 19 x 19 PGM file, row by row."""
    content = file.read_bytes()
    header = PGM_HEADER.match(content)
    if header is None:
        raise ValueError(f"{str(file)!r} is not a binary PGM file (P5)")
    width, height, greatest = map(int, header.groups())
    if (width, height, greatest) != (CBCL_SIDE, CBCL_SIDE, 255):
        raise ValueError(
            f"{str(file)!r} has {width} x {height} pixels of levels 0..{greatest}; "
            f"{CBCL_SIDE} x {CBCL_SIDE} of levels 0..255 are needed"
        )
    pixels = content[header.end() :]
    # Some writers end the file with a line break.
    if len(pixels.rstrip(b"\r\n")) > width * height or len(pixels) < width * height:
        raise ValueError(
            f"{str(file)!r} holds {len(pixels)} pixels, not {width * height}"
        )
    return np.frombuffer(pixels, dtype=np.uint8, count=width * height)
