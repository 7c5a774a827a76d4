"""Microsoft SEAL through TenSEAL's binding: contexts, streams, keys.

The binding reads and writes files only. Ciphertexts, and secret keys above all, shall
touch no disk: where the system has files in memory alone, these are used.
"""

from __future__ import annotations

import importlib
import os
import struct
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .parameters import (
    DEGREE,
    N_DATA_PRIMES,
    WORD_BYTES,
    coefficient_primes,
)

# magic, header size, version (2), compression, reserved, size of the whole
_STREAM = struct.Struct("<HBBBBHQ")
_PLAIN, _ZLIB, _ZSTD = range(3)
N_KEY_PRIMES = N_DATA_PRIMES + 1
_ZEROS = np.zeros(N_DATA_PRIMES * DEGREE, dtype="<u8")


def binding() -> Any:
    """Import the binding.

    Returns
    -------
    module
        ``tenseal.sealapi``.

    Raises
    ------
    ImportError
        If TenSEAL is not installed; the message names the extra.
    """
    return _extra("tenseal.sealapi", "TenSEAL")


def _extra(module: str, name: str) -> Any:
    """Import what the extra brings; an ImportError that names it otherwise."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f'encryption="bfv" needs {name}: install skppdnmf[lattice]'
        ) from error


@lru_cache
def _zstandard() -> Any:
    """Return what undoes the compression of SEAL's streams."""
    return _extra("zstandard", "zstandard").ZstdDecompressor()


@contextmanager
def _path() -> Iterator[tuple[str, Callable[[], bytes], Callable[..., Any]]]:
    """Yield the path of a file in memory, and what reads and writes it."""
    if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):
        number = os.memfd_create("skppdnmf")
        try:
            yield (
                f"/proc/self/fd/{number}",
                lambda: os.pread(number, os.fstat(number).st_size, 0),
                lambda *parts: _write(number, parts),
            )
        finally:
            os.close(number)
        return
    with tempfile.TemporaryDirectory() as folder:  # readable by its owner alone
        path = Path(folder) / "stream"
        yield (
            str(path),
            path.read_bytes,
            lambda *parts: path.write_bytes(b"".join(parts)),
        )


def _write(number: int, parts: tuple[Any, ...]) -> None:
    """Write all parts to a new file."""
    size = sum(memoryview(part).nbytes for part in parts)
    if os.writev(number, parts) != size:  # a file in memory takes all, or none
        raise OSError(f"{size} bytes do not fit into memory")


def members(thing: Any) -> bytes:
    """Return what SEAL serialises of an object, without its stream's header."""
    with _path() as (path, read, _):
        thing.save(path)
        data = read()
    *_, compression, _, size = _STREAM.unpack_from(data)
    body = data[_STREAM.size : size]
    if compression == _ZLIB:
        return zlib.decompress(body)
    return body if compression == _PLAIN else _zstandard().decompress(body)


def load(thing: Any, context: Any, *body: Any) -> Any:
    """Have an object read what `members` returned; a ValueError if it refuses.

    In parts, so that nothing is copied only to stand behind each other.
    """
    magic, version = 0xA15E, _seal_version()
    size = _STREAM.size + sum(memoryview(part).nbytes for part in body)
    head = _STREAM.pack(magic, _STREAM.size, *version, _PLAIN, 0, size)
    with _path() as (path, _, write):
        write(head, *body)
        try:
            thing.load(context, path)
        except (ValueError, RuntimeError, IndexError) as error:
            raise ValueError(str(error)) from error
    return thing


@lru_cache
def _seal_version() -> tuple[int, int]:
    """Return the version that SEAL writes into its streams."""
    with _path() as (path, read, _):
        binding().Modulus(coefficient_primes()[0]).save(path)
        _, _, major, minor, *_ = _STREAM.unpack_from(read())
    return major, minor


