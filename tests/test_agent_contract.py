"""The contract of agents: what an envelope says, and what a place in a run admits."""

import struct
import tracemalloc

import numpy as np
import pytest
from _helpers import RUN, make_agents, random_start, split_parts
from hypothesis import example, given, settings
from hypothesis import strategies as st

from skppdnmf import _agent
from skppdnmf._agent import ENVELOPE_BYTES, MAX_PAYLOAD_BYTES, Address, Envelope
from skppdnmf.exceptions import CorruptedMessageError
from skppdnmf.exchange import REPLY

NUMBERS = st.integers(0, 2**32 - 1)
BYTES = st.integers(0, 255)


@st.composite
def envelopes(draw):
    return Envelope(
        run=draw(st.binary(min_size=16, max_size=16)),
        protocol=draw(BYTES),
        sender=draw(NUMBERS),
        receiver=draw(NUMBERS),
        kind=draw(BYTES),
        round=draw(NUMBERS),
        body=draw(st.binary(max_size=80)),
    )


# On a wire ----------------------------------------------------------------------


@given(envelopes(), st.booleans())
def test_round_trip_and_exact_size(envelope, known):
    data = envelope.to_bytes()
    assert len(data) == envelope.n_bytes == ENVELOPE_BYTES + len(envelope.body)
    sender = envelope.sender if known else None
    for given_data in (data, bytearray(data), memoryview(data)):
        assert Envelope.from_bytes(given_data, sender) == envelope
    assert envelope.n_ciphertexts == 0


def test_a_body_says_what_its_bytes_say():
    class Body:
        n_bytes, n_ciphertexts = 3, 2

        def to_bytes(self):
            return b"abc"

    envelope = Envelope(RUN, 1, 0, 1, kind=2, round=3, body=Body())
    assert (envelope.n_bytes, envelope.n_ciphertexts) == (ENVELOPE_BYTES + 3, 2)
    arrived = Envelope.from_bytes(envelope.to_bytes())
    assert arrived == envelope._replace(body=b"abc")
    assert arrived.n_bytes == envelope.n_bytes


# Where the fields of the header are, for those who tamper with it.
FIELDS = {
    "magic": slice(0, 4),
    "version": slice(4, 6),
    "sender": slice(24, 28),
    "length": slice(36, 40),
}
GENUINE = Envelope(RUN, 1, 3, 1, kind=2, round=5, body=bytes(range(20)))


def tampered(**fields):
    data = bytearray(GENUINE.to_bytes())
    for name, value in fields.items():
        data[FIELDS[name]] = value
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (tampered(magic=b"SKPP"), r"begins with b'SKPP', expected b'SKPN'"),
        (tampered(version=b"\0\x01"), "is of version 1, expected 2"),
        (tampered(version=b"\xff\xff"), "is of version 65535"),
        (tampered(length=struct.pack(">I", 19)), "20 bytes, its header says 19"),
        (tampered(length=struct.pack(">I", 21)), "20 bytes, its header says 21"),
        (tampered(length=struct.pack(">I", 0)), "20 bytes, its header says 0"),
        (GENUINE.to_bytes() + b"\0", "21 bytes, its header says 20"),
        (GENUINE.to_bytes()[:-1], "19 bytes, its header says 20"),
        (GENUINE.to_bytes()[:ENVELOPE_BYTES], "0 bytes, its header says 20"),
        (
            tampered(length=struct.pack(">I", MAX_PAYLOAD_BYTES + 1)),
            rf"claims a payload of {MAX_PAYLOAD_BYTES + 1} bytes; {MAX_PAYLOAD_BYTES}",
        ),
        (tampered(length=b"\xff" * 4), "claims a payload of 4294967295 bytes"),
    ],
)
@pytest.mark.parametrize("known", [True, False])
def test_what_is_no_envelope_is_refused_by_name(data, message, known):
    with pytest.raises(
        CorruptedMessageError, match=f"envelope from agent 3: .*{message}"
    ) as caught:
        Envelope.from_bytes(data, 3 if known else None)
    assert caught.value.sender == 3


@pytest.mark.parametrize("size", range(ENVELOPE_BYTES))
def test_shorter_than_a_header(size):
    data = GENUINE.to_bytes()[:size]
    with pytest.raises(CorruptedMessageError, match=f"agent 7: {size} bytes") as caught:
        Envelope.from_bytes(data, 7)
    assert caught.value.sender == 7
    with pytest.raises(CorruptedMessageError, match="an unknown sender") as caught:
        Envelope.from_bytes(data)
    assert caught.value.sender is None


def test_who_brought_it_is_blamed_for_anothers_name():
    with pytest.raises(
        CorruptedMessageError, match=r"from agent 2: claims to come from agent 3"
    ) as caught:
        Envelope.from_bytes(GENUINE.to_bytes(), 2)
    assert caught.value.sender == 2


def test_too_large_a_payload_is_refused_before_it_is_copied(monkeypatch):
    monkeypatch.setattr(_agent, "MAX_PAYLOAD_BYTES", 1 << 20)
    allowed = GENUINE._replace(body=bytes(1 << 20))
    assert Envelope.from_bytes(allowed.to_bytes()) == allowed
    data = memoryview(GENUINE._replace(body=bytes((1 << 20) + 1)).to_bytes())
    tracemalloc.start()
    try:
        with pytest.raises(CorruptedMessageError, match="1048577 bytes; 1048576"):
            Envelope.from_bytes(data)
        assert tracemalloc.get_traced_memory()[1] < 1 << 16
    finally:
        tracemalloc.stop()


