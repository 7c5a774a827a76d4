"""How long ciphertexts take on this machine, by a short calibration."""

from __future__ import annotations

import os
import time
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from .._consensus.ciphers import PaillierCipher
from .._consensus.masks import MaskStream, integer_secrets
from .._consensus.settings import AgentSettings
from .._data.graph import Network
from .._paillier.keys import new_keypair
from .._paillier.slots import SlotLayout
from .work import Work, left_layout

# Seconds that worker processes take to start and to import what they need.
_PROCESSES_START = 4.0
# Slots of this many values are enough to time; repeated until the clock is sure.
_CALIBRATION_SECONDS = 0.25


class Expectation(NamedTuple):
    """Seconds of a fit, and joblib's kind of backend with which it takes them."""

    seconds: float
    backend: str


class UnitTimes(NamedTuple):
    """Seconds of one operation on one ciphertext, and of an agent's set-up."""

    encryption: float
    reply: float
    decryption: float
    setup: float


def time_work(
    work: Work,
    network: Network,
    settings: AgentSettings,
    start: NDArray[np.float64],
    n_jobs: int | None,
) -> Expectation:
    """Return how long the ciphertexts of a fit take on this machine.

    Parameters
    ----------
    work : Work
        The operations.
    network, settings, start
        As in `count_work`.
    n_jobs : int or None
        As for joblib.

    Returns
    -------
    Expectation
        Seconds, and where the agents had best run.
    """
    times = calibrate(left_layout(settings, start), settings.key_scheme)
    jobs = min(effective_n_jobs(n_jobs), network.n_agents, os.cpu_count() or 1)
    locked = work.encryptions * times.encryption
    free = work.replies * times.decryption
    # A scalar mask is one long operation, which lets other threads run; entrywise
    # ones are many short ones, which do not.
    if settings.masking == "entrywise":
        locked += work.replies * times.reply
    else:
        free += work.replies * times.reply
    setup = network.n_agents * times.setup
    threads = locked + free / jobs + setup
    if jobs == 1:
        return Expectation(threads, "threads")
    # Every process makes the tables of all keys that it meets.
    processes = (locked + free) / jobs + setup + _PROCESSES_START
    if processes < threads:
        return Expectation(processes, "processes")
    return Expectation(threads, "threads")


def calibrate(layout: SlotLayout, key_scheme: str) -> UnitTimes:
    """Time the operations on a few ciphertexts under a fresh key.

    Parameters
    ----------
    layout : SlotLayout
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
    private = new_keypair(layout.key_size, key_scheme)[1]
    few = SlotLayout(
        2 * layout.slots_per_plaintext,
        layout.value_bits,
        layout.mask_bits,
        layout.masking,
        layout.key_size,
    )
    cipher = PaillierCipher(private)
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
