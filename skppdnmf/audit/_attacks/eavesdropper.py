"""What the links themselves tell someone who reads all of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chisquare
from sklearn.linear_model import LogisticRegression

from ..._agent import ENVELOPE_BYTES, Envelope
from ..._consensus.messages import Message
from ..._lattice.payload import SEED_BYTES
from ..._paillier.payload import read_public
from ..._payload import HEADER_BYTES
from .._views.transcript import Label, Letter, LinkView, Transcript
from .leakage import Leakage
from .masked_words import describe_sums, masked_words, sum_letters, word_bits

# Chance takes all of these for a leak less than once in a thousand audits.
_RARE_DEVIATIONS = 5.0  # standard deviations
_RARE_P = 1e-6
_TOLD_APART = 0.25  # recovered share
_HEADER_FIELDS = (
    "value_bits",
    "left_count",
    "fit_count",
    "scale",
    "disagreement",
    "movement",
)
_BITS = 64


class _Cipher(NamedTuple):
    """One ciphertext on a link."""

    letter: Letter
    position: int
    data: bytes


class EavesdropperAttack:
    """Looks for anything in the ciphertexts that depends on what they hold.

    Counts repeated ciphertexts, compares sizes with the layout, tests the lowest
    bits for uniformity, and plays a game: which of two known data sets made a
    ciphertext? A logistic regression on the ciphertext's lowest 64 bits (those above
    depend on the key) is fitted to one half of all and judged by the other. Under the
    secure sum the same is asked of the masked words.

    Ciphertexts under one key that are equal modulo n share their noise: their quotient
    shows the difference of what they hold. Under the lattice cipher so does that of
    two requests from one seed, or of two answers with one second polynomial; without
    that polynomial the first shows everything. Under the secure sum words whose upper
    bits come again, three in a row, lie under the same part of a stream.

    Parameters
    ----------
    reference : Transcript or None, default=None
        The fit of the other data set by an estimator with the same parameters. By
        default the first and the second half of the messages are told apart, whose
        plaintexts differ as the left factors come to agree.
    random_state : int, default=0
        Seed of the halves.

    Notes
    -----
    The error is that of the game, with three standard errors added: what chance does
    not explain. Guessing errs in half of all cases. A request goes to all neighbours
    alike; only ``details["ciphertexts"]`` counts its copies. The headers of the
    messages are not encrypted; ``details["headers"]`` lists what can be read there
    and, with a reference, ``details["headers_differ"]`` by what it tells the data
    sets apart.

    Under the secure sum ``details["in_clear"]`` lists the kinds of messages that are
    not masked; the game is about masked sums alone. Who could read the totals would
    know what an agent without samples knows, and could attack as such an agent does
    (`PooledSimulationAttack`).

    ``details["findings"]`` says in words what chance does not explain. There is none
    in a fit that is as it should be; with one, the error is zero.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from skppdnmf import PrivateDistributedNMF
    >>> from skppdnmf.audit import EavesdropperAttack, record
    >>> X = np.random.default_rng(0).exponential(size=(12, 6))
    >>> model = PrivateDistributedNMF(
    ...     2, partition=3, key_size=256, max_iter=2, tol=0, random_state=0
    ... )
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # the key is short
    ...     transcript = record(model, X)
    >>> leakage = EavesdropperAttack().run(transcript, None, 0)
    >>> leakage.details["repeated"], leakage.recovered < 0.2
    (0, True)
    """

    def __init__(
        self, reference: Transcript | None = None, random_state: int = 0
    ) -> None:
        self.reference = reference
        self.random_state = random_state

    def run(
        self, transcript: Transcript, attacker: Label = None, victim: Label = None
    ) -> Leakage:
        """Attack.

        Parameters
        ----------
        transcript : Transcript
            A fit with ``encryption="paillier"`` or ``"bfv"``, or with
            ``protocol="secure-sum"``.
        attacker : label or None, default=None
            Takes no part: an eavesdropper is no agent.
        victim : label or None, default=None
            Whose messages to read; all agents' by default.

        Returns
        -------
        Leakage
            Its target is ``"links"``.

        Raises
        ------
        ValueError
            If no ciphertexts were made.
        """
        details = self.read(transcript.links, victim)
        n_samples = n_neighbours = 0
        if victim is not None:
            n_samples = transcript.view(victim).X.shape[0]
            n_neighbours = len(transcript.public.neighbours(victim))
        error = details.pop("error")
        details["findings"] = _findings(details, 1.0 - error / 0.5)
        return Leakage(
            type(self).__name__,
            None,
            victim,
            "links",
            error=0.0 if details["findings"] else error,
            guess_error=0.5,
            n_samples=n_samples,
            n_neighbours=n_neighbours,
            details=details,
        )

    def read(self, links: LinkView, victim: Label = None) -> dict[str, Any]:
        """Return what the links tell.

        Parameters
        ----------
        links : LinkView
            All messages.
        victim : label or None, default=None
            Whose messages to read.

        Returns
        -------
        dict
            ``error`` of the game; ``ciphertexts``, ``repeated``, ``sizes`` (all
            message sizes for each kind and slot width: one each unless the sizes
            leak), ``odd`` (share of odd ciphertexts), ``uniform`` (probability that
            uniform lowest bytes look as uneven), ``same_noise`` and ``no_noise``
            (ciphertexts that share their noise with another, or have none) and
            ``headers``. Under the secure sum ``error``, ``words``, ``repeated``,
            ``sizes``, ``uniform`` (for each kind of message), ``in_clear`` and
            ``same_stream`` (words under a part of a stream that comes again).

        Raises
        ------
        ValueError
            If no ciphertexts were made.
        """
        if links.public.starts is not None:  # of the secure sum
            return self._read_sums(links, victim)
        letters = _letters(links, victim)
        ciphers = _ciphertexts(letters)
        once = _ciphertexts(_without_copies(letters))
        bits = _low_bits(once)
        if self.reference is None:
            n = len(once) // 2
            halves = [bits[:n], bits[n:]]
        else:
            others = _letters(self.reference.links, victim)
            halves = [bits, _low_bits(_ciphertexts(_without_copies(others)))]
        lowest = np.array([one.data[-1] for one in once])
        details: dict[str, Any] = {
            "error": self._game(*halves),
            "ciphertexts": len(ciphers),
            "repeated": _repeated(ciphers),
            "sizes": _sizes(letters),
            "odd": float(np.mean(lowest % 2)),
            "uniform": float(chisquare(np.bincount(lowest // 16, minlength=16)).pvalue),
            **_noise(once, links),
            "headers": _headers(letters),
        }
        if self.reference is not None:
            other = _headers(others)
            here = details["headers"]
            details["headers_differ"] = [
                name for name in _HEADER_FIELDS if here[name] != other[name]
            ]
        return details

    def _read_sums(self, links: LinkView, victim: Label) -> dict[str, Any]:
        """As `read`, of a secure sum."""
        letters = sum_letters(links, victim)
        bits = word_bits(masked_words(letters))
        if self.reference is None:
            halves = [bits[: len(bits) // 2], bits[len(bits) // 2 :]]
        else:
            others = sum_letters(self.reference.links, victim)
            halves = [bits, word_bits(masked_words(others))]
        # An agent that is the root of the tree sends no masked sum.
        error = self._game(*halves) if len(bits) > 1 else 0.5
        return {"error": error, **describe_sums(letters)}

    def _game(self, one: NDArray, other: NDArray) -> float:
        """Error in telling two sets of ciphertexts apart, and three standard errors."""
        rng = np.random.default_rng(self.random_state)
        n = min(len(one), len(other))
        X = np.vstack([rng.permutation(one)[:n], rng.permutation(other)[:n]])
        y = np.repeat([0, 1], n)
        mixed = rng.permutation(len(y))
        train, test = mixed[: len(y) // 2], mixed[len(y) // 2 :]
        if len(np.unique(y[train])) < 2:
            return 0.5
        model = LogisticRegression(C=1e-2).fit(X[train], y[train])
        error = float(np.mean(model.predict(X[test]) != y[test]))
        return min(0.5, error + 1.5 / np.sqrt(len(test)))

    def __repr__(self) -> str:
        return f"EavesdropperAttack(reference={self.reference!r})"


def _findings(details: dict[str, Any], told_apart: float) -> list[str]:
    """Say what chance does not explain."""
    findings = []
    for name, what in (
        (
            "no_noise",
            "ciphertexts without noise: the public key reads them",
        ),
        ("same_noise", "ciphertexts with the noise of another: quotients show changes"),
        ("same_stream", "words under a stream that comes again: differences show data"),
        ("repeated", "repetitions: of messages that should never be alike"),
    ):
        if details.get(name):
            findings.append(f"{details[name]} {what}")
    if details.get("in_clear"):
        findings.append(f"in clear: {', '.join(details['in_clear'])}")
    uneven = [key for key, sizes in details["sizes"].items() if len(sizes) > 1]
    if uneven:
        findings.append(f"several sizes of messages of one layout: {uneven[:3]}")
    if "odd" in details:
        deviations = abs(details["odd"] - 0.5) * 2.0 * details["ciphertexts"] ** 0.5
        if deviations > _RARE_DEVIATIONS or details["uniform"] < _RARE_P:
            findings.append("the lowest bits of the ciphertexts are uneven")
    if told_apart > _TOLD_APART:
        findings.append("messages are told apart by their bits")
    return findings


def _moduli(links: LinkView) -> dict[Label, int]:
    """Return each agent's modulus n, from its public key."""
    moduli = {}
    for (sender, _), letters in links.letters.items():
        for letter in letters:
            if letter.kind == "key" and letter.data is not None:
                key = read_public(_message(letter).payload)
                if key is not None:
                    moduli[sender] = int(key.n)
    return moduli


