"""Formulas, records, layers and statements on other libraries in the pages."""

import ast
import importlib.util
import re
import subprocess
import sys

import numpy as np
import pytest
from _pages import DOCS, ROOT, blocks, pages
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import shortest_path
from sklearn.decomposition import NMF, MiniBatchNMF
from sklearn.utils import get_tags

from skppdnmf import PrivateDistributedNMF, estimate_cost
from skppdnmf._data.graph import make_network
from skppdnmf._fit.seeds import common_start, draw_seeds


@pytest.fixture(scope="module")
def formulas():
    """What the page on costs defines."""
    namespace = {}
    for info, text, before in blocks(DOCS / "user_guide" / "cost.md"):
        if info == "python" and before == "<!-- run -->":
            exec(compile(text, "cost.md", "exec"), namespace)
    return namespace


@pytest.mark.parametrize("adjacency", ["path", "random", "complete", "star"])
@pytest.mark.parametrize("masking", ["entrywise", "scalar"])
@pytest.mark.parametrize(
    ("parameters", "n_averages"),
    [
        ({}, 2),
        ({"penalty_scaling": "absolute"}, 0),
        ({"alpha_W": 0.1}, 3),
        ({"alpha_W": 0.1, "alpha_H": 0.0}, 2),
        ({"key_size": 100, "n_max": 10**4}, 2),
        ({"key_size": 3072, "max_admm_iter": 2}, 2),
    ],
)
def test_formulas_are_those_of_the_estimate(
    formulas, adjacency, masking, parameters, n_averages
):
    estimator = PrivateDistributedNMF(
        3,
        adjacency=adjacency,
        partition=6,
        masking=masking,
        max_iter=7,
        random_state=0,
        **parameters,
    )
    # Counts alone: the calibration would take seconds.
    estimate = estimate_cost(estimator.set_params(encryption="simulated"), 13)
    seeds = draw_seeds(0)
    network = make_network(adjacency, 6, seeds.graph)
    start = common_start("random", 3, 13, seeds.start, estimator.penalty_scaling)
    counted = formulas["cost"](
        np.asarray(network.adjacency, dtype=int),
        start.max(),
        V=39,
        X=7 * estimator.max_admm_iter,
        n=estimator.key_size,
        n_max=estimator.n_max,
        masking=masking,
        A=n_averages,
        D=int(network.eccentricities.min()),
    )
    assert counted == (estimate.ciphertexts, estimate.bytes, estimate.exponentiations)


@pytest.mark.parametrize("adjacency", ["path", "random", "star"])
@pytest.mark.parametrize("n_init", [1, 3, 5])
@pytest.mark.parametrize("max_iter", [1, 7, 40, 100])
@pytest.mark.parametrize("penalised", [False, True])
def test_formula_of_the_secure_sum(formulas, adjacency, n_init, max_iter, penalised):
    estimator = PrivateDistributedNMF(
        3,
        adjacency=adjacency,
        partition=6,
        protocol="secure-sum",
        n_init=n_init,
        max_iter=max_iter,
        alpha_W=0.1 if penalised else 0.0,
        l1_ratio=0.5,
        random_state=0,
    )
    network = make_network(adjacency, 6, draw_seeds(0).graph)
    root = int(np.argmin(network.eccentricities))
    hops = shortest_path(np.asarray(network.adjacency, dtype=float), unweighted=True)
    counted = formulas["secure_sum_bytes"](
        hops[root].astype(int).tolist(), 3, 13, max_iter, n_init, penalised
    )
    assert counted == estimate_cost(estimator, 13).bytes


def test_formula_of_the_secure_sum_on_a_fit(formulas):
    X = np.random.default_rng(0).random((30, 13))
    estimator = PrivateDistributedNMF(
        3, partition=5, adjacency="star", protocol="secure-sum", max_iter=9, tol=0,
        n_init=2, random_state=0,
    ).fit(X)  # fmt: skip
    counted = formulas["secure_sum_bytes"]([0, 1, 1, 1, 1], 3, 13, 9, 2)
    assert counted == estimator.traffic_["bytes"]


def test_bytes_without_encryption(formulas):
    estimator = PrivateDistributedNMF(
        3, partition=5, adjacency="ring", encryption=None, max_iter=4, random_state=0
    )
    estimate = estimate_cost(estimator, 13)
    ring = make_network("ring", 5)
    rounds = formulas["rounds_of_averaging"](ring.adjacency.astype(int))
    message = 100 + 8 * 39
    expected = 20 * 10 * 2 * message + 2 * rounds * 10 * 2 * (100 + 16)
    expected += 2 * 56 * 2 * 10
    assert (estimate.ciphertexts, estimate.bytes) == (0, expected)


