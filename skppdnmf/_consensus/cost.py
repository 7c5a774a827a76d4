"""What an encrypted fit takes: ciphertexts from formulas, seconds by calibration."""

from __future__ import annotations

import os
import time
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from .._data.graph import Network
from .._lattice.keys import new_lattice_keypair
from .._lattice.parameters import LatticeLayout
from .._lattice.payload import PUBLIC_BYTES
from .._paillier.keys import new_keypair
from .._paillier.payload import public_bytes
from .._paillier.slots import SlotLayout
from .._warn import warn_user
from ..exceptions import CostWarning
from .ciphers import PaillierCipher
from .fixed_point import SPARE_BITS, fixed_point, value_layout, with_spare
from .lattice_cipher import LatticeCipher
from .masks import MASK_BITS, MaskStream, integer_secrets
from .messages import BARE_MESSAGE_BYTES, message_sizes
from .scale import N_VALUES, VALUE_BITS
from .settings import AgentSettings

LONG_FIT_SECONDS = 600.0
# Fits below this by the rough measure are not worth a calibration.
_SHORT_FIT_SECONDS = 60.0
# Seconds per value and directed edge that no machine in use exceeds at 2048 bits.
_SLOW_VALUE = 2e-3
# Seconds per answer, with its share of the request, that no machine exceeds.
_SLOW_LATTICE_REPLY = 0.04
# Answers of the lattice cipher from which on processes are worth starting.
_LEAST_LATTICE_REPLIES = 1500
# Values under keys of 2048 bits from which on processes are worth starting.
_LEAST_VALUES = {"entrywise": 50_000, "scalar": 150_000}
# Seconds that worker processes take to start and to import what they need.
_PROCESSES_START = 4.0
# Slots of this many values are enough to time; repeated until the clock is sure.
_CALIBRATION_SECONDS = 0.25


class Work(NamedTuple):
    """Ciphertext operations of a fit.

    Parameters
    ----------
    exchanges : int
        Exchanges of the left factor.
    encryptions : int
        Ciphertexts that agents make for their requests.
    replies : int
        Ciphertexts that agents make for their replies; as many are decrypted.
    powers : int
        Ciphertexts raised to a mask.
    ciphertexts, bytes : int
        What crosses the links.
    values : int
        Values times directed edges times exchanges.
    """

    exchanges: int
    encryptions: int
    replies: int
    powers: int
    ciphertexts: int
    bytes: int
    values: int


def left_layout(
    settings: AgentSettings, start: NDArray[np.float64], encryption: str = "paillier"
) -> SlotLayout | LatticeLayout:
    """Slots with which the left factor's exchange starts; an error if none fits."""
    _, bits = fixed_point(start.ravel(), settings.n_max)
    if encryption == "bfv":
        return LatticeLayout(start.size, bits + SPARE_BITS, MASK_BITS, settings.masking)
    # As wide as the exchange makes them: spare bits are left out before a fit is.
    return value_layout(
        start.size,
        with_spare(bits, settings.key_size),
        settings.n_max,
        settings.masking,
        settings.key_size,
    )


