"""The warnings and errors that users may want to catch by name."""

__all__ = [
    "AgentLost",
    "CorruptedMessageError",
    "CorruptedTotalError",
    "CostWarning",
    "DropoutError",
    "DropoutWarning",
    "ExcessiveNoiseError",
    "FactsMismatchError",
    "FeatureMismatchError",
    "FederationError",
    "ForgedMessageError",
    "InsecureKeyWarning",
    "PolicyError",
    "PrivacyBudgetError",
    "PrivacyWarning",
    "ProtocolVersionError",
    "RelayLostError",
    "RepeatedSummandError",
    "ReplayedMessageError",
    "TranscriptMismatchError",
    "WrongKeyError",
]


class InsecureKeyWarning(UserWarning):
    """A key is too short to protect anything today.

    Raised where a Paillier key below 2048 bits is generated. Short keys are for
    tests and for reproducing published results.

    Examples
    --------
    >>> import warnings
    >>> from skppdnmf import InsecureKeyWarning
    >>> from skppdnmf.exchange import generate_keypair
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", InsecureKeyWarning)
    ...     public, private = generate_keypair(key_size=256)
    """


class CostWarning(UserWarning):
    """A computation is expected to take long; the message says what would be faster.

    Examples
    --------
    >>> import warnings
    >>> from skppdnmf import CostWarning, PrivateDistributedNMF
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", CostWarning)  # rather fail than wait
    ...     model = PrivateDistributedNMF(1, partition=1, tol=0).fit([[1.0, 2.0]])
    """


class CorruptedMessageError(ValueError):
    """A message is not what its sender must have sent.

    It is truncated, belongs to another layout, comes when nothing of its kind is due,
    or holds numbers that are no ciphertexts. Nothing has been computed from it.

    Attributes
    ----------
    sender : int or None
        Number of the agent whose message it is, as far as it can be told: it is the
        sender's fault, not the receiver's.

    Examples
    --------
    >>> from skppdnmf.exceptions import CorruptedMessageError
    >>> from skppdnmf.exchange import Message
    >>> try:
    ...     Message.from_bytes(b"short", kind=1, round=0)
    ... except CorruptedMessageError as error:
    ...     print(error)
    message of 5 bytes is shorter than its header (16)
    """

    def __init__(self, message: str, sender: int | None = None) -> None:
        super().__init__(message)
        self.sender = sender


class ForgedMessageError(CorruptedMessageError):
    """A message is not from whom it claims to be, or was changed on its way.

    Its signature or its seal does not fit. `sender` is whom it claims to be from, who
    need not be at fault: whoever carries messages may have written it.

    Examples
    --------
    >>> from skppdnmf.exceptions import CorruptedMessageError, ForgedMessageError
    >>> issubclass(ForgedMessageError, CorruptedMessageError)
    True
    """


class ReplayedMessageError(CorruptedMessageError):
    """A message is genuine but not for now: it came before, too early, or elsewhere.

    It has come twice, before one that was sent before it, or from another run.

    Examples
    --------
    >>> from skppdnmf.exceptions import CorruptedMessageError, ReplayedMessageError
    >>> issubclass(ReplayedMessageError, CorruptedMessageError)
    True
    """


class FactsMismatchError(RuntimeError):
    """Another site has other public facts of the run; the message says which.

    No summand and no left factor has been sent then.

    Attributes
    ----------
    sender : int or None
        Number of the other site.

    Examples
    --------
    >>> from skppdnmf.exceptions import FactsMismatchError
    >>> FactsMismatchError("K: 5 here, 6 there", sender=1).sender
    1
    """

    def __init__(self, message: str, sender: int | None = None) -> None:
        super().__init__(message)
        self.sender = sender


class TranscriptMismatchError(RuntimeError):
    """Two agents have been told different totals, or different members.

    Somebody lies to one of them, and the run ends. Sums that were begun since are
    noise and show no summand.

    Attributes
    ----------
    sender : int or None
        Number of the agent at the other end of the link.

    Examples
    --------
    >>> from skppdnmf.exceptions import TranscriptMismatchError
    >>> TranscriptMismatchError("other totals", sender=1).sender
    1
    """

    def __init__(self, message: str, sender: int | None = None) -> None:
        super().__init__(message)
        self.sender = sender


class CorruptedTotalError(RuntimeError):
    """A total that all agents have been told cannot be the sum of what they hold.

    An agent has sent what it must not, or agents have been told different things, so
    that their masks do not cancel. The total is noise then and shows no summand. The
    run ends.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf._secure_sum.plausible import check_totals
    >>> from skppdnmf.exceptions import CorruptedTotalError
    >>> try:
    ...     check_totals(-np.ones((1, 1, 1)), np.ones((1, 1, 2)), most=1.0)
    ... except CorruptedTotalError as error:
    ...     print(str(error).partition(";")[0])
    the total of the diagonal of A is -1 in start 0, entry [0]: it is negative
    """


class RepeatedSummandError(RuntimeError):
    """An agent is to contribute twice to one sum, or at one left factor in one round.

    It refuses: two totals of the same summands, over different agents, would tell the
    summands of those in one of them alone. Nothing has been sent.

    Examples
    --------
    >>> import numpy as np
    >>> from skppdnmf.exceptions import RepeatedSummandError
    >>> from skppdnmf.exchange import SecureSum, Tree
    >>> tree = Tree(0, {1: 0}, {0: [1], 1: []})
    >>> keys = [np.array([1]), np.array([0])]
    >>> one = SecureSum(0, "agent 0", lambda _: tree, keys)
    >>> letters = one.start(np.zeros(2, dtype=np.uint64))
    >>> try:
    ...     one.begin(np.ones(2, dtype=np.uint64))
    ... except RepeatedSummandError as error:
    ...     print(str(error).partition(";")[0])
    agent 0: a summand in stage 'advertise keys'
    """


