"""What the command line reads from files, and what it says of bad ones."""

import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from _cli_files import matrix, message, write_gzipped
from _cli_runner import refused
from scipy import io, sparse

from skppdnmf._files.samples import read_data
from skppdnmf._files.tables import as_integers, find_column, kind_of, read_labels


def frame():
    """A table with the agents' labels in a column of words, and one of numbers."""
    table = pd.DataFrame(matrix(), columns=list("abcd"))
    table.insert(1, "site", ["north", "south"] * 3 + ["north"])
    table["code"] = [3, 1, 3, 1, 2, 2, 1]
    return table


def test_dense_formats_hold_the_same_numbers(tmp_path):
    X = matrix()
    np.save(tmp_path / "a.npy", X)
    np.savez(tmp_path / "named.npz", X=X, other=np.ones(3))
    np.savez(tmp_path / "single.npz", data_of_mine=X)
    pd.DataFrame(X, columns=list("abcd")).to_csv(tmp_path / "a.csv", index=False)
    pd.DataFrame(X, columns=list("abcd")).to_csv(
        tmp_path / "a.tsv", index=False, sep="\t"
    )
    pd.DataFrame(X, columns=list("abcd")).to_parquet(tmp_path / "a.parquet")
    io.mmwrite(tmp_path / "dense.mtx", X, precision=17)
    write_gzipped(tmp_path / "a.csv.gz", tmp_path / "a.csv")
    write_gzipped(tmp_path / "a.mtx.gz", tmp_path / "dense.mtx")
    for file in sorted(tmp_path.iterdir()):
        data = read_data(file)
        np.testing.assert_array_equal(np.asarray(data.X), X, err_msg=file.name)
        assert data.agents is None
        is_table = "csv" in file.name or file.suffix in (".tsv", ".parquet")
        assert data.is_table == is_table
        if is_table:
            assert list(data.X.columns) == list("abcd")


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.coo_matrix])
def test_sparse_formats_stay_sparse(tmp_path, kind):
    X = matrix()
    sparse.save_npz(tmp_path / "s.npz", kind(X))
    io.mmwrite(tmp_path / "s.mtx", kind(X), precision=17)
    write_gzipped(tmp_path / "s.mtx.gz", tmp_path / "s.mtx")
    for file in tmp_path.iterdir():
        data = read_data(file)
        assert sparse.issparse(data.X)
        assert data.X.format == "csr"
        np.testing.assert_array_equal(data.X.toarray(), X)
        np.testing.assert_array_equal(
            read_data(file, drop=["1", "3"]).X.toarray(), X[:, [0, 2]]
        )


def test_precision_is_kept_as_it_is(tmp_path):
    X = matrix().astype(np.float32)
    np.save(tmp_path / "a.npy", X)
    pd.DataFrame(X, columns=list("abcd")).to_parquet(tmp_path / "a.parquet")
    assert read_data(tmp_path / "a.npy").X.dtype == np.float32
    assert set(read_data(tmp_path / "a.parquet").X.dtypes) == {np.dtype(np.float32)}


def test_nullable_columns_become_floats(tmp_path):
    table = pd.DataFrame({"a": [1, 2], "b": [0.5, 0.25]}).convert_dtypes()
    table.to_parquet(tmp_path / "a.parquet")
    X = read_data(tmp_path / "a.parquet").X
    assert set(X.dtypes) == {np.dtype(np.float64)}
    np.testing.assert_array_equal(X.to_numpy(), [[1, 0.5], [2, 0.25]])


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_column_of_agents_is_no_feature(tmp_path, suffix):
    file = tmp_path / f"a.{suffix}"
    table = frame()
    if suffix == "csv":
        table.to_csv(file, index=False)
    else:
        table.to_parquet(file)
    for agents in ("site", "1"):
        data = read_data(file, agents, drop=["code"])
        assert list(data.X.columns) == list("abcd")
        assert data.agents == table["site"].tolist()
        assert data.agents[0] == "north"
    by_code = read_data(file, "code", drop=["site"])
    assert by_code.agents == [3, 1, 3, 1, 2, 2, 1]
    assert all(type(label) is int for label in by_code.agents)
    np.testing.assert_array_equal(by_code.X.to_numpy(), matrix())


def test_the_column_of_agents_of_an_array(tmp_path):
    X = np.column_stack([matrix(), [0, 1, 1, 0, 2, 2, 0]])
    np.save(tmp_path / "a.npy", X)
    data = read_data(tmp_path / "a.npy", "4")
    assert data.agents == [0, 1, 1, 0, 2, 2, 0]
    assert all(type(label) is int for label in data.agents)
    np.testing.assert_array_equal(data.X, X[:, :-1])


