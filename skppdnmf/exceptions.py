"""The warnings and errors that users may want to catch by name."""

__all__ = [
    "CorruptedMessageError",
    "CostWarning",
    "DropoutError",
    "DropoutWarning",
    "InsecureKeyWarning",
    "PrivacyWarning",
    "WrongKeyError",
]


class InsecureKeyWarning(UserWarning):
    """A key is too short to protect anything today.

    Raised where a Paillier key below 2048 bits is generated. Short keys are for
    tests and for reproducing published results.
    """


class CostWarning(UserWarning):
    """A computation is expected to take long."""


class CorruptedMessageError(ValueError):
    """A message is not what its sender must have sent.

    It is truncated, belongs to another layout, or holds numbers that are no
    ciphertexts. Nothing has been computed from it.
    """


class WrongKeyError(ValueError):
    """A ciphertext or message belongs to another key than the one at hand."""


class DropoutError(RuntimeError):
    """An agent has failed or dropped out, and the fit does not go on."""


class DropoutWarning(UserWarning):
    """An agent has failed or dropped out, and the fit goes on without it."""


class PrivacyWarning(UserWarning):
    """A setting protects less than its name may suggest; the message says what."""
