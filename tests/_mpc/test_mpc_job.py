"""The file that all sites of a computation on shares have agreed upon."""

import pytest

from skppdnmf._files.errors import CommandError
from skppdnmf._mpc.job import read_job

GIVEN = {
    "name": '"run"',
    "dataset": '"cohort"',
    "n_components": "3",
    "parties": '["a", "b", "c"]',
}
SITES = '[sites]\na = "one:9300"\nb = "two:9300"\nc = "three:9300"\n'


def job_of(tmp_path, **given):
    """Read a job with other values; None leaves a key out."""
    path = tmp_path / "job.toml"
    values = {key: value for key, value in {**GIVEN, **given}.items() if value}
    lines = "".join(f"{key} = {value}\n" for key, value in values.items())
    path.write_text(lines + SITES)
    return read_job(path)


def test_known_components_are_rows(tmp_path):
    job = job_of(tmp_path, fixed_components="[[1.0, 0, 2], [0.5, 1, 0]]")
    assert job.fixed_components == [[1.0, 0, 2], [0.5, 1, 0]]
    assert job_of(tmp_path).fixed_components is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"fixed_components": "[[1.0], [1.0, 2.0]]"}, "fixed_components should be"),
        ({"fixed_components": "[[-1.0]]"}, "fixed_components should be"),
        ({"fixed_components": "[]"}, "fixed_components should be"),
        ({"fixed_components": "[[1]]", "alpha_W": "0.1"}, "do not go with alpha_W"),
        ({"fixed_components": "[[1]]", "alpha_H": "0.1"}, "do not go with alpha_W"),
        ({"parties": '["a", "b", "b"]'}, "should be 3 different sites"),
        ({"parties": '["a", "b", "x"]'}, "should be 3 different sites"),
        ({"n_components": "0"}, "n_components should be an integer of at least 1"),
        ({"n_components": "true"}, "n_components should be an integer of at least 1"),
        ({"n_components": None}, "there is no n_components"),
        ({"epsilon": "1.0"}, "unknown key 'epsilon'"),
        ({"timeout": "0"}, "timeout should be a number of at least 1"),
        ({"name": '"../up"'}, "name should be a name"),
    ],
)
def test_what_cannot_be_run_is_refused_by_name(tmp_path, given, message):
    with pytest.raises(CommandError, match=message):
        job_of(tmp_path, **given)


def test_known_components_without_a_penalty_that_counts(tmp_path):
    given = {"fixed_components": "[[1]]", "alpha_W": "0.0", "alpha_H": '"same"'}
    assert job_of(tmp_path, **given).fixed_components == [[1]]