def _noise(ciphers: list[_Cipher], links: LinkView) -> dict[str, int]:
    """Count ciphertexts without noise, and with another's."""
    if links.public.encryption == "bfv":
        return _lattice_noise(ciphers)
    moduli = _moduli(links)
    seen: set[tuple[Label, int]] = set()
    none = same = 0
    for one in ciphers:
        letter = one.letter
        # A request is under its sender's key, the answer under its receiver's.
        owner = letter.sender if letter.kind == "request" else letter.receiver
        if owner not in moduli:
            continue
        residue = int.from_bytes(one.data, "big") % moduli[owner]
        none += residue == 1  # those with one noise are equal modulo n
        same += residue != 1 and (owner, residue) in seen
        seen.add((owner, residue))
    return {"no_noise": none, "same_noise": same}


def _lattice_noise(ciphers: list[_Cipher]) -> dict[str, int]:
    """As `_noise`: what takes the place of noise is the second polynomial."""
    seen: set[bytes] = set()
    none = same = 0
    for one in ciphers:
        # A request has the seed of it, an answer the polynomial itself.
        second = one.data[:SEED_BYTES]
        if one.letter.kind != "request":
            second = one.data[len(one.data) // 2 :]
        bare = one.letter.kind != "request" and not any(second)
        none += bare
        same += not bare and second in seen
        seen.add(second)
    return {"no_noise": none, "same_noise": same}


def _letters(links: LinkView, victim: Label) -> list[Letter]:
    """Messages from one agent, or from all, in the order of sending."""
    letters = [
        letter
        for (sender, _), some in links.letters.items()
        for letter in some
        if victim is None or sender == victim
    ]
    if any(letter.data is None for letter in letters):
        raise ValueError(
            f"encryption={links.public.encryption!r} makes no ciphertexts; record a "
            'fit with encryption="paillier" (a small key_size will do for a study) or '
            '"bfv"'
        )
    return sorted(letters, key=lambda letter: letter.turn)


def _without_copies(letters: list[Letter]) -> list[Letter]:
    """Keep each request once, which goes to all neighbours alike."""
    # Of a copy in both parts, that to fit and that to judge, the game knows the answer.
    first: dict[Any, Letter] = {}
    for place, letter in enumerate(letters):
        # What comes again anywhere else is a repetition, which may well be a leak.
        key: Any = place
        if letter.kind == "request" and letter.n_ciphertexts:
            # The copies differ in their envelopes, which name the receiver.
            data = letter.data and letter.data[ENVELOPE_BYTES:]
            key = (letter.sender, letter.round, data)
        first.setdefault(key, letter)
    return list(first.values())


def _ciphertexts(letters: list[Letter]) -> list[_Cipher]:
    """Take the messages apart."""
    result = []
    for letter in letters:
        if not letter.n_ciphertexts or letter.data is None:
            continue
        payload = _message(letter).payload
        assert payload is not None
        body = payload.data[HEADER_BYTES:]
        width = len(body) // letter.n_ciphertexts
        result += [
            _Cipher(letter, k, body[k * width : (k + 1) * width])
            for k in range(letter.n_ciphertexts)
        ]
    return result


def _message(letter: Letter) -> Message:
    """Read a message."""
    assert letter.data is not None
    envelope = Envelope.from_bytes(letter.data)
    return Message.from_bytes(envelope.body, envelope.kind, envelope.round)


def _low_bits(ciphers: list[_Cipher]) -> NDArray[np.float64]:
    """Return the lowest bits of each ciphertext, a row each."""
    data = b"".join(one.data[-_BITS // 8 :] for one in ciphers)
    return np.unpackbits(np.frombuffer(data, np.uint8)).reshape(-1, _BITS).astype(float)


def _repeated(ciphers: list[_Cipher]) -> int:
    """Ciphertexts that come again; one request goes to all neighbours alike."""
    seen: dict[bytes, tuple] = {}
    repeated = 0
    for one in ciphers:
        letter = one.letter
        receiver = None if letter.kind == "request" else letter.receiver
        place = (letter.kind, letter.round, letter.sender, receiver, one.position)
        repeated += seen.setdefault(one.data, place) != place
    return repeated


def _sizes(letters: list[Letter]) -> dict[tuple[str, int, int], list[int]]:
    """Sizes for each kind, slot width and number of ciphertexts."""
    sizes: dict[tuple[str, int, int], set[int]] = {}
    for letter in letters:
        key = (letter.kind, letter.value_bits, letter.n_ciphertexts)
        sizes.setdefault(key, set()).add(letter.n_bytes)
    return {key: sorted(some) for key, some in sizes.items()}


def _headers(letters: list[Letter]) -> dict[str, list[Any]]:
    """All values of each field of the headers."""
    return {
        name: sorted({getattr(letter, name) for letter in letters})
        for name in _HEADER_FIELDS
    }