def count_work(
    network: Network,
    settings: AgentSettings,
    start: NDArray[np.float64],
    encryption: str | None,
) -> Work:
    """Count the operations of a fit that runs all its iterations.

    Parameters
    ----------
    network : Network
        The graph.
    settings : AgentSettings
        Common to all agents.
    start : ndarray of shape (K, F)
        Common start of the left factor.
    encryption : {"paillier", "bfv", "simulated"} or None
        Kind of cipher.

    Returns
    -------
    Work
        Simulated ciphertexts count as those of Paillier.
    """
    exchanges = settings.max_iter * settings.max_admm_iter
    n_edges = 2 * network.n_edges
    averages = settings.n_averages if network.n_agents > 1 else 0
    rounds = averages * settings.averaging.n_rounds
    spreading = averages * settings.leader_eccentricity
    batches: list[tuple[int, SlotLayout | LatticeLayout | None, int]] = [
        (rounds, None, N_VALUES),
        (exchanges if n_edges else 0, None, start.size),
    ]
    if encryption is not None and n_edges:
        numbers = N_VALUES, VALUE_BITS, MASK_BITS, "scalar"
        average: SlotLayout | LatticeLayout = (
            LatticeLayout(*numbers)
            if encryption == "bfv"
            else SlotLayout(*numbers, settings.key_size)
        )
        batches = [
            (rounds, average, N_VALUES),
            (exchanges, left_layout(settings, start, encryption), start.size),
        ]
    encryptions = replies = powers = ciphertexts = n_bytes = 0
    for repeats, layout, n_values in batches:
        sizes = message_sizes(layout, n_values)
        encryptions += repeats * network.n_agents * sizes.request_ciphertexts
        replies += repeats * n_edges * sizes.reply_ciphertexts
        powers += repeats * n_edges * sizes.request_ciphertexts
        ciphertexts += (
            repeats * n_edges * (sizes.request_ciphertexts + sizes.reply_ciphertexts)
        )
        n_bytes += repeats * n_edges * (sizes.request_bytes + sizes.reply_bytes)
    n_bytes += spreading * n_edges * BARE_MESSAGE_BYTES
    if encryption is not None:
        key_bytes = public_bytes(settings.key_size)
        if encryption == "bfv":
            key_bytes = PUBLIC_BYTES
        n_bytes += n_edges * (BARE_MESSAGE_BYTES + key_bytes)
    return Work(
        exchanges if n_edges else 0,
        encryptions,
        replies,
        powers,
        ciphertexts,
        n_bytes,
        exchanges * n_edges * start.size,
    )


class UnitTimes(NamedTuple):
    """Seconds of one operation on one ciphertext, and of an agent's set-up."""

    encryption: float
    reply: float
    decryption: float
    setup: float


def preferred_backend(
    settings: AgentSettings, n_values: int, encrypted: bool, n_jobs: int | None
) -> str:
    """Return where agents that run side by side had best do so.

    A scalar mask is one long operation, which lets other threads run; entrywise ones,
    and all noise, are many short ones, which do not: processes pay as soon as these
    take longer than it takes to start them.

    Parameters
    ----------
    settings : AgentSettings
        Common to all agents.
    n_values : int
        Values times directed edges times exchanges.
    encrypted : bool
        Whether there are ciphertexts.
    n_jobs : int or None
        As for joblib.

    Returns
    -------
    {"threads", "processes"}
    """
    if not encrypted or min(effective_n_jobs(n_jobs), settings.n_agents) == 1:
        return "threads"
    least = _LEAST_VALUES[settings.masking]
    long = n_values * (settings.key_size / 2048) ** 2 >= least
    return "processes" if long else "threads"


def lattice_backend(work: Work, settings: AgentSettings, n_jobs: int | None) -> str:
    """Return where agents had best run side by side under the lattice cipher.

    SEAL's binding holds the interpreter's lock, so that threads share nothing.

    Parameters
    ----------
    work : Work
        The operations.
    settings, n_jobs
        As for `preferred_backend`.

    Returns
    -------
    {"threads", "processes"}
    """
    if min(effective_n_jobs(n_jobs), settings.n_agents) == 1:
        return "threads"
    return "processes" if work.replies >= _LEAST_LATTICE_REPLIES else "threads"


def time_work(
    work: Work,
    settings: AgentSettings,
    start: NDArray[np.float64],
    n_jobs: int | None,
    backend: str,
    encryption: str = "paillier",
) -> float:
    """Return how many seconds the ciphertexts of a fit take on this machine.

    Parameters
    ----------
    work : Work
        The operations.
    settings, start
        As in `count_work`.
    n_jobs : int or None
        As for joblib.
    backend : {"threads", "processes"}
        Where the agents run.
    encryption : {"paillier", "bfv"}, default="paillier"
        Kind of cipher.

    Returns
    -------
    float
    """
    times = calibrate(left_layout(settings, start, encryption), settings.key_scheme)
    jobs = min(effective_n_jobs(n_jobs), settings.n_agents, os.cpu_count() or 1)
    locked = work.encryptions * times.encryption
    free = work.replies * times.decryption
    if encryption == "bfv":  # SEAL's binding never gives the lock away
        locked += free + work.replies * times.reply
        free = 0.0
    elif settings.masking == "entrywise":
        locked += work.replies * times.reply
    else:
        free += work.replies * times.reply
    setup = settings.n_agents * times.setup
    if jobs == 1 or backend == "threads":
        return locked + free / jobs + setup
    # Every process makes the tables of all keys that it meets.
    return (locked + free) / jobs + setup + _PROCESSES_START