def test_formulas_in_tex_and_python_have_the_same_constants():
    """The constants of the displayed formulas are those of the function."""
    text = (DOCS / "user_guide" / "cost.md").read_text(encoding="utf-8")
    displayed = " ".join(re.findall(r"\$\$(.*?)\$\$", text, re.DOTALL))
    function = text[text.index("def cost(") : text.index("ring = ")]
    for constant in ("200", "56", "57"):
        assert re.search(rf"\b{constant}\b", displayed), constant
        assert re.search(rf"\b{constant}\b", function), constant


def recorded():
    """Names of the benchmarks that the pages show."""
    return sorted(
        {
            info.split()[1]
            for page in pages()
            for info, _, _ in blocks(page)
            if info.startswith("{recorded}")
        }
    )


@pytest.mark.parametrize("name", recorded())
def test_recorded_benchmarks_are_scripts_and_say_where_they_ran(name):
    assert (ROOT / "benchmarks" / f"{name}.py").is_file()
    file = DOCS / "benchmarks" / f"{name}.txt"
    if not file.exists():
        pytest.skip(f"{name} is not recorded")
    lines = file.read_text(encoding="utf-8").split("\n")
    assert lines[0].startswith(f"$ python benchmarks/{name}.py")
    keys = [line.split()[0] for line in lines[1:6]]
    assert keys == ["date", "processor", "system", "python", "skppdnmf"]
    assert re.fullmatch(r"date\s+\d{4}-\d\d-\d\d", lines[1])
    assert not re.search(r"(^|\s)/(home|root|tmp|work|usr)/", "\n".join(lines))


def test_every_record_is_shown():
    files = {file.stem for file in (DOCS / "benchmarks").glob("*.txt")}
    assert files <= set(recorded())


@pytest.fixture
def collector(tmp_path, monkeypatch):
    """`benchmarks/collect.py` over a project with two tiny benchmarks."""
    spec = importlib.util.spec_from_file_location(
        "collect", ROOT / "benchmarks" / "collect.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (tmp_path / "benchmarks").mkdir()
    monkeypatch.setattr(module, "ROOT", tmp_path)
    write = {
        "bench_good": "import sys\nfrom pathlib import Path\n"
        "print('arguments', sys.argv[1:])\nprint(Path(__file__).resolve())\n",
        "bench_bad": "print('half')\nraise SystemExit(3)\n",
    }
    for name, text in write.items():
        (tmp_path / "benchmarks" / f"{name}.py").write_text(text)
    return module


def test_collector_writes_machine_and_output(collector, tmp_path):
    file = collector.collect("bench_good", ["--quick"], tmp_path / "out")
    lines = file.read_text(encoding="utf-8").split("\n")
    assert file.name == "bench_good.txt"
    assert lines[0] == "$ python benchmarks/bench_good.py --quick"
    assert re.fullmatch(r"date\s+\d{4}-\d\d-\d\d", lines[1])
    assert re.fullmatch(r"processor .+, \d+ cores", lines[2])
    assert "numpy" in lines[4]
    assert lines[6:] == ["", "arguments ['--quick']", "benchmarks/bench_good.py", ""]
    assert str(tmp_path) not in file.read_text(encoding="utf-8")


def test_collector_keeps_the_old_record_of_a_benchmark_that_fails(collector, tmp_path):
    old = tmp_path / "out" / "bench_bad.txt"
    old.parent.mkdir()
    old.write_text("old")
    with pytest.raises(subprocess.CalledProcessError):
        collector.collect("bench_bad", target=old.parent)
    assert old.read_text() == "old"
    with pytest.raises(ValueError, match=r"no benchmark 'bench_x'.*bench_bad"):
        collector.collect("bench_x")


def test_collector_on_the_command_line(collector, monkeypatch, tmp_path, capfd):
    monkeypatch.setattr(sys, "argv", ["collect.py", "bench_bad"])
    assert collector.main() == 1
    assert "failed with exit code 3" in capfd.readouterr().err
    monkeypatch.setattr(sys, "argv", ["collect.py"])
    with pytest.raises(SystemExit) as stopped:
        collector.main()
    assert stopped.value.code == 2
    assert "name a benchmark" in capfd.readouterr().err


def test_statements_on_scikit_learn():
    """What the comparison says of NMF and MiniBatchNMF."""
    for estimator in (NMF(), MiniBatchNMF()):
        parameters = estimator.get_params()
        assert {"alpha_W", "alpha_H", "l1_ratio", "beta_loss"} <= set(parameters)
        # A tag of scikit-learn 1.6 says otherwise.
        X = csr_matrix(np.random.default_rng(0).random((12, 5)) > 0.5, dtype=float)
        estimator.set_params(n_components=2, tol=0.1).fit(X)
        assert not get_tags(estimator).array_api_support
        assert not hasattr(estimator, "score")
        losses = estimator._parameter_constraints["beta_loss"][0].options
        assert losses == {"frobenius", "kullback-leibler", "itakura-saito"}
    assert not hasattr(NMF, "partial_fit")
    assert hasattr(MiniBatchNMF, "partial_fit")
    ours = PrivateDistributedNMF()
    assert {"alpha_W", "alpha_H", "l1_ratio"} <= set(ours.get_params())
    assert get_tags(ours).input_tags.sparse
    assert hasattr(ours, "score")
    assert hasattr(type(ours)(protocol="secure-sum"), "partial_fit")


def layers():
    """The layer of each room that the page for contributors lists, from the top."""
    text = (DOCS / "contributing.md").read_text(encoding="utf-8")
    table = text[text.index("| layer | rooms |") :].split("\n\n")[0].split("\n")[2:]
    return {
        name: place
        for place, row in enumerate(table)
        for name in re.findall(r"`(\w+)`", row.split("|")[2])
    }


def imported(file):
    """Modules and folders of the package that a file imports, at its top level."""
    package = ROOT / "skppdnmf"
    folder = file.parent.relative_to(package).parts
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom):
            continue
        path = [*(node.module or "").split(".")] if node.module else []
        if node.level:
            path = [*folder[: len(folder) + 1 - node.level], *path]
        elif path[:1] == ["skppdnmf"]:
            path = path[1:]
        else:
            continue
        yield from path[:1] or [alias.name for alias in node.names]