def test_a_file_of_agents(tmp_path):
    np.save(tmp_path / "X.npy", matrix())
    labels = ["b", "a", "b", "a", "c", "c", "a"]
    (tmp_path / "words").write_text("\n".join(labels) + "\n")
    (tmp_path / "dos.txt").write_bytes("\r\n".join(labels).encode("utf-8-sig"))
    np.save(tmp_path / "words.npy", np.array(labels))
    for name in ("words", "dos.txt", "words.npy"):
        assert read_data(tmp_path / "X.npy", str(tmp_path / name)).agents == labels
    (tmp_path / "numbers").write_text("2\n10\n-1\n")
    assert read_labels(tmp_path / "numbers") == [2, 10, -1]
    np.save(tmp_path / "numbers.npy", np.array([2, 10]))
    assert read_labels(tmp_path / "numbers.npy") == [2, 10]


def test_a_column_goes_before_a_file_of_the_same_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame().to_csv("a.csv", index=False)
    Path("site").write_text("x\n" * 7)
    assert read_data(Path("a.csv"), "site", ["code"]).agents[0] == "north"


def test_find_column():
    assert find_column(["a", "3", "b"], "3") == 1
    assert find_column(["a", "b", "c"], "2") == 2
    assert find_column(["a", "-1", "b"], "-1") == 1
    assert find_column([0, 1, 2], "1") == 1
    for missing in ("2", "-1", "-2", "-0", "x", ""):
        assert find_column(["a", "b"], missing) is None


def test_labels_that_would_be_written_otherwise_stay_words():
    assert as_integers(["007", "8"]) == ["007", "8"]
    assert as_integers(["-0", "8"]) == ["-0", "8"]
    assert as_integers(["0", "-8"]) == [0, -8]


@pytest.mark.parametrize(
    ("first", "n_rows", "names"),
    [
        ("0.5,0.25", 2, None),  # numbers are data
        ("0,1", 1, ["0", "1"]),  # unless they count the columns
        ("1,2", 1, ["1", "2"]),
        ("a,1", 1, ["a", "1"]),
        ("NA,None", 1, ["NA", "None"]),
        ("5", 2, None),
        ("0", 2, None),
    ],
)
def test_a_first_line_of_numbers(tmp_path, first, n_rows, names):
    width = first.count(",") + 1
    (tmp_path / "a.csv").write_text(first + "\n" + ",".join(["3"] * width) + "\n")
    X = read_data(tmp_path / "a.csv").X
    assert X.shape == (n_rows, width)
    assert (list(X.columns) if hasattr(X, "columns") else None) == names


def test_header_and_no_header(tmp_path):
    (tmp_path / "a.csv").write_text("0.5,7\n3,4\n")
    (tmp_path / "b.csv").write_text("0,1\n3,4\n")
    X = read_data(tmp_path / "a.csv", header=True).X
    assert list(X.columns) == ["0.5", "7"]
    np.testing.assert_array_equal(X.to_numpy(), [[3, 4]])
    np.testing.assert_array_equal(
        read_data(tmp_path / "b.csv", header=False).X, [[0, 1], [3, 4]]
    )
    np.save(tmp_path / "a.npy", matrix())
    assert "--no-header are for" in message(read_data, tmp_path / "a.npy", header=False)


BAD_TEXTS = {
    "a,b\n1,x\n2,y\n": "not numeric: 'b' ('x' in row 0); leave them out with --drop",
    "a,b\n1,2\n2,3 4\n": "not numeric: 'b' ('3 4' in row 1)",
    "a,b\n1,2\n3,-4\n-5,1\n": "negative entries, rows counted from 0: "
    "-4 (row 1, column 'b'), -5 (row 2, column 'a')",
    "a,b\n1,\n3,4\n": "missing or infinite, rows counted from 0: nan (row 0, "
    "column 'b')",
    "a,b\n1,2\n3\n": "nan (row 1, column 'b')",
    "a,b\n1,inf\n": "inf (row 0, column 'b')",
    "a,b\n1,2,3\n": "cannot be read: ",
    "a,b\n1,2\n1,2,3\n": "cannot be read: ",
    "a,a\n1,2\n": "names columns twice: 'a'",
    ",a\n0,2\n1,3\n": "column 0 has no name; if it holds row numbers leave it out with "
    "--drop 0",
    "a,b\n": "holds no rows of data",
    "": "cannot be read: ",
    "\n\n": "cannot be read: ",
}


