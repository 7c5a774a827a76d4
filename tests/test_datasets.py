from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import chisquare
from sklearn.decomposition import NMF

from skppdnmf.datasets import _draw_sizes, load_cbcl, make_paper_synthetic

CBCL = Path(__file__).resolve().parents[2] / "shared" / "data" / "cbcl.npz"
needs_cbcl = pytest.mark.skipif(
    not CBCL.exists(), reason="the CBCL faces are not beside the checkout"
)


class TestMakePaperSynthetic:
    def test_shapes_and_dtypes(self):
        X, agents, W, H = make_paper_synthetic(0)
        assert (X.shape, W.shape, H.shape) == ((200, 30), (200, 5), (5, 30))
        assert {a.dtype for a in (X, W, H)} == {np.dtype(np.float64)}
        assert agents.dtype == np.intp

    @given(st.integers(0, 2**32 - 1))
    def test_every_agent_holds_4_to_40_consecutive_samples(self, seed):
        agents = make_paper_synthetic(seed)[1]
        sizes = np.bincount(agents)
        assert sizes.shape == (10,)
        assert sizes.sum() == 200
        assert sizes.min() >= 4
        assert sizes.max() <= 40
        assert (np.diff(agents) >= 0).all()

    def test_factors_and_noise_have_the_papers_moments(self):
        X, _, W, H = make_paper_synthetic(
            0, n_samples=20_000, n_agents=1000, n_features=300
        )
        assert_allclose(W.mean(), 0.8, rtol=0.02)
        assert_allclose(W.std(), 0.8, rtol=0.03)
        assert_allclose(H.mean(), 0.033, rtol=0.1)
        assert_allclose(H.std(), 0.033, rtol=0.15)
        # Away from zero nothing is clipped.
        noise = (X - W @ H)[W @ H > 0.1]
        assert_allclose(noise.mean(), 0, atol=1e-4)
        assert_allclose(noise.var(), 3.6e-4, rtol=0.01)

    def test_x_is_clipped_at_zero(self):
        X = make_paper_synthetic(0)[0]
        assert X.min() == 0
        assert 0 < (X == 0).mean() < 0.05

    def test_without_noise_x_is_the_product(self):
        X, _, W, H = make_paper_synthetic(0, noise_variance=0)
        assert_array_equal(X, W @ H)

    def test_follows_the_seed(self):
        first, again, other = (make_paper_synthetic(seed) for seed in (1, 1, 2))
        for a, b in zip(first, again, strict=True):
            assert_array_equal(a, b)
        assert (first[0] != other[0]).any()

    def test_pooled_nmf_leaves_a_tenth_of_the_norm(self):
        errors = []
        for seed in range(5):
            X = make_paper_synthetic(seed)[0]
            model = NMF(5, init="nndsvda", max_iter=2000, tol=1e-4).fit(X)
            errors.append(model.reconstruction_err_ / np.linalg.norm(X))
        assert 0.09 < np.median(errors) < 0.11

    def test_own_numbers(self):
        X, agents, W, H = make_paper_synthetic(
            n_features=3,
            n_samples=5,
            n_components=7,
            n_agents=2,
            min_samples=0,
            max_samples=5,
        )
        assert (X.shape, agents.shape, W.shape, H.shape) == (
            (5, 3),
            (5,),
            (5, 7),
            (7, 3),
        )

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"n_features": 0}, "n_features=0 should be an integer, 1 or more"),
            ({"n_samples": 20.0}, "n_samples=20.0 should be an integer"),
            ({"n_components": "5"}, "n_components='5' should be an integer"),
            ({"n_agents": True}, "n_agents=True should be an integer"),
            ({"min_samples": -1}, "min_samples=-1 should be an integer, 0 or more"),
            ({"left_mean": 0}, "left_mean=0 must be a positive finite number"),
            ({"right_mean": np.inf}, "right_mean=inf must be a positive finite"),
            ({"right_mean": None}, "right_mean=None must be a positive finite"),
            ({"noise_variance": -1.0}, "noise_variance=-1.0 must be a nonnegative"),
            ({"noise_variance": np.nan}, "noise_variance=nan must be a nonnegative"),
            ({"min_samples": 41}, "min_samples=41 exceeds max_samples=40"),
            ({"n_samples": 401}, "hold 40 to 400 together, not n_samples=401"),
            ({"n_samples": 39}, "hold 40 to 400 together, not n_samples=39"),
        ],
    )
    def test_refusals_carry_the_values(self, parameters, message):
        with pytest.raises(ValueError, match=message):
            make_paper_synthetic(**parameters)


