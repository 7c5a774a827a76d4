"""Public keys on the wire, in a fixed number of bytes."""

from __future__ import annotations

from ..exceptions import CorruptedMessageError
from .ciphers import Cipher, PlainCipher, SimulatedCipher
from .keys import PaillierPublicKey
from .payload import Payload

_SCHEMES = ("full", "djn", "subgroup")


def public_payload(cipher: Cipher) -> Payload | None:
    """Return the message that tells neighbours an agent's public key.

    Parameters
    ----------
    cipher : Cipher
        The agent's cipher.

    Returns
    -------
    Payload or None
        None without encryption. Simulated keys take as many bytes as real ones.

    Examples
    --------
    >>> from skppdnmf.exchange import SimulatedCipher, public_payload
    >>> public_payload(SimulatedCipher(2048)).n_bytes
    513
    """
    if isinstance(cipher, PlainCipher):
        return None
    if isinstance(cipher, SimulatedCipher):
        return Payload(None, 0, public_bytes(cipher.key_size))
    key: PaillierPublicKey = cipher.public
    width = _number_bytes(key.key_size)
    data = (
        bytes([_SCHEMES.index(key.scheme)])
        + int(key.n).to_bytes(width, "big")
        + int(key.h or 0).to_bytes(width, "big")
    )
    return Payload(data, 0, len(data))


def read_public(payload: Payload | None) -> PaillierPublicKey | None:
    """Read a neighbour's public key.

    Parameters
    ----------
    payload : Payload
        What `public_payload` returned at the neighbour.

    Returns
    -------
    PaillierPublicKey or None
        None if the key was a simulated one.

    Raises
    ------
    CorruptedMessageError
        If the payload is no key.
    """
    data = payload.data if payload else None
    if data is None:
        return None
    width, odd = divmod(len(data) - 1, 2)
    if odd or width < 1 or data[0] >= len(_SCHEMES):
        raise CorruptedMessageError(f"a message of {len(data)} bytes is no public key")
    n = int.from_bytes(data[1 : 1 + width], "big")
    h = int.from_bytes(data[1 + width :], "big")
    try:
        return PaillierPublicKey(n, h or None, _SCHEMES[data[0]])
    except ValueError as error:
        raise CorruptedMessageError(f"no public key: {error}") from error


def public_bytes(key_size: int) -> int:
    """Bytes of a public key on the wire."""
    return 1 + 2 * _number_bytes(key_size)


def _number_bytes(key_size: int) -> int:
    """Bytes of a number below the modulus."""
    return -(-key_size // 8)