@pytest.mark.parametrize("text", BAD_TEXTS)
def test_bad_tables(tmp_path, text):
    file = tmp_path / "a.csv"
    file.write_text(text)
    # Pandas says by a warning that it loses fields; the command line shows none.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = message(read_data, file)
    assert found.startswith(f"{file}: ")
    assert BAD_TEXTS[text] in found


def test_row_numbers_can_be_dropped(tmp_path):
    (tmp_path / "a.csv").write_text(",a\n0,2\n1,3\n")
    X = read_data(tmp_path / "a.csv", drop=["0"]).X
    assert list(X.columns) == ["a"]


def test_many_faults_are_counted(tmp_path):
    np.save(tmp_path / "a.npy", -np.ones((3, 3)))
    assert message(read_data, tmp_path / "a.npy").endswith(
        "-1 (row 1, column 1) and 4 more"
    )


def test_faults_of_sparse_entries_are_found(tmp_path):
    X = sparse.coo_matrix(([1.0, -2.0, 3.0], ([0, 2, 2], [1, 0, 3])), shape=(4, 5))
    io.mmwrite(tmp_path / "s.mtx", X)
    assert "negative entries, rows counted from 0: -2 (row 2, column 0)" in message(
        read_data, tmp_path / "s.mtx"
    )
    X.data[2] = np.nan
    sparse.save_npz(tmp_path / "s.npz", X.tocsr())
    # Columns keep the numbers that they have in the file.
    assert "nan (row 2, column 3)" in message(read_data, tmp_path / "s.npz", drop=["0"])


def bad_arrays(folder):
    """Files that hold no matrix of real numbers, and what is said of them."""
    np.save(folder / "flat.npy", np.ones(3))
    yield "flat.npy", "should hold a matrix; its array has shape (3,)"
    np.save(folder / "words.npy", np.array([["a"]]))
    yield "words.npy", "should hold real numbers, not <U1"
    np.save(folder / "complex.npy", np.ones((2, 2), dtype=complex))
    yield "complex.npy", "should hold real numbers, not complex128"
    np.save(folder / "objects.npy", np.array([[None]]), allow_pickle=True)
    yield "objects.npy", "cannot be read: Object arrays cannot be loaded"
    np.save(folder / "empty.npy", np.ones((0, 3)))
    yield "empty.npy", "holds no rows of data"
    (folder / "broken.npy").write_bytes(b"\x93NUMPY")
    yield "broken.npy", "cannot be read: "
    np.savez(folder / "two.npz", first=np.ones((2, 2)), second=np.ones((2, 2)))
    yield "two.npz", "its arrays: 'first', 'second'"
    (folder / "broken.npz").write_bytes(b"nothing")
    yield "broken.npz", "is not an .npz file"
    (folder / "broken.mtx").write_text("nothing\nof the kind\n")
    yield "broken.mtx", "cannot be read: "
    (folder / "broken.parquet").write_bytes(b"nothing")
    yield "broken.parquet", "cannot be read: "
    (folder / "broken.csv").write_bytes(b"a,b\n\xff\xfe,1\n")
    yield "broken.csv", "cannot be read: "
    (folder / "picture.png").write_bytes(b"")
    yield "picture.png", "unknown format; the name should end in .csv, .csv.gz"


def test_bad_files(tmp_path):
    for name, expected in bad_arrays(tmp_path):
        found = message(read_data, tmp_path / name)
        assert found.startswith(f"{tmp_path / name}: "), name
        assert expected in found, name


@pytest.mark.parametrize("argument", ["FILE", "--adjacency", "--init"])
def test_files_that_are_none(tmp_path, monkeypatch, argument):
    file = tmp_path / "a.npy"
    np.save(file, matrix())

    def refusal(path):
        given = () if argument == "FILE" else (file, argument)
        found = refused("fit", *given, path)
        assert found.startswith(f"Invalid value for '{argument}': ")
        return found

    absent, folder = tmp_path / "x.npy", tmp_path / "y.npy"
    folder.mkdir()
    assert f"File '{absent}' does not exist." in refusal(absent)
    assert f"File '{folder}' is a directory." in refusal(folder)
    if os.name == "posix":
        assert "'/dev/null' is not a regular file." in refusal("/dev/null")
    # Tests may run as a user whom permissions do not concern.
    unreadable = tmp_path / "b.npy"
    np.save(unreadable, matrix())
    monkeypatch.setattr(os, "access", lambda path, mode: path != str(unreadable))
    # Click 8.1.0 says that it is not executable.
    assert f"File '{unreadable}' is not " in refusal(unreadable)


