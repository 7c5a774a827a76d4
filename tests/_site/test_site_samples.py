"""What a site reads of its data sets."""

import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skppdnmf._files.errors import CommandError
from skppdnmf._site.folder import FILE, read_folder
from skppdnmf._site.log import SiteLog
from skppdnmf._site.samples import read_samples

TABLE = "ward,a,b,c\nx,1,2,3\ny,4,5,6\nx,7,8,9\nx,0,1,0\n"


def samples(folder, data, text=TABLE):
    (folder / "t.csv").write_text(text)
    (folder / FILE).write_text(f'name = "s"\n[datasets.t]\nfile = "t.csv"\n{data}')
    return read_samples(read_folder(folder), "t").X


def test_columns_and_rows(tmp_path):
    X = samples(tmp_path, 'columns = ["c", "a"]\nwhere = { ward = "x" }\nrows = "1:3"')
    assert list(X.columns) == ["c", "a"]
    assert_array_equal(X.to_numpy(), [[9, 7], [0, 0]])


def test_dropped_columns(tmp_path):
    X = samples(tmp_path, 'drop = ["ward", "b"]')
    assert list(X.columns) == ["a", "c"]
    assert len(X) == 4


def test_a_matrix(tmp_path):
    X = np.arange(12.0).reshape(4, 3)
    np.save(tmp_path / "m.npy", X)
    (tmp_path / FILE).write_text(
        'name = "s"\n[datasets.m]\nfile = "m.npy"\ncolumns = ["2"]\nrows = ":2"'
    )
    assert_array_equal(read_samples(read_folder(tmp_path), "m").X, X[:2, [2]])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ('drop = ["ward"]\nrows = "2:9"', "is not among the 4 rows"),
        ('drop = ["ward"]\nrows = "two"', 'a range such as "0:500"'),
        ('drop = ["ward"]\ncolumns = ["z"]', "there is no 'z'"),
        ('where = { ward = "none" }', "no rows"),
        ('where = { ward = "x", a = 1 }', "names 2 columns; one is allowed"),
        ("", "columns that are not numeric: 'ward'"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, data, message):
    with pytest.raises(CommandError, match=message):
        samples(tmp_path, data)


def test_missing_files_and_data_sets(tmp_path):
    (tmp_path / FILE).write_text('name = "s"\n[datasets.t]\nfile = "none.csv"')
    folder = read_folder(tmp_path)
    with pytest.raises(CommandError, match="there is no such file"):
        read_samples(folder, "t")
    with pytest.raises(CommandError, match="s has no data set 'u'; it has 't'"):
        read_samples(folder, "u")


def test_a_log_is_only_appended(tmp_path):
    file = tmp_path / "log.jsonl"
    SiteLog(file, site="s").note("one", rows=3)
    SiteLog(file, site="s", run="ab").note("two")
    first, second = map(json.loads, file.read_text().splitlines())
    assert (first["event"], first["rows"], first["site"]) == ("one", 3, "s")
    assert (second["event"], second["run"]) == ("two", "ab")
    assert file.stat().st_mode & 0o077 == 0
