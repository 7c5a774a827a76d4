"""Certificates of links, from identities and the roster alone.

A site makes a key for its links anew in every run and signs its certificate with its
identity. Others trust it because the roster has the identity's public key: of that they
make a root certificate for themselves. No authority is needed, and nobody who is not in
the roster gets a link.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.x509.oid import NameOID

from .._sealing.identity import Identity

# Clocks may differ; a run is over long before.
_BEFORE, _AFTER = datetime.timedelta(days=1), datetime.timedelta(days=7)


class LinkFiles(NamedTuple):
    """Files that a link is made with.

    Parameters
    ----------
    certificate, key, roots : Path
        In PEM.
    """

    certificate: Path
    key: Path
    roots: Path


def write_certificates(
    folder: Path, name: str, identity: Identity, roster: Mapping[str, bytes]
) -> LinkFiles:
    """Write what a site's links need into a folder that only its owner may read.

    Parameters
    ----------
    folder : Path
        Exists.
    name : str
        The site's.
    identity : Identity
        The site's.
    roster : mapping from str to bytes
        Public keys of all sites.

    Returns
    -------
    LinkFiles
    """
    now = datetime.datetime.now(datetime.timezone.utc)
    key = ec.generate_private_key(ec.SECP256R1())
    link = _builder(f"link of {name}", name, key.public_key(), now)
    roots = []
    # What a root says of itself is not looked at; whoever signs it.
    somebody = Identity.new()
    for site, public in roster.items():
        root = _builder(site, site, Ed25519PublicKey.from_public_bytes(public), now)
        authority = x509.BasicConstraints(ca=True, path_length=None)
        roots.append(somebody.certify(root.add_extension(authority, critical=True)))
    encoding = serialization.Encoding.PEM
    files = LinkFiles(folder / "link.pem", folder / "link.key", folder / "roots.pem")
    _write(files.certificate, identity.certify(link).public_bytes(encoding))
    _write(files.roots, b"".join(root.public_bytes(encoding) for root in roots))
    _write(
        files.key,
        key.private_bytes(
            encoding,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        ),
    )
    return files


def _builder(
    subject: str,
    issuer: str,
    key: ec.EllipticCurvePublicKey | Ed25519PublicKey,
    now: datetime.datetime,
) -> x509.CertificateBuilder:
    """Return a certificate that is to be signed."""
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BEFORE)
        .not_valid_after(now + _AFTER)
    )


def _name(text: str) -> x509.Name:
    """Return a site's name as certificates have it."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:64])])


def _write(path: Path, data: bytes) -> None:
    """Write a file that nobody else may read."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
