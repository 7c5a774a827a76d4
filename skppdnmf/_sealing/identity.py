"""Who a site is: a signing key of its own, and a roster of the others' public keys."""

from __future__ import annotations

import base64
import hashlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)

IDENTITY_BYTES = 32
SIGNATURE_BYTES = 64
_PREFIX = "ed25519:"
# 160 bits in groups that can be read out.
_FINGERPRINT_BYTES = 20
_GROUP = 4
_OTHERS_MAY_READ = stat.S_IRWXG | stat.S_IRWXO


class Identity:
    """A site's Ed25519 key pair, with which it signs what it says.

    Parameters
    ----------
    private : bytes
        The 32 bytes of the private key.

    Attributes
    ----------
    public : bytes
        The 32 bytes of the public key, for the others' rosters.

    Examples
    --------
    >>> from skppdnmf.exchange import Identity, verify_signature
    >>> identity = Identity.new()
    >>> signature = identity.sign(b"words")
    >>> verify_signature(identity.public, signature, b"words")
    True
    >>> verify_signature(identity.public, signature, b"other words")
    False
    """

    def __init__(self, private: bytes) -> None:
        if len(private) != IDENTITY_BYTES:
            raise ValueError(
                f"a private key of {len(private)} bytes, expected {IDENTITY_BYTES}"
            )
        # As bytes, so that an agent can move to another process.
        self._private = private
        self.public = self._key().public_key().public_bytes_raw()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.fingerprint})"

    @classmethod
    def new(cls) -> Identity:
        """Make a fresh key pair from the operating system's randomness."""
        return cls(Ed25519PrivateKey.generate().private_bytes_raw())

    @property
    def fingerprint(self) -> str:
        """What to read out for comparison: letters and digits in groups of four."""
        return fingerprint(self.public)

    def sign(self, message: bytes) -> bytes:
        """Return the 64 bytes of a signature."""
        return self._key().sign(message)

    def certify(self, builder: x509.CertificateBuilder) -> x509.Certificate:
        """Return a certificate that this key has signed."""
        return builder.sign(self._key(), None)

    def save(self, path: str | os.PathLike[str], passphrase: str | None = None) -> None:
        """Write the private key into a new file that only its owner can read.

        Parameters
        ----------
        path : path-like
            A file that does not exist yet; PKCS #8 in PEM, mode 600.
        passphrase : str or None, default=None
            Encrypts it.

        Raises
        ------
        FileExistsError
            If there is such a file: a key is never overwritten.
        ValueError
            If the passphrase is empty.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from skppdnmf.exchange import Identity
        >>> identity = Identity.new()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder) / "identity.pem"
        ...     identity.save(file, "correct horse")
        ...     Identity.load(file, "correct horse").public == identity.public
        True
        """
        if passphrase == "":
            raise ValueError("the passphrase is empty; None writes the key unencrypted")
        encryption: serialization.KeySerializationEncryption
        if passphrase is None:
            encryption = serialization.NoEncryption()
        else:
            encryption = serialization.BestAvailableEncryption(passphrase.encode())
        data = self._key().private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
        )
        # Nobody else can read it at any moment, not even while it is empty.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], passphrase: str | None = None
    ) -> Identity:
        """Read a key that `save` has written.

        Parameters
        ----------
        path : path-like
            The file.
        passphrase : str or None, default=None
            With which it was encrypted.

        Returns
        -------
        Identity

        Raises
        ------
        PermissionError
            If others than its owner may read the file.
        ValueError
            If it is no such file, or the passphrase is wrong, missing or not needed.
        """
        path = Path(path)
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if os.name == "posix" and mode & _OTHERS_MAY_READ:
                raise PermissionError(
                    f"{path} has mode {mode:o}: others than its owner may read the "
                    "private key; expected 600 (chmod 600)"
                )
            data = file.read()
        try:
            key = serialization.load_pem_private_key(
                data, None if passphrase is None else passphrase.encode()
            )
        except TypeError as error:  # a passphrase too many or too few
            need = "is encrypted: give" if passphrase is None else "has no passphrase:"
            raise ValueError(
                f"{path} {need} {'its' if passphrase is None else 'give no'} passphrase"
            ) from error
        except ValueError as error:
            raise ValueError(
                f"{path} holds no key in PEM, or the passphrase is wrong"
            ) from error
        if not isinstance(key, Ed25519PrivateKey):
            raise ValueError(f"{path} holds a {type(key).__name__}, expected Ed25519")
        return cls(key.private_bytes_raw())

    def _key(self) -> Ed25519PrivateKey:
        """Return the key as the library has it."""
        return Ed25519PrivateKey.from_private_bytes(self._private)


