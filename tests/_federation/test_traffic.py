"""Traffic: envelopes, ciphertexts and bytes of each directed edge."""

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from skppdnmf._agent import ENVELOPE_BYTES, Envelope
from skppdnmf._federation.traffic import Traffic
from skppdnmf.exchange import REQUEST, Message, Payload

RUN = bytes(16)


def envelope(sender, receiver, body):
    return Envelope(RUN, 1, sender, receiver, REQUEST, 0, body)


def test_nothing_is_no_traffic():
    assert Traffic().summary(["a"]) == {
        "messages": 0,
        "ciphertexts": 0,
        "bytes": 0,
        "edges": {},
    }


def test_edges_are_named_by_label_in_the_order_of_the_agents():
    traffic = Traffic()
    payload = Payload(b"12345", 2, 5)
    traffic.count([envelope(2, 0, Message(REQUEST, 0, payload=payload))])
    traffic.count([envelope(0, 1, Message(REQUEST, 0, payload=payload))])
    traffic.count([envelope(0, 1, Message(REQUEST, 1))])
    summary = traffic.summary(["z", "x", "y"])
    size = ENVELOPE_BYTES + Message(REQUEST, 1).n_bytes
    assert summary["edges"] == {
        ("z", "x"): {"messages": 2, "ciphertexts": 2, "bytes": 2 * size + 5},
        ("y", "z"): {"messages": 1, "ciphertexts": 2, "bytes": size + 5},
    }
    assert list(summary["edges"]) == [("z", "x"), ("y", "z")]
    assert summary["messages"] == 3
    assert summary["ciphertexts"] == 4
    assert summary["bytes"] == traffic.total_bytes == 3 * size + 10


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.binary())))
def test_bytes_are_those_on_a_wire(sent):
    traffic = Traffic()
    expected = defaultdict(lambda: [0, 0])
    for sender, receiver, body in sent:
        one = envelope(sender, receiver, body)
        traffic.count([one])
        expected[sender, receiver][0] += 1
        expected[sender, receiver][1] += len(one.to_bytes())
    summary = traffic.summary(range(4))
    assert {
        edge: [counts["messages"], counts["bytes"]]
        for edge, counts in summary["edges"].items()
    } == expected
    assert summary["bytes"] == traffic.total_bytes
    assert summary["bytes"] == sum(n_bytes for _, n_bytes in expected.values())
    assert summary["messages"] == len(sent)
    assert summary["ciphertexts"] == 0