class Ring:
    """SEAL's tools for one plaintext modulus.

    Parameters
    ----------
    plain_modulus : int
        A prime that is 1 modulo ``2 * DEGREE``.

    Raises
    ------
    ImportError
        If TenSEAL is not installed.
    RuntimeError
        If SEAL refuses the parameters, for security or otherwise.
    """

    def __init__(self, plain_modulus: int) -> None:
        self.api = api = binding()
        self.plain_modulus = plain_modulus
        parameters = api.EncryptionParameters(api.SCHEME_TYPE.BFV)
        parameters.set_poly_modulus_degree(DEGREE)
        parameters.set_coeff_modulus([api.Modulus(p) for p in coefficient_primes()])
        parameters.set_plain_modulus(api.Modulus(plain_modulus))
        self.context = api.SEALContext(parameters, True, api.SEC_LEVEL_TYPE.TC128)
        if not self.context.parameters_set():
            message = self.context.parameters_error_message()
            raise RuntimeError(f"SEAL refuses the parameters: {message}")
        self.encoder = api.BatchEncoder(self.context)
        self.evaluator = api.Evaluator(self.context)
        self._templates()

    def _templates(self) -> None:
        """Learn from SEAL itself how it writes each kind of object."""
        api = self.api
        generator = api.KeyGenerator(self.context)
        public = api.PublicKey()
        generator.create_public_key(public)
        words = DEGREE * WORD_BYTES
        secret_members = members(generator.secret_key())
        self._secret_head = secret_members[: -N_KEY_PRIMES * words]
        self._public_head = members(public)[: -2 * N_KEY_PRIMES * words]
        encryptor = api.Encryptor(self.context, public, generator.secret_key())
        zero = api.Ciphertext()
        self._heads: dict[int, bytes] = {}
        self.levels: dict[int, Any] = {}
        encryptor.encrypt_zero(zero)
        for n_primes in range(N_DATA_PRIMES, 0, -1):
            self._heads[n_primes] = members(zero)[: -2 * n_primes * words]
            self.levels[n_primes] = zero.parms_id()
            if n_primes > 1:
                self.evaluator.mod_switch_to_next_inplace(zero)
        seeded = members(encryptor.encrypt_zero_symmetric())
        # One polynomial, and the seed of the other behind it.
        place = len(self._heads[N_DATA_PRIMES])
        self._seeded_head = seeded[:place]
        self.seed_bytes = len(seeded) - place - N_DATA_PRIMES * words

    # Keys ----------------------------------------------------------------------

    def new_keys(self) -> tuple[bytes, bytes]:
        """Make a key pair; the words of its public and of its secret part."""
        generator = self.api.KeyGenerator(self.context)
        public = self.api.PublicKey()
        generator.create_public_key(public)
        secret = generator.secret_key()
        return (
            members(public)[len(self._public_head) :],
            members(secret)[len(self._secret_head) :],
        )

    def public_key(self, words: bytes) -> Any:
        """Read a public key; a ValueError if it is none."""
        return load(self.api.PublicKey(), self.context, self._public_head, words)

    def secret_key(self, words: bytes) -> Any:
        """Read a secret key."""
        return load(self.api.SecretKey(), self.context, self._secret_head, words)

    # Plaintexts ----------------------------------------------------------------

    def encode(self, residues: NDArray[np.int64]) -> Any:
        """Return the plaintext of at most `DEGREE` residues, the rest zeros."""
        plain = self.api.Plaintext()
        self.encoder.encode(residues.tolist(), plain)
        return plain

    def constant(self, number: int) -> Any:
        """Return the plaintext that has one number in every slot."""
        return self.api.Plaintext(f"{number:X}")

    def decode(self, plain: Any) -> NDArray[np.int64]:
        """Return all slots, centred around zero."""
        return np.array(self.encoder.decode_int64(plain), dtype=np.int64)

    # Ciphertexts ---------------------------------------------------------------

    def write_seeded(self, ciphertext: Any) -> bytes:
        """Write a fresh symmetric encryption: the seed, then its one polynomial."""
        body = members(ciphertext)[len(self._seeded_head) :]
        size = len(body) - self.seed_bytes
        return body[size:] + _swapped(body[:size]).tobytes()

    def read_seeded(self, data: bytes) -> Any:
        """Read what `write_seeded` wrote; a ValueError if SEAL refuses it."""
        seed, words = data[: self.seed_bytes], data[self.seed_bytes :]
        body = self._seeded_head, _swapped(words), seed
        return load(self.api.Ciphertext(), self.context, *body)

    def write(self, ciphertext: Any) -> bytes:
        """Write both polynomials, in big-endian words."""
        n_primes = ciphertext.coeff_modulus_size()
        return _swapped(members(ciphertext)[len(self._heads[n_primes]) :]).tobytes()

    def read(self, data: bytes, n_primes: int) -> Any:
        """Read what `write` wrote; a ValueError if SEAL refuses it."""
        body = self._heads[n_primes], _swapped(data)
        return load(self.api.Ciphertext(), self.context, *body)

    def transparent(self, rows: NDArray[np.uint64]) -> Any:
        """Return residues as a ciphertext whose second polynomial is zero.

        To be added to another: by itself it hides nothing.
        """
        body = (
            self._heads[len(rows)],
            rows.astype("<u8", copy=False),
            _ZEROS[: rows.size],
        )
        return load(self.api.Ciphertext(), self.context, *body)


def _swapped(words: bytes) -> NDArray[np.uint64]:
    """Reverse the bytes of each word: SEAL's are little-endian, a wire's are not."""
    return np.frombuffer(words, dtype="<u8").byteswap()


@lru_cache(maxsize=64)
def ring(plain_modulus: int) -> Ring:
    """Return the process's tools for a plaintext modulus, made once."""
    return Ring(plain_modulus)