def test_modules_import_from_layers_below():
    place = layers()
    package = ROOT / "skppdnmf"
    rooms = {file.name.removesuffix(".py") for file in package.iterdir()}
    assert rooms - {"__init__", "__pycache__", "_version", "py.typed"} == set(place)
    wrong = []
    for file in sorted((ROOT / "skppdnmf").rglob("*.py")):
        own = file.relative_to(ROOT / "skppdnmf").parts[0].removesuffix(".py")
        wrong += [
            f"{own} imports {name}"
            for name in imported(file)
            if own in place and name in place and place[name] < place[own]
        ]
    assert not wrong


def test_imports_are_found():
    found = set(imported(ROOT / "skppdnmf" / "_estimator.py"))
    assert {"_fit", "_data", "_nmf"} <= found
    assert "exceptions" in set(imported(ROOT / "skppdnmf" / "_paillier" / "keys.py"))


def cells_of(name):
    """Numbers of a row of the table of protocols, column by column."""
    text = (DOCS / "user_guide" / "protocols.md").read_text(encoding="utf-8")
    row = next(line for line in text.splitlines() if line.startswith(f"| {name}"))
    bare = re.sub(r"\([^)]*\)|`[^`]*`|(?<=\d),(?=\d)", "", row)
    columns = bare.strip("| ").split("|")
    return [re.findall(r"\d+(?:\.\d+)?", column) for column in columns]


def record_of(name):
    """The lines of a recorded benchmark."""
    file = DOCS / "benchmarks" / f"{name}.txt"
    return file.read_text(encoding="utf-8").splitlines()


def row_of(lines, *words):
    """The first line that has all the words."""
    return next(line for line in lines if all(word in line for word in words))


def test_the_table_of_protocols_has_the_recorded_figures():
    """Where people decide, no figure is another than its script has printed."""
    found = record_of("bench_membership")
    _, consensus, summed, _, shares = cells_of("membership of one candidate")
    places = found.index(row_of(found, "A single candidate"))
    for k, pool in enumerate(("100 ", "500 ")):
        rows = [line for line in found[places:] if line.strip().startswith(pool)]
        one = row_of(rows, "n_init=1 ")
        assert row_of(rows, "consensus ").split()[2] == consensus[k]
        assert one.split()[2] == summed[k]
        assert re.findall(r"\d\.\d\d", one)[6] == shares[k]
    most = row_of(record_of("bench_privacy"), "   2000  ", "(0.694)")
    assert cells_of("membership of one")[3][0] in most
    _, consensus, summed, noisy, shares = cells_of("error over that of NMF")
    accuracy = record_of("bench_accuracy")
    for k, exchanges in ((0, "300"), (2, "900")):
        row = row_of(accuracy, "digits, even", f" {exchanges} ")
        assert row.split()[3] == consensus[k]
    sums = row_of(record_of("bench_protocols"), "digits, K=10", "60 exchanges")
    assert f"median {summed[0]}" in sums
    private = record_of("bench_privacy")
    for k, size in enumerate((" 2000 ", " 5000 ", " 16000 ")):
        row = next(line for line in private if re.match(rf"\s*{size.strip()} ", line))
        assert re.findall(r"\d\.\d{3}", row)[3] == noisy[k]
    _, consensus, summed, _, seconds = cells_of("cost on one machine")
    costs = record_of("bench_protocols")
    row = row_of(costs, "consensus, Paillier, entrywise").split()
    assert consensus[:2] == [f"{float(row[-1]):.0f}", f"{float(row[-2]):.0f}"]
    row = row_of(costs, "secure sum, 60 exchanges").split()
    assert summed[:2] == [f"{float(row[-1]):.1f}", f"{float(row[-2]):.0f}"]
    fit = row_of(record_of("bench_mpc"), "digits, 500   ", "  1   ").split()
    assert (shares[0], seconds[0]) == (fit[4], fit[5])