def calibrate(layout: SlotLayout | LatticeLayout, key_scheme: str) -> UnitTimes:
    """Time the operations on a few ciphertexts under a fresh key.

    Parameters
    ----------
    layout : SlotLayout or LatticeLayout
        Of the left factor's exchange; only its slots and key size matter.
    key_scheme : {"djn", "subgroup"}
        As for `PrivateDistributedNMF`.

    Returns
    -------
    UnitTimes
        Seconds per ciphertext of each operation; a reply's includes its share of
        raising the request to the masks. The set-up is an agent's key and tables.
    """
    started = time.perf_counter()
    few: Any
    cipher: Any
    if isinstance(layout, LatticeLayout):
        few, cipher = layout, LatticeCipher(new_lattice_keypair())
    else:
        few = SlotLayout(
            2 * layout.slots_per_plaintext,
            layout.value_bits,
            layout.mask_bits,
            layout.masking,
            layout.key_size,
        )
        cipher = PaillierCipher(new_keypair(layout.key_size, key_scheme)[1])
    values = np.zeros(few.n_values, dtype=few.bits_value_dtype)
    masks, dither = integer_secrets(MaskStream(), few)
    arguments = (values, masks, dither, few)
    request = cipher.request(values, few)
    cipher.open(cipher.reply(cipher.public, request, *arguments), few)
    setup = time.perf_counter() - started

    def seconds(call: Any, *args: Any) -> float:
        """Mean time of a call."""
        count, begun = 0, time.perf_counter()
        while (passed := time.perf_counter() - begun) < _CALIBRATION_SECONDS:
            call(*args)
            count += 1
        return passed / count

    reply = cipher.reply(cipher.public, request, *arguments)
    return UnitTimes(
        seconds(cipher.request, values, few) / few.n_request_ciphertexts,
        seconds(cipher.reply, cipher.public, request, *arguments)
        / few.n_reply_ciphertexts,
        seconds(cipher.open, reply, few) / few.n_reply_ciphertexts,
        setup,
    )


def warn_if_long(
    network: Network,
    settings: AgentSettings,
    start: NDArray[np.float64],
    n_jobs: int | None,
    backend: str,
    encryption: str = "paillier",
) -> None:
    """Warn before an encrypted fit that is expected to take more than ten minutes."""
    work = count_work(network, settings, start, encryption)
    rough = work.values * _SLOW_VALUE * (settings.key_size / 2048) ** 2
    if encryption == "bfv":
        rough = work.replies * _SLOW_LATTICE_REPLY
    if rough < _SHORT_FIT_SECONDS:
        return
    seconds = time_work(work, settings, start, n_jobs, backend, encryption)
    if seconds <= LONG_FIT_SECONDS:
        return
    faster = []
    if encryption != "bfv":
        faster.append(
            'encryption="bfv" (the same result; pip install skppdnmf[lattice])'
        )
    faster += [
        'protocol="secure-sum" (which also protects more)',
        'encryption="simulated" (the same result, for studies)',
    ]
    if settings.masking == "entrywise":
        faster.append('masking="scalar" (protects less)')
    if effective_n_jobs(n_jobs) < (os.cpu_count() or 1):
        faster.append(f"n_jobs={os.cpu_count()}")
    faster += [
        "a joblib cluster backend",
        "fewer exchanges (max_iter)",
        "fewer components",
    ]
    warn_user(
        f"this fit is expected to take {seconds / 60:.0f} minutes of encryption; "
        f"faster would be: {', '.join(faster)}",
        CostWarning,
    )
