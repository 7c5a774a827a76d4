"""What crosses an edge: slots, masks, ciphers and keys."""

from ._ciphers import Cipher, PaillierCipher, PlainCipher, SimulatedCipher
from ._difference import MASK_BITS, DifferenceExchange
from ._fixed_base import TABLES
from ._fixed_point import fixed_point, starting_bits
from ._keygen import (
    SECURE_KEY_SIZE,
    generate_keypair,
    new_keypair,
    valid_key_size,
    warn_insecure,
)
from ._keys import PaillierPrivateKey, PaillierPublicKey
from ._masks import draw_dither, draw_masks, system_generator
from ._messages import (
    BARE_MESSAGE_BYTES,
    KEY,
    REPLY,
    REQUEST,
    WIDEN,
    Message,
    message_sizes,
)
from ._noise import NoisePool
from ._primes import MIN_KEY_SIZE
from ._public import public_bytes, public_payload, read_public
from ._slots import SlotLayout
from ._wire import Payload

__all__ = [
    "BARE_MESSAGE_BYTES",
    "KEY",
    "MASK_BITS",
    "MIN_KEY_SIZE",
    "REPLY",
    "REQUEST",
    "SECURE_KEY_SIZE",
    "TABLES",
    "WIDEN",
    "Cipher",
    "DifferenceExchange",
    "Message",
    "NoisePool",
    "PaillierCipher",
    "PaillierPrivateKey",
    "PaillierPublicKey",
    "Payload",
    "PlainCipher",
    "SimulatedCipher",
    "SlotLayout",
    "draw_dither",
    "draw_masks",
    "fixed_point",
    "generate_keypair",
    "message_sizes",
    "new_keypair",
    "public_bytes",
    "public_payload",
    "read_public",
    "starting_bits",
    "system_generator",
    "valid_key_size",
    "warn_insecure",
]