class TestDrawSizes:
    @pytest.mark.parametrize("total", [4, 5, 7])
    def test_all_allowed_sizes_are_equally_likely(self, total):
        allowed = [s for s in product(range(1, 5), repeat=3) if sum(s) == total]
        rng = np.random.RandomState(0)
        counts = dict.fromkeys(allowed, 0)
        for _ in range(200 * len(allowed)):
            counts[tuple(_draw_sizes(total, 3, 1, 4, rng).tolist())] += 1
        assert chisquare(list(counts.values())).pvalue > 0.001

    @given(st.data())
    def test_meets_any_feasible_limits(self, data):
        n_agents = data.draw(st.integers(1, 30))
        least = data.draw(st.integers(0, 10))
        greatest = data.draw(st.integers(least, least + 100))
        total = data.draw(st.integers(n_agents * least, n_agents * greatest))
        rng = np.random.RandomState(0)
        sizes = _draw_sizes(total, n_agents, least, greatest, rng)
        assert sizes.shape == (n_agents,)
        assert sizes.sum() == total
        assert sizes.min() >= least
        assert sizes.max() <= greatest


def write_pgm(path, pixels, header=b"P5\n19 19\n255\n", end=b""):
    path.write_bytes(header + np.asarray(pixels, dtype=np.uint8).tobytes() + end)


@pytest.fixture
def levels():
    return np.random.default_rng(0).integers(0, 256, (3, 361)).astype(np.uint8)


class TestLoadCbclFolder:
    def test_reads_the_images_in_the_order_of_their_names(self, tmp_path, levels):
        for name, image in zip(("b.pgm", "c.PGM", "a.pgm"), levels, strict=True):
            write_pgm(tmp_path / name, image)
        (tmp_path / "readme.txt").write_text("not an image")
        X = load_cbcl(tmp_path)
        assert X.dtype == np.float64
        assert_array_equal(X, levels[[2, 0, 1]] / 255)
        assert_array_equal(load_cbcl(str(tmp_path)), X)

    @pytest.mark.parametrize(
        "header",
        [
            b"P5 19 19 255 ",
            b"P5\r\n19 19\t255\n",
            b"P5\n# made by hand 7\n19 19\n255\n",
        ],
    )
    @pytest.mark.parametrize("first_pixel", [ord("\n"), ord("#"), ord("5")])
    def test_headers(self, tmp_path, levels, header, first_pixel):
        levels[0, 0] = first_pixel
        write_pgm(tmp_path / "a.pgm", levels[0], header)
        assert_array_equal(load_cbcl(tmp_path), levels[:1] / 255)

    def test_line_break_at_the_end(self, tmp_path, levels):
        levels[0, -2:] = ord("\n")
        write_pgm(tmp_path / "a.pgm", levels[0], end=b"\n")
        assert_array_equal(load_cbcl(tmp_path), levels[:1] / 255)

    def test_leeseung(self, tmp_path, levels):
        # Little contrast, so that nothing is clipped and the moments are exact
        # up to rounding down, which takes half a level on average.
        flat = np.full((1, 361), 7, dtype=np.uint8)
        steps = np.arange(361)[None] % 11 + 100
        write_pgm(tmp_path / "a.pgm", steps)
        write_pgm(tmp_path / "b.pgm", flat)
        write_pgm(tmp_path / "c.pgm", levels[0])
        X = load_cbcl(tmp_path, "leeseung")
        assert_array_equal(X, np.rint(X * 255) / 255)
        assert X.min() >= 0
        assert X.max() <= 1
        assert_allclose(X[1], 63 / 255)
        centred = (steps[0] - steps[0].mean()) / steps[0].std(ddof=1)
        expected = np.clip(0.25 + 0.25 * centred, 0, 1)
        assert (expected - X[0] >= -1e-12).all()
        assert (expected - X[0] < 1 / 255).all()

    @pytest.mark.parametrize(
        ("header", "n_pixels", "message"),
        [
            (b"P2\n19 19\n255\n", 361, "a.pgm' is not a binary PGM file"),
            (b"", 361, "a.pgm' is not a binary PGM file"),
            (b"P5\n20 19\n255\n", 380, "has 20 x 19 pixels of levels 0..255; 19 x 19"),
            (b"P5\n19 19\n65535\n", 722, r"levels 0\.\.65535; 19 x 19 of levels"),
            (b"P5\n19 19\n255\n", 360, "holds 360 pixels, not 361"),
            (b"P5\n19 19\n255\n", 362, "holds 362 pixels, not 361"),
        ],
    )
    def test_refusals_name_the_file(self, tmp_path, header, n_pixels, message):
        write_pgm(tmp_path / "a.pgm", np.ones(n_pixels), header)
        with pytest.raises(ValueError, match=message):
            load_cbcl(tmp_path)

    def test_folder_without_images(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"no \.pgm files in folder"):
            load_cbcl(tmp_path)


