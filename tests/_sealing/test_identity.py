"""Identities and rosters: keys, files, what is read out."""

import os
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skppdnmf.exchange import (
    Identity,
    Roster,
    fingerprint,
    read_public_identity,
    verify_signature,
    write_public_identity,
)

posix = pytest.mark.skipif(os.name != "posix", reason="file modes of POSIX")


def test_a_published_vector_of_ed25519():
    """RFC 8032, 7.1, test 2."""
    identity = Identity(
        bytes.fromhex(
            "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"
        )
    )
    assert identity.public.hex() == (
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
    )
    assert identity.sign(b"\x72").hex() == (
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
    )


@pytest.mark.parametrize("passphrase", [None, "correct horse", "pässword"])
def test_a_file_holds_the_key(tmp_path, passphrase):
    identity, file = Identity.new(), tmp_path / "identity.pem"
    identity.save(file, passphrase)
    assert Identity.load(file, passphrase).public == identity.public
    assert (b"ENCRYPTED" in file.read_bytes()) == (passphrase is not None)


@posix
def test_only_the_owner_can_read_the_file(tmp_path):
    file = tmp_path / "identity.pem"
    before = os.umask(0)
    try:
        Identity.new().save(file)
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@posix
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_file_that_others_can_read_is_refused(tmp_path, mode):
    file = tmp_path / "identity.pem"
    Identity.new().save(file)
    file.chmod(mode)
    with pytest.raises(PermissionError, match=f"has mode {mode:o}.*expected 600"):
        Identity.load(file)


def test_a_key_is_never_overwritten(tmp_path):
    file = tmp_path / "identity.pem"
    identity = Identity.new()
    identity.save(file)
    with pytest.raises(FileExistsError):
        Identity.new().save(file)
    assert Identity.load(file).public == identity.public


@pytest.mark.parametrize(
    ("saved", "given_", "match"),
    [
        ("one", "other", "or the passphrase is wrong"),
        ("one", None, "is encrypted: give its passphrase"),
        (None, "one", "has no passphrase: give no passphrase"),
    ],
)
def test_the_passphrase_must_be_right(tmp_path, saved, given_, match):
    file = tmp_path / "identity.pem"
    Identity.new().save(file, saved)
    with pytest.raises(ValueError, match=match):
        Identity.load(file, given_)


def test_an_empty_passphrase_is_none(tmp_path):
    with pytest.raises(ValueError, match="the passphrase is empty"):
        Identity.new().save(tmp_path / "identity.pem", "")


def test_other_files_are_refused(tmp_path):
    file = tmp_path / "identity.pem"
    file.write_bytes(b"nothing")
    file.chmod(0o600)
    with pytest.raises(ValueError, match="holds no key in PEM"):
        Identity.load(file)
    with pytest.raises(ValueError, match="a private key of 3 bytes, expected 32"):
        Identity(b"abc")


def test_nothing_shows_the_private_key():
    identity = Identity(b"\x07" * 32)
    assert repr(identity) == f"Identity({identity.fingerprint})"


@given(st.binary(min_size=32, max_size=32))
def test_public_keys_as_text(public):
    assert read_public_identity(write_public_identity(public)) == public
    groups = fingerprint(public).split("-")
    assert list(map(len, groups)) == [4] * 8


@pytest.mark.parametrize("text", ["", "AAAA", "ed25519:AAAA", "ed25519:!!!!", "rsa:AA"])
def test_other_text_is_no_key(text):
    with pytest.raises(ValueError, match="public key"):
        read_public_identity(text)


def test_a_bit_of_the_key_changes_the_fingerprint():
    seen = {fingerprint(bytes([*bytes(k), 1 << b, *bytes(31 - k)]))
            for k in range(32) for b in range(8)}  # fmt: skip
    assert len(seen) == 256


@given(st.binary(max_size=80), st.binary(max_size=80), st.binary(max_size=80))
def test_anything_may_be_verified(public, signature, message):
    assert not verify_signature(public, signature, message)


def test_a_roster_numbers_its_sites_in_order():
    one, other = Identity.new(), Identity.new()
    roster = Roster({"b": one.public, "a": write_public_identity(other.public)})
    assert roster.names == ("b", "a")
    assert roster.number_of(other.public) == 1
    assert Roster(roster.to_text()) == roster
    with pytest.raises(ValueError, match=r"is not in the roster of \['b', 'a'\]"):
        roster.number_of(Identity.new().public)


def test_a_roster_refuses_doubtful_keys():
    key = Identity.new().public
    with pytest.raises(ValueError, match="'a' and 'b' have the same public key"):
        Roster({"a": key, "b": key})
    with pytest.raises(ValueError, match="of 'a' has 3 bytes, expected 32"):
        Roster({"a": b"abc"})
