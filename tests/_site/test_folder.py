"""A site's `skppdnmf.toml`: what is read, and what is refused by name."""

import pytest

from skppdnmf._files.errors import CommandError
from skppdnmf._site.folder import FILE, read_folder
from skppdnmf._site.policy import DataSet, Policy

WHOLE = """
name = "site-1"
identity = "keys/identity.pem"

[roster]
site-2 = "ed25519:AAAA"

[datasets.cohort]
file = "cohort.csv"
drop = ["id"]
header = true
rows = "0:50"
where = { ward = 3 }

[policy]
protocols = ["secure-sum", "consensus"]
min_sites = 4
min_other_samples_per_component = 25
components_to_submitter = true
"""


def write(folder, text):
    (folder / FILE).write_text(text)
    return folder


def test_every_key_is_read(tmp_path):
    site = read_folder(write(tmp_path, WHOLE))
    assert site.name == "site-1"
    assert site.identity == tmp_path.resolve() / "keys" / "identity.pem"
    assert site.roster == {"site-2": "ed25519:AAAA"}
    assert site.datasets["cohort"] == DataSet(
        "cohort.csv", drop=("id",), header=True, rows="0:50", where={"ward": 3}
    )
    assert site.policy == Policy(
        protocols=("secure-sum", "consensus"),
        min_sites=4,
        min_other_samples_per_component=25.0,
        components_to_submitter=True,
    )
    assert read_folder(tmp_path / FILE) == site


def test_what_is_not_said_is_cautious(tmp_path):
    site = read_folder(write(tmp_path, 'name = "a"'))
    policy = site.policy
    assert policy.protocols == ("secure-sum",)
    assert policy.min_sites == 3
    assert not policy.components_to_submitter
    assert not policy.unprotected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "name should be a text, not None"),
        ('name = "a"\nidentiy = "x"', r"unknown key 'identiy'; known are name, identi"),
        ('name = "a"\n[policy]\nmin_site = 3', r"\[policy\]: unknown key 'min_site'"),
        ('name = "a"\n[policy]\nmin_sites = -1', "policy.min_sites should be an integ"),
        ('name = "a"\n[policy]\nmin_sites = true', "should be an integer.*not True"),
        ('name = "a"\n[policy]\nmax_components = 2.5', "should be an integer"),
        ('name = "a"\n[policy]\nprotocols = "x"', "should be a list of texts, not 'x'"),
        ('name = "a"\n[policy]\nunprotected = 1', "should be true or false, not 1"),
        ('name = "a"\n[datasets.c]\nrows = "1:2"', r"\[datasets.c\] has no file"),
        ('name = "a"\n[datasets]\nc = 3', "datasets.c should be a table, not 3"),
        ('name = "a"\n[roster]\nb = 3', "roster.b should be a text, not 3"),
        ('name = "a', "cannot be read"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, text, message):
    with pytest.raises(CommandError, match=message):
        read_folder(write(tmp_path, text))


def test_no_folder_says_how_to_make_one(tmp_path):
    with pytest.raises(CommandError, match="skppdnmf site init"):
        read_folder(tmp_path)