class TestLoadCbclArchive:
    def test_reads_both_arrays(self, tmp_path, levels):
        path = tmp_path / "faces.npz"
        np.savez(path, X=levels, X_leeseung=levels[::-1])
        assert_array_equal(load_cbcl(path), levels / 255)
        assert_array_equal(load_cbcl(path, "leeseung"), levels[::-1] / 255)

    def test_computes_leeseung_where_it_is_absent(self, tmp_path, levels):
        np.savez(tmp_path / "faces.npz", X=levels)
        for k, image in enumerate(levels):
            write_pgm(tmp_path / f"{k}.pgm", image)
        assert_array_equal(
            load_cbcl(tmp_path / "faces.npz", "leeseung"),
            load_cbcl(tmp_path, "leeseung"),
        )

    @pytest.mark.parametrize(
        ("arrays", "message"),
        [
            ({"faces": np.ones((2, 361))}, "has no array 'X'; it has 'faces'"),
            ({}, "has no array 'X'; it has none"),
            ({"X": np.ones((2, 19, 19))}, r"\(n_images, 361\); it has \(2, 19, 19\)"),
            ({"X": np.ones((361, 2))}, r"\(n_images, 361\); it has \(361, 2\)"),
            ({"X": np.ones((0, 361))}, r"\(n_images, 361\); it has \(0, 361\)"),
            ({"X": np.full((1, 361), -1)}, "levels 0..255; it holds int64 from -1"),
            ({"X": np.full((1, 361), 256.0)}, "it holds float64 from 256.0 to 256.0"),
            ({"X": np.full((1, 361), np.nan)}, "it holds float64 from nan"),
        ],
    )
    def test_refusals(self, tmp_path, arrays, message):
        np.savez(tmp_path / "faces.npz", **arrays)
        with pytest.raises(ValueError, match=message):
            load_cbcl(tmp_path / "faces.npz")

    def test_not_an_archive(self, tmp_path):
        (tmp_path / "text.npz").write_text("faces")
        with pytest.raises(ValueError, match=r"text.npz' is not an \.npz file"):
            load_cbcl(tmp_path / "text.npz")
        (tmp_path / "empty.npz").touch()
        with pytest.raises(ValueError, match=r"empty.npz' is not an \.npz file"):
            load_cbcl(tmp_path / "empty.npz")
        np.save(tmp_path / "faces.npy", np.ones((1, 361)))
        with pytest.raises(ValueError, match="holds a single array"):
            load_cbcl(tmp_path / "faces.npy")

    def test_missing_path(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"no file or folder .*faces\.npz"):
            load_cbcl(tmp_path / "faces.npz")

    def test_unknown_normalisation(self, tmp_path):
        with pytest.raises(ValueError, match="'gray' is not one of 'grey', 'leeseung'"):
            load_cbcl(tmp_path, "gray")


@needs_cbcl
class TestRealCbcl:
    def test_grey(self):
        X = load_cbcl(CBCL)
        assert X.shape == (2429, 361)
        assert (X.min(), X.max()) == (0, 1)

    def test_our_leeseung_is_the_published_one(self, tmp_path):
        with np.load(CBCL) as archive:
            np.savez(tmp_path / "grey.npz", X=archive["X"])
        assert_array_equal(
            load_cbcl(tmp_path / "grey.npz", "leeseung"), load_cbcl(CBCL, "leeseung")
        )
