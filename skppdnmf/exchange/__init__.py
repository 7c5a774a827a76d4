"""What crosses an edge: slots, masks, ciphers and keys."""

from .._consensus.ciphers import (
    Cipher,
    PaillierCipher,
    PlainCipher,
    SimulatedCipher,
    public_payload,
)
from .._consensus.exchange import DifferenceExchange
from .._consensus.fixed_point import (
    fixed_point,
    starting_bits,
    value_layout,
    with_spare,
)
from .._consensus.lattice_cipher import LatticeCipher
from .._consensus.masks import (
    MASK_BITS,
    MaskStream,
    draw_factors,
    draw_secrets,
    integer_secrets,
    mask_range,
)
from .._consensus.messages import (
    BARE_MESSAGE_BYTES,
    KEY,
    REPLY,
    REQUEST,
    WIDEN,
    Message,
    message_sizes,
)
from .._lattice.keys import LatticePrivateKey, LatticePublicKey, new_lattice_keypair
from .._lattice.parameters import LatticeLayout
from .._paillier.fixed_base import TABLES
from .._paillier.keys import (
    SECURE_KEY_SIZE,
    PaillierPrivateKey,
    PaillierPublicKey,
    generate_keypair,
    new_keypair,
    valid_key_size,
    warn_insecure,
)
from .._paillier.noise import NoisePool
from .._paillier.payload import public_bytes, read_public
from .._paillier.primes import MIN_KEY_SIZE
from .._paillier.slots import SlotLayout
from .._payload import Payload
from .._sealing.agent import SEALED_BYTES, SealedAgent
from .._sealing.agreement import Agreement
from .._sealing.credentials import Credentials, new_run
from .._sealing.facts import Facts
from .._sealing.identity import Identity, Roster, fingerprint, verify_signature
from .._sealing.identity import read_public as read_public_identity
from .._sealing.identity import write_public as write_public_identity
from .._secure_sum.exchange import SecureSum, Total, Tree
from .._secure_sum.key_graph import (
    ALL_PAIRS,
    check_key_degree,
    key_degree,
    keys_connected,
    make_key_graph,
    system_generator,
)
from .._secure_sum.limbs import N_LIMBS, TOTAL_BITS, from_limbs, to_limbs
from .._secure_sum.masks import PUBLIC_KEY_BYTES, PairwiseMasks
from .._secure_sum.messages import (
    KEY_ENTRY_BYTES,
    KEYS_DOWN,
    KEYS_UP,
    STATE_DOWN,
    STATE_UP,
    SUM_DOWN,
    SUM_HEADER_BYTES,
    SUM_KIND_NAMES,
    SUM_UP,
    WORD_BYTES,
    SumMessage,
)

__all__ = [
    "ALL_PAIRS",
    "BARE_MESSAGE_BYTES",
    "KEY",
    "KEYS_DOWN",
    "KEYS_UP",
    "KEY_ENTRY_BYTES",
    "MASK_BITS",
    "MIN_KEY_SIZE",
    "N_LIMBS",
    "PUBLIC_KEY_BYTES",
    "REPLY",
    "REQUEST",
    "SEALED_BYTES",
    "SECURE_KEY_SIZE",
    "STATE_DOWN",
    "STATE_UP",
    "SUM_DOWN",
    "SUM_HEADER_BYTES",
    "SUM_KIND_NAMES",
    "SUM_UP",
    "TABLES",
    "TOTAL_BITS",
    "WIDEN",
    "WORD_BYTES",
    "Agreement",
    "Cipher",
    "Credentials",
    "DifferenceExchange",
    "Facts",
    "Identity",
    "LatticeCipher",
    "LatticeLayout",
    "LatticePrivateKey",
    "LatticePublicKey",
    "MaskStream",
    "Message",
    "NoisePool",
    "PaillierCipher",
    "PaillierPrivateKey",
    "PaillierPublicKey",
    "PairwiseMasks",
    "Payload",
    "PlainCipher",
    "Roster",
    "SealedAgent",
    "SecureSum",
    "SimulatedCipher",
    "SlotLayout",
    "SumMessage",
    "Total",
    "Tree",
    "check_key_degree",
    "draw_factors",
    "draw_secrets",
    "fingerprint",
    "fixed_point",
    "from_limbs",
    "generate_keypair",
    "integer_secrets",
    "key_degree",
    "keys_connected",
    "make_key_graph",
    "mask_range",
    "message_sizes",
    "new_keypair",
    "new_lattice_keypair",
    "new_run",
    "public_bytes",
    "public_payload",
    "read_public",
    "read_public_identity",
    "starting_bits",
    "system_generator",
    "to_limbs",
    "valid_key_size",
    "value_layout",
    "verify_signature",
    "warn_insecure",
    "with_spare",
    "write_public_identity",
]