class WrongKeyError(ValueError):
    """A ciphertext or message belongs to another key than the one at hand.

    Attributes
    ----------
    sender : int or None
        Number of the agent whose message it is, as far as it can be told.

    Examples
    --------
    >>> from skppdnmf.exceptions import CorruptedMessageError, WrongKeyError
    >>> issubclass(WrongKeyError, ValueError)
    True
    """

    def __init__(self, message: str, sender: int | None = None) -> None:
        super().__init__(message)
        self.sender = sender


class AgentLost(ConnectionError):  # noqa: N818 - it is an event, as well
    """An agent can no longer be reached: raised by whoever carries its envelopes.

    It is what counts as leaving. Any other exception of an agent is a fault of the
    program and ends the fit.

    Examples
    --------
    >>> from skppdnmf.exceptions import AgentLost
    >>> issubclass(AgentLost, ConnectionError)
    True
    """


class DropoutError(RuntimeError):
    """An agent has failed or dropped out, and the fit does not go on.

    Examples
    --------
    >>> from skppdnmf import DropoutError, PrivateDistributedNMF
    >>> model = PrivateDistributedNMF(protocol="secure-sum", on_dropout="raise")
    >>> try:
    ...     _ = model.fit([[1.0, 2.0], [2.0, 1.0], [1.0, 1.0]])
    ... except DropoutError as error:
    ...     print("fit again without the agent:", error)
    """


class DropoutWarning(UserWarning):
    """An agent has failed or dropped out, and the fit goes on without it.

    Examples
    --------
    >>> import warnings
    >>> from skppdnmf import DropoutWarning, PrivateDistributedNMF
    >>> model = PrivateDistributedNMF(protocol="secure-sum", on_dropout="continue")
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always", DropoutWarning)
    ...     _ = model.fit([[1.0, 2.0], [2.0, 1.0], [1.0, 1.0]])
    >>> model.dropped_agents_
    []
    """


class ExcessiveNoiseError(ValueError):
    """The noise that `epsilon` asks for exceeds what the samples say.

    Examples
    --------
    >>> from skppdnmf import PrivateDistributedNMF
    >>> from skppdnmf.exceptions import ExcessiveNoiseError
    >>> model = PrivateDistributedNMF(
    ...     1, protocol="secure-sum", epsilon=0.1, delta=1e-5, clip=3.0
    ... )
    >>> try:
    ...     _ = model.fit([[1.0, 2.0], [2.0, 1.0], [1.0, 1.0]])
    ... except ExcessiveNoiseError:
    ...     print("too few samples")
    too few samples
    """


class FederationError(RuntimeError):
    """A run among sites has ended before its time; the message says why and where.

    Examples
    --------
    >>> from skppdnmf.exceptions import FederationError, PolicyError
    >>> issubclass(PolicyError, FederationError)
    True
    """


class PolicyError(FederationError):
    """A site's policy does not allow what it is asked for; no data have been read.

    Examples
    --------
    >>> from skppdnmf._site.policy import Job, Policy
    >>> from skppdnmf.exceptions import PolicyError
    >>> try:
    ...     Policy(max_components=10).check(Job("secure-sum", 4, 12, 1, 60))
    ... except PolicyError as error:
    ...     print(error)
    max_components=10: the job has n_components=12
    """


class FeatureMismatchError(FederationError):
    """The sites' features differ in number, name, order or type.

    Examples
    --------
    >>> from skppdnmf.exceptions import FederationError, FeatureMismatchError
    >>> issubclass(FeatureMismatchError, FederationError)
    True
    """


class ProtocolVersionError(FederationError):
    """A job is of another version of the protocol than a site has installed.

    Examples
    --------
    >>> from skppdnmf.exceptions import FederationError, ProtocolVersionError
    >>> issubclass(ProtocolVersionError, FederationError)
    True
    """


class RelayLostError(FederationError):
    """A site has not heard of the relay for longer than a run allows.

    Examples
    --------
    >>> from skppdnmf.exceptions import FederationError, RelayLostError
    >>> issubclass(RelayLostError, FederationError)
    True
    """


class PrivacyBudgetError(ValueError):
    """A fit would spend more of a `PrivacyBudget` than is left; nothing was spent.

    Examples
    --------
    >>> from skppdnmf import PrivacyBudget
    >>> from skppdnmf.exceptions import PrivacyBudgetError
    >>> budget = PrivacyBudget(epsilon=1.0, delta=1e-5)
    >>> try:
    ...     budget.spend(epsilon=2.0, delta=1e-5)
    ... except PrivacyBudgetError:
    ...     print("too much")
    too much
    """


class PrivacyWarning(UserWarning):
    """A setting protects less than its name may suggest; the message says what.

    Examples
    --------
    >>> import warnings
    >>> from skppdnmf import PrivacyWarning, PrivateDistributedNMF
    >>> model = PrivateDistributedNMF(1, protocol="secure-sum", partition=2)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = model.fit([[1.0, 2.0], [2.0, 1.0], [1.0, 1.0]])
    >>> caught[0].category is PrivacyWarning
    True
    """