def verify_signature(public: bytes, signature: bytes, message: bytes) -> bool:
    """Return whether a signature is that of a public key under a message.

    Parameters
    ----------
    public : bytes
        32 bytes of an Ed25519 key.
    signature : bytes
        64 bytes.
    message : bytes
        What was signed.

    Returns
    -------
    bool
        False also for bytes that are no key or no signature.
    """
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def fingerprint(public: bytes) -> str:
    """Return what to read out of a public key: 160 bits of its SHA-256.

    Parameters
    ----------
    public : bytes
        32 bytes.

    Returns
    -------
    str
        Eight groups of four letters and digits (base 32: no 0, no 1).

    Examples
    --------
    >>> from skppdnmf.exchange import fingerprint
    >>> fingerprint(bytes(32))
    'MZUH-VLPY-MK6X-O3EP-YGFY-5H4O-EAEJ-OFEF'
    """
    digest = hashlib.sha256(public).digest()[:_FINGERPRINT_BYTES]
    letters = base64.b32encode(digest).decode()
    return "-".join(
        letters[start : start + _GROUP] for start in range(0, len(letters), _GROUP)
    )


def write_public(public: bytes) -> str:
    """Return a public key as text for a roster in a file.

    Examples
    --------
    >>> from skppdnmf.exchange import read_public_identity, write_public_identity
    >>> write_public_identity(bytes(32))[:16]
    'ed25519:AAAAAAAA'
    >>> read_public_identity(write_public_identity(bytes(32))) == bytes(32)
    True
    """
    return _PREFIX + base64.b64encode(public).decode()


def read_public(text: str) -> bytes:
    """Read a public key that `write_public` has written.

    Raises
    ------
    ValueError
        If the text is none.
    """
    try:
        if not text.startswith(_PREFIX):
            raise ValueError(f"it does not begin with {_PREFIX!r}")
        public = base64.b64decode(text[len(_PREFIX) :], validate=True)
        if len(public) != IDENTITY_BYTES:
            raise ValueError(f"{len(public)} bytes, expected {IDENTITY_BYTES}")
    except ValueError as error:
        raise ValueError(f"public key {text!r}: {error}") from error
    return public


class Roster:
    """The sites of a federation and their public keys, in the order of their numbers.

    It is compared outside: what is in it is what a site trusts.

    Parameters
    ----------
    keys : mapping from str to bytes or str
        Public keys by the sites' names: 32 bytes, or the text of
        `write_public_identity`.

    Attributes
    ----------
    names : tuple of str
        Agent i is the i-th.
    keys : tuple of bytes
        Their public keys.

    Raises
    ------
    ValueError
        If a key is none, or two sites have the same.

    Examples
    --------
    >>> from skppdnmf.exchange import Identity, Roster
    >>> identities = {name: Identity.new() for name in ("a", "b")}
    >>> roster = Roster({name: one.public for name, one in identities.items()})
    >>> roster.number_of(identities["b"].public)
    1
    """

    def __init__(self, keys: Mapping[str, bytes | str]) -> None:
        read = {
            name: read_public(key) if isinstance(key, str) else bytes(key)
            for name, key in keys.items()
        }
        owners: dict[bytes, str] = {}
        for name, key in read.items():
            if len(key) != IDENTITY_BYTES:
                raise ValueError(
                    f"roster: the public key of {name!r} has {len(key)} bytes, "
                    f"expected {IDENTITY_BYTES}"
                )
            if key in owners:
                raise ValueError(
                    f"roster: {owners[key]!r} and {name!r} have the same public key"
                )
            owners[key] = name
        self.names = tuple(read)
        self.keys = tuple(read.values())

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self.names)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Roster):
            return NotImplemented
        return (self.names, self.keys) == (other.names, other.keys)

    def __hash__(self) -> int:
        return hash((self.names, self.keys))

    def number_of(self, public: bytes) -> int:
        """Return the number of the site that has a public key.

        Raises
        ------
        ValueError
            If none has.
        """
        if public not in self.keys:
            raise ValueError(
                f"the key {fingerprint(public)} is not in the roster of "
                f"{list(self.names)}"
            )
        return self.keys.index(public)

    def to_text(self) -> dict[str, str]:
        """Return the public keys as text, by name."""
        return {
            name: write_public(key)
            for name, key in zip(self.names, self.keys, strict=True)
        }