@given(st.binary(max_size=120))
@example(b"")
@example(b"SKPN")
def test_any_bytes_are_read_or_refused(data):
    try:
        envelope = Envelope.from_bytes(data)
    except CorruptedMessageError:
        return
    assert envelope.to_bytes() == data


# At the door --------------------------------------------------------------------

NAMES = ["agent 'a'", "agent 'b'", "agent 'c'", "agent 'd'"]


def address(**given):
    place = {
        "run": RUN,
        "protocol": 1,
        "number": 1,
        "names": NAMES,
        "kinds": {0: "key", 2: "reply"},
        "correspondents": [0, 3],
    }
    return Address(**{**place, **given})


def test_what_is_sealed_is_admitted_at_its_receiver():
    sealed = address(number=3).seal(1, 2, 5, b"text")
    assert sealed == Envelope(RUN, 1, 3, 1, 2, 5, b"text")
    assert address().admit([sealed]) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"run": bytes(16)}, f"of run {'00' * 16}, this is {RUN.hex()}"),
        ({"protocol": 2}, "of protocol 2, this is 1"),
        ({"receiver": 0}, "for agent 0, this is agent 1"),
        ({"receiver": 2**32 - 1}, "for agent 4294967295, this is agent 1"),
        ({"kind": 1}, "of kind 1, the kinds are 0, 2"),
        ({"kind": 255}, "of kind 255, the kinds are 0, 2"),
        ({"sender": 2}, "no one who writes to this agent"),
        ({"sender": 1}, "no one who writes to this agent"),
        ({"sender": 99}, "no one who writes to this agent"),
    ],
)
def test_what_is_not_for_this_agent_is_refused_by_name(change, message):
    envelope = GENUINE._replace(**change)
    names = {1: "agent 'b'", 2: "agent 'c'", 3: "agent 'd'", 99: "agent number 99"}
    who = names[envelope.sender]
    with pytest.raises(
        CorruptedMessageError,
        match=f"^agent 'b': refused from {who}: envelope {message}$",
    ) as caught:
        address().admit([envelope])
    assert caught.value.sender == envelope.sender


@given(envelopes())
def test_only_what_is_right_in_every_field_is_admitted(envelope):
    right = GENUINE._replace(body=envelope.body)
    for name, value in envelope._asdict().items():
        changed = right._replace(**{name: value})
        allowed = {"sender": (0, 3), "kind": (0, 2)}.get(name, (getattr(right, name),))
        if value in allowed or name == "round":
            assert address().admit([changed]) is None
            continue
        with pytest.raises(CorruptedMessageError) as caught:
            address().admit([changed])
        assert caught.value.sender == changed.sender


@pytest.mark.parametrize("size", [0, 15, 17])
def test_a_run_has_sixteen_bytes(size):
    with pytest.raises(ValueError, match=f"run has {size} bytes, expected 16"):
        address(run=bytes(size))


# A running agent ----------------------------------------------------------------


def awaiting_a_reply():
    """An agent that waits for one reply, and the envelope with it."""
    agents = make_agents("path", split_parts([3, 4]), random_start(2, 6), "simulated")
    boxes = [agents[1 - i].start().envelopes for i in (0, 1)]
    while boxes[0][0].kind != REPLY or boxes[0][0].round < 30:
        boxes = [agents[1 - i].advance(boxes[1 - i]).envelopes for i in (0, 1)]
    (reply,) = boxes[0]
    return agents[0], reply.to_bytes()


@pytest.fixture(scope="module")
def awaiting():
    return awaiting_a_reply()


@given(st.data())
@settings(deadline=None, max_examples=300)
def test_no_tampered_envelope_gets_through(awaiting, data):
    """Any bits of the header turned, bytes cut off, left out or put in."""
    agent, genuine = awaiting
    tamper = data.draw(st.sampled_from(["turn", "cut", "leave out", "put in"]))
    place = data.draw(st.integers(0, len(genuine) - 1))
    if tamper == "turn":
        mask = data.draw(st.binary(min_size=ENVELOPE_BYTES, max_size=ENVELOPE_BYTES))
        one = data.draw(st.integers(0, 8 * ENVELOPE_BYTES - 1))
        few = data.draw(st.booleans())
        header = int.from_bytes(genuine[:ENVELOPE_BYTES], "big")
        header ^= 1 << one if few else int.from_bytes(mask, "big")
        changed = header.to_bytes(ENVELOPE_BYTES, "big") + genuine[ENVELOPE_BYTES:]
    elif tamper == "cut":
        changed = genuine[:place]
    elif tamper == "leave out":
        changed = genuine[:place] + genuine[place + 1 :]
    else:
        more = data.draw(st.binary(min_size=1, max_size=8))
        changed = genuine[:place] + more + genuine[place:]
    if changed == genuine:
        return
    with pytest.raises(CorruptedMessageError) as caught:
        agent.advance([Envelope.from_bytes(changed, 1)])
    assert caught.value.sender == 1


def test_what_was_refused_has_changed_nothing():
    agent, genuine = awaiting_a_reply()
    envelope = Envelope.from_bytes(genuine, 1)
    before = agent.factors.left.U.copy()
    for changed in ({"round": envelope.round + 1}, {"kind": 0}, {"run": bytes(16)}):
        with pytest.raises(CorruptedMessageError):
            agent.advance([envelope._replace(**changed)])
    np.testing.assert_array_equal(agent.factors.left.U, before)
    (request,) = agent.advance([envelope]).envelopes
    assert request.round == envelope.round + 1
