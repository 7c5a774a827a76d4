"""Matrices that are values of options: the start and the graph."""

import numpy as np
import pytest
from _cli_files import matrix, message, write_gzipped
from scipy import io, sparse

from skppdnmf._files.tables import read_adjacency, read_numbers


def test_numbers_of_an_option(tmp_path):
    X = matrix(3, 3)
    np.save(tmp_path / "a.npy", X)
    io.mmwrite(tmp_path / "s.mtx", sparse.coo_matrix(X), precision=17)
    text = "\n".join(",".join(map(repr, row)) for row in X.tolist())
    (tmp_path / "plain.csv").write_text(text)
    (tmp_path / "named.csv").write_text("a,b,c\n" + text + "\n\n")
    (tmp_path / "plain.tsv").write_text(text.replace(",", "\t"))
    write_gzipped(tmp_path / "plain.csv.gz", tmp_path / "plain.csv")
    for file in tmp_path.iterdir():
        found = read_numbers(file)
        assert isinstance(found, np.ndarray)
        np.testing.assert_array_equal(found, X, err_msg=file.name)


@pytest.mark.parametrize("labels", [["a", "b", "c"], [10, 20, 30]])
def test_labels_of_a_graph(tmp_path, labels):
    path = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    for corner, name in (("", "a.csv"), ("agent", "b.csv")):
        rows = [[corner, *labels]]
        rows += [[label, *row] for label, row in zip(labels, path, strict=True)]
        (tmp_path / name).write_text("\n".join(",".join(map(str, row)) for row in rows))
        found = read_adjacency(tmp_path / name)
        assert found.index.tolist() == found.columns.tolist() == labels
        np.testing.assert_array_equal(found.to_numpy(), path)
    (tmp_path / "c.csv").write_text(",x,y,z\nz,0,1,1\ny,1,0,0\nx,0,1,0\n")
    found = read_adjacency(tmp_path / "c.csv")
    assert (found.index.tolist(), found.columns.tolist()) == (
        ["z", "y", "x"],
        ["x", "y", "z"],
    )
    assert found.loc["z"].tolist() == [0, 1, 1]
    np.save(tmp_path / "a.npy", path)
    np.testing.assert_array_equal(read_adjacency(tmp_path / "a.npy"), path)
    (tmp_path / "plain.csv").write_text("0,1,0\n1,0,1\n0,1,0\n")
    np.testing.assert_array_equal(read_adjacency(tmp_path / "plain.csv"), path)


def test_bad_matrices_of_options(tmp_path):
    for name, text, expected in (
        ("words.csv", ",a,b\na,0,x\nb,1,0\n", "is not a matrix of numbers"),
        ("ragged.csv", "1,2\n\n3\n", "row 1 has 1 cells, but row 0 has 2"),
        ("empty.csv", "\n", "is empty"),
        ("header.csv", "a,b\n", "holds no rows of numbers"),
        ("narrow.csv", "a\nb\n", "holds no rows of numbers"),
        ("a.parquet", "", "is not read from Parquet"),
        ("a.csv.gz", "no gzip", "cannot be read"),
    ):
        (tmp_path / name).write_text(text)
        assert expected in message(read_adjacency, tmp_path / name), name
    assert "is not a matrix" in message(read_numbers, tmp_path / "words.csv")
