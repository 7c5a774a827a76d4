"""`skppdnmf site`: keys, rosters, and what a check tells."""

import re

import numpy as np
import pytest
from _cli_runner import refused, succeeded

from skppdnmf._sealing.identity import Identity, fingerprint
from skppdnmf._site.folder import FILE, read_folder

KEY = re.compile(r"ed25519:\S+")
DATA = '[datasets.cohort]\nfile = "cohort.csv"\ndrop = ["id"]\n\n[policy]'


def site(*arguments):
    return succeeded("site", *arguments)


def refuses(*arguments):
    return refused("site", *arguments)


def made(folder, name):
    return KEY.search(site("init", folder, "--name", name).stdout)[0]


def test_two_sites_come_to_trust_each_other(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    keys = {name: made(tmp_path / name, name) for name in ("one", "two")}
    shown = site("fingerprint", two).stdout
    spoken = re.search(r"read out: (\S+)", shown)[1]
    assert keys["two"] in shown
    assert spoken in site("trust", "two", keys["two"], "--folder", one).stdout
    assert read_folder(one).roster == {"two": keys["two"]}
    assert spoken == Identity.load(two / "identity.pem").fingerprint
    # Once more changes nothing; another key under the name is refused.
    before = (one / FILE).read_text()
    site("trust", "two", keys["two"], "--folder", one)
    assert (one / FILE).read_text() == before
    assert "two has another key in the roster" in refused(
        "site", "trust", "two", made(tmp_path / "x", "x"), "--folder", one
    )
    assert "two has this key already" in refused(
        "site", "trust", "three", keys["two"], "--folder", one
    )
    assert "one is this site" in refused(
        "site", "trust", "one", keys["one"], "--folder", one
    )


def test_a_key_is_for_its_owner_and_never_replaced(tmp_path):
    made(tmp_path / "s", "s")
    file = tmp_path / "s" / "identity.pem"
    assert file.stat().st_mode & 0o777 == 0o600
    before = file.read_bytes()
    assert "exists, and a key is never replaced" in refused(
        "site", "init", tmp_path / "s", "--name", "s"
    )
    assert file.read_bytes() == before
    assert "should be letters" in refused(
        "site", "init", tmp_path / "t", "--name", "two words"
    )
    file.chmod(0o644)
    assert "mode 644" in refuses("fingerprint", tmp_path / "s")


def test_a_passphrase(tmp_path, monkeypatch):
    monkeypatch.setenv("SKPPDNMF_PASSPHRASE", "correct horse")
    site("init", tmp_path / "s", "--name", "s", "--passphrase")
    shown = site("fingerprint", tmp_path / "s").stdout
    key = Identity.load(tmp_path / "s" / "identity.pem", "correct horse")
    assert fingerprint(key.public) in shown
    monkeypatch.delenv("SKPPDNMF_PASSPHRASE")
    assert "passphrase" in refuses("fingerprint", tmp_path / "s")


def test_a_check_tells_how_much_and_what_is_allowed_but_no_value(tmp_path):
    made(tmp_path / "s", "s")
    file = tmp_path / "s" / FILE
    assert "names no data sets" in refuses("check", tmp_path / "s")
    file.write_text(file.read_text().replace("[policy]", DATA, 1))
    values = np.random.default_rng(0).uniform(100, 999, size=(7, 2)).round(3)
    rows = [f"p{k},{a},{b}" for k, (a, b) in enumerate(values)]
    (tmp_path / "s" / "cohort.csv").write_text("\n".join(["id,a,b", *rows]) + "\n")
    shown = site("check", tmp_path / "s").stdout
    assert re.search(r"cohort +7 +2 +float64", shown)
    assert re.search(r"protocols +secure-sum", shown)
    assert re.search(r"components to the submitter +no", shown)
    assert not [value for value in values.ravel() if str(value) in shown]


@pytest.mark.parametrize("key", ["ed25519:AAAA", "words"])
def test_what_is_no_key_is_refused(tmp_path, key):
    made(tmp_path / "s", "s")
    assert "public key" in refused(
        "site", "trust", "t", key, "--folder", tmp_path / "s"
    )
    assert read_folder(tmp_path / "s").roster == {}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--env", "prod"], "--env prod needs --startup-kit"),
        (["--env", "poc"], "--env poc needs --sites and --workspace"),
        (["--env", "sim", "--out", "c.npz"], "--out is for --return-components"),
    ],
)
def test_federate_says_what_is_missing(arguments, message):
    pytest.importorskip("nvflare")
    assert message in refused("federate", *arguments, "--n-components", "3")