def test_bad_columns_and_labels(tmp_path):
    table, array, scarce = tmp_path / "a.csv", tmp_path / "a.npy", tmp_path / "a.mtx"
    frame().to_csv(table, index=False)
    np.save(array, matrix())
    io.mmwrite(scarce, sparse.coo_matrix(matrix()))
    few = tmp_path / "few"
    few.write_text("a\nb\n")
    assert message(read_data, table, "sites") == (
        f"--agents sites: {table} has no such column; it has 'a', 'site', 'b', 'c', "
        "'d' and 1 more; nor is there such a file"
    )
    assert "they are numbered 0 to 3; nor is there" in message(read_data, array, "4")
    for number in ("-1", "-4"):
        assert message(read_data, array, None, [number]) == (
            f"--drop {number}: {array} has no such column; columns are numbered 0 to "
            "3, not from the end"
        )
    assert message(read_data, table, "-1") == (
        f"--agents -1: {table} has no such column; columns are numbered 0 to 5, not "
        "from the end; nor is there such a file"
    )
    assert f"--drop x: {table} has no such column" in message(
        read_data, table, "site", ["x"]
    )
    assert f"{scarce} is sparse" in message(read_data, scarce, "0")
    assert message(read_data, array, str(few)) == (
        f"{few}: has 2 labels, but {array} has 7 samples"
    )
    assert "for 3 agents give --partition 3" in message(read_data, array, "3")
    whole = tmp_path / "whole.npy"
    np.save(whole, np.arange(8.0).reshape(2, 4))
    assert "no column is left" in message(read_data, whole, "3", ["0", "1", "2"])


def test_bad_files_of_labels(tmp_path):
    np.save(tmp_path / "X.npy", matrix())
    (tmp_path / "gap").write_text("a\n\nb\n \nc\nd\ne\n")
    assert "no label in line 2, 4" in message(read_labels, tmp_path / "gap")
    np.save(tmp_path / "square.npy", np.ones((2, 2)))
    assert "shape (2, 2)" in message(read_labels, tmp_path / "square.npy")
    np.save(tmp_path / "objects.npy", np.array([None]), allow_pickle=True)
    assert "cannot be read" in message(read_labels, tmp_path / "objects.npy")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\n")
    assert "cannot be read" in message(read_labels, tmp_path / "binary")
    (tmp_path / "folder").mkdir()
    assert "cannot be read" in message(read_labels, tmp_path / "folder")
    assert "nor is there such a file" in message(
        read_data, tmp_path / "X.npy", str(tmp_path / "folder")
    )


def test_missing_labels_are_named(tmp_path):
    (tmp_path / "a.csv").write_text("a,site\n1,x\n2,\n3,y\n4,\n")
    assert "the label is missing in row 1, 3 of" in message(
        read_data, tmp_path / "a.csv", "site"
    )


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.parquet"])
def test_tables_need_pandas(tmp_path, monkeypatch, name):
    (tmp_path / name).write_text("a\n1\n")
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert 'pip install "skppdnmf[graph]"' in message(read_data, tmp_path / name)


def test_parquet_needs_an_engine(tmp_path, monkeypatch):
    (tmp_path / "a.parquet").write_text("")

    def read(path):
        raise ImportError("Unable to find a usable engine")

    monkeypatch.setattr(pd, "read_parquet", read)
    assert message(read_data, tmp_path / "a.parquet").endswith("pip install pyarrow")


def test_kinds():
    names = {"A.NPY": "npy", "x.csv.gz": "csv", "x.y.mtx.gz": "mtx", "p.pq": "parquet"}
    assert {name: kind_of(Path(name)) for name in names} == names
    for unknown in ("x.gz", "npy", "x.npy.gz"):
        assert "unknown format" in message(kind_of, Path(unknown))


def test_labels_in_a_table_are_as_written(tmp_path):
    table = tmp_path / "sites.csv"
    table.write_text("site,a,b\n007,1,2\n7,3,4\n07,2,2\nNA,1,3\n Oslo ,4,1\nOslo,1,1\n")
    labels = read_data(table, "site").agents
    assert labels == ["007", "7", "07", "NA", "Oslo", "Oslo"]
    table.write_text("site,a\n8,1\n,2\n")
    assert "the label is missing in row 1" in message(read_data, table, "site")
