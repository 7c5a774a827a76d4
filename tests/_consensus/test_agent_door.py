"""What a running agent of the consensus refuses, and whom it names."""

import pytest
from _helpers import (
    KEY_SIZE,
    RUN,
    assert_same_reports,
    drive,
    make_agents,
    random_start,
    split_parts,
)
from _paillier_keys import cipher

from skppdnmf._agent import ENVELOPE_BYTES, Envelope
from skppdnmf._consensus.agent import Phase
from skppdnmf.exceptions import CorruptedMessageError, WrongKeyError
from skppdnmf.exchange import (
    KEY,
    REPLY,
    REQUEST,
    WIDEN,
    Message,
    SimulatedCipher,
    SlotLayout,
    public_payload,
)

K, F = 2, 4
HEADER = Message(KEY, 0).n_bytes


class Scene:
    """Four agents on a path; the envelopes to agent 1 have not been delivered.

    The third stage is a round that passes the leader's estimate of the scale on.
    """

    def __init__(self, stage, encryption="simulated"):
        self.agents = build(encryption)
        self.reports = [[] for _ in self.agents]
        self.boxes = [[] for _ in self.agents]
        self.earlier = []
        for i, agent in enumerate(self.agents):
            self.post(i, agent.start())
        while not self.reached(stage):
            self.turn()
        self.agent = self.agents[1]
        self.box = {envelope.sender: envelope for envelope in self.boxes[1]}
        assert sorted(self.box) == [0, 2]

    def reached(self, stage):
        kinds = {envelope.kind for envelope in self.boxes[1]}
        bare = all(envelope.body[HEADER:] == b"" for envelope in self.boxes[1])
        left = self.agents[1].phase is Phase.LEFT and self.agents[1].factors.iteration
        return {
            "keys": kinds == {KEY},
            "resting": kinds == {REQUEST} and bare,
            "requests": left and kinds == {REQUEST},
            "replies": left and kinds == {REPLY},
        }[stage]

    def post(self, i, step):
        for envelope in step.envelopes:
            arrived = Envelope.from_bytes(envelope.to_bytes(), i)
            self.boxes[envelope.receiver].append(arrived)
        self.reports[i] += [] if step.report is None else [step.report]
        return step.finished

    def turn(self):
        boxes, self.boxes = self.boxes, [[] for _ in self.agents]
        self.earlier += boxes[1]
        steps = enumerate(zip(self.agents, boxes, strict=True))
        return [self.post(i, agent.advance(box)) for i, (agent, box) in steps]

    def past(self, sender, kind):
        """The last envelope of its kind that the agent has taken from a neighbour."""
        found = [e for e in self.earlier if (e.sender, e.kind) == (sender, kind)]
        return found[-1]

    def take(self, *envelopes):
        """Deliver envelopes of the box."""
        for envelope in envelopes:
            self.boxes[1].remove(envelope)
        self.post(1, self.agent.advance(list(envelopes)))

    def refuses(self, *envelopes, sender, match, error=CorruptedMessageError):
        """Deliver envelopes and check whom the agent names."""
        name = "agent number 99" if sender == 99 else f"agent {sender}"
        text = rf"^agent 1: refused from {name}: .*{match}"
        with pytest.raises(error, match=text) as caught:
            self.agent.advance(list(envelopes))
        if error is CorruptedMessageError:
            assert caught.value.sender == sender

    def goes_on(self):
        """Run the fit to its end, which must be what it would have been."""
        while not all(self.turn()):
            pass
        assert_same_reports(self.reports, drive(build("simulated"))[0])


def build(encryption):
    return make_agents(
        "path",
        split_parts((4, 6, 3, 5), F),
        random_start(K, F),
        encryption,
        max_iter=3,
        max_admm_iter=2,
    )


def change(envelope, **header):
    return envelope._replace(**header)


def rewrite(envelope, **fields):
    """An envelope whose message says something else."""
    message = Message.from_bytes(envelope.body, envelope.kind, envelope.round)
    return envelope._replace(body=message._replace(**fields).to_bytes())


# Who writes to whom ---------------------------------------------------------------


@pytest.mark.parametrize("stage", ["keys", "resting", "requests", "replies"])
@pytest.mark.parametrize(
    ("header", "match"),
    [
        ({"run": RUN[::-1]}, f"of run {RUN[::-1].hex()}, this is {RUN.hex()}"),
        ({"receiver": 2}, "for agent 2, this is agent 1"),
        ({"receiver": 0}, "for agent 0, this is agent 1"),
        ({"protocol": 2}, "of protocol 2, this is 1"),
        ({"kind": 4}, "of kind 4, the kinds are 0, 1, 2, 3"),
        ({"kind": 255}, "of kind 255"),
        ({"sender": 3}, "no one who writes to this agent"),
        ({"sender": 1}, "no one who writes to this agent"),
        ({"sender": 99}, "no one who writes to this agent"),
    ],
)
def test_what_is_not_for_the_agent(stage, header, match):
    scene = Scene(stage)
    envelope = change(scene.box[0], **header)
    scene.refuses(envelope, sender=envelope.sender, match=match)
    scene.goes_on()


# In turn --------------------------------------------------------------------------


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize(
    ("stage", "kind"), [("keys", "key"), ("requests", "request"), ("replies", "reply")]
)
def test_a_second_of_its_kind(stage, kind, together):
    scene = Scene(stage)
    match = f"a {kind} of round {scene.box[0].round}, not due in phase"
    if together:
        envelopes = [scene.box[0], scene.box[0]]
        scene.refuses(*envelopes, sender=0, match=match)
        scene.boxes[1].remove(scene.box[0])  # the first was taken
        scene.post(1, scene.agent.advance([]))
    else:
        scene.take(scene.box[0])
        scene.refuses(scene.box[0], sender=0, match=match)
    scene.goes_on()


@pytest.mark.parametrize("sender", [0, 2])
def test_a_key_after_the_keys(sender):
    for stage in ("resting", "requests", "replies"):
        scene = Scene(stage)
        key = scene.past(sender, KEY)
        scene.refuses(key, sender=sender, match="a key of round 0, not due in phase '")
        scene.goes_on()


@pytest.mark.parametrize("round_", [1, 2**32 - 1])
def test_a_key_of_another_round(round_):
    scene = Scene("keys")
    key = change(scene.box[2], round=round_)
    scene.refuses(key, sender=2, match=f"a key of round {round_}, not due .*'keys'")
    scene.goes_on()


def test_a_key_where_there_are_none():
    agents = build(None)
    agents[1].start()
    key = Message(KEY, 0, payload=public_payload(SimulatedCipher(KEY_SIZE)))
    envelope = Envelope(RUN, 1, 0, 1, KEY, 0, key)
    with pytest.raises(CorruptedMessageError, match="from agent 0: a key") as caught:
        agents[1].advance([envelope])
    assert caught.value.sender == 0


@pytest.mark.parametrize("stage", ["requests", "replies"])
@pytest.mark.parametrize("step", [-5, -1, 2, 100])
def test_a_request_of_another_round(stage, step):
    scene = Scene(stage)
    present = scene.box[2].round
    request = scene.past(2, REQUEST) if stage == "replies" else scene.box[2]
    early = change(request, round=present + step)
    match = f"a request of round {present + step}, not due in phase 'left', round "
    scene.refuses(early, sender=2, match=match + str(present))
    scene.goes_on()


def test_a_genuine_request_of_a_past_round():
    scene = Scene("requests")
    past = scene.past(0, REQUEST)
    assert past.round == scene.box[0].round - 1
    scene.refuses(past, sender=0, match="not due")
    scene.goes_on()


def test_a_request_that_was_answered_already():
    scene = Scene("replies")
    request = scene.past(0, REQUEST)
    assert request.round == scene.box[0].round
    scene.refuses(request, sender=0, match="a request of round .* not due")
    scene.goes_on()


def test_only_one_request_may_come_early():
    """A neighbour that is ahead by one round has asked once."""
    scene = Scene("requests")
    early = change(scene.box[0], round=scene.box[0].round + 1)
    scene.agent.advance([early])
    scene.refuses(early, sender=0, match="not due")


@pytest.mark.parametrize("kind", [REPLY, WIDEN])
@pytest.mark.parametrize("step", [-1, 1])
def test_an_answer_of_another_round(kind, step):
    scene = Scene("replies")
    answer = change(scene.box[2], kind=kind, round=scene.box[2].round + step)
    scene.refuses(answer, sender=2, match=f"of round {answer.round}, not due")
    scene.goes_on()


@pytest.mark.parametrize("kind", [REPLY, WIDEN])
@pytest.mark.parametrize("stage", ["keys", "resting"])
def test_an_answer_that_nobody_awaits(stage, kind):
    scene = Scene(stage)
    answer = change(scene.box[0], kind=kind, body=Message(WIDEN, 0, 30).to_bytes())
    scene.refuses(answer, sender=0, match="not due")
    scene.goes_on()


def test_a_reply_and_a_wish_for_wider_slots():
    """Either is the one answer: numbers that were taken must not be asked for again."""
    scene = Scene("replies")
    reply = scene.box[0]
    widen = change(reply, kind=WIDEN, body=Message(WIDEN, 0, 30).to_bytes())
    for pair in ([reply, widen], [widen, reply]):
        again = Scene("replies")
        again.refuses(*pair, sender=0, match="not due")
    scene.take(reply)
    scene.refuses(widen, sender=0, match="a widen of round .* not due")
    scene.goes_on()


def test_nothing_is_due_once_the_fit_is_over():
    scene = Scene("requests")
    scene.goes_on()
    for kind in (KEY, REQUEST, REPLY):
        last = scene.past(2, kind)
        for step in (0, 1):
            envelope = change(last, round=last.round + step)
            scene.refuses(envelope, sender=2, match="not due in phase 'over'")


# What is in them ------------------------------------------------------------------


TRUNCATED = [
    (stage, keep, encryption)
    for stage in ("keys", "requests", "replies")
    for keep in ("nothing", "some", "header", "half", "but one")
    for encryption in ("simulated", "paillier")
    # A simulated key says nothing: there is nothing to miss.
    if (stage, encryption) != ("keys", "simulated") or keep not in ("half", "but one")
]


@pytest.mark.parametrize("sender", [0, 2])
@pytest.mark.parametrize(("stage", "keep", "encryption"), TRUNCATED)
def test_a_truncated_payload(stage, keep, encryption, sender):
    scene = Scene(stage, encryption)
    envelope = scene.box[sender]
    size = len(envelope.body)
    sizes = {
        "nothing": 0,
        "some": 9,
        "header": HEADER,
        "half": size // 2,
        "but one": size - 1,
    }
    cut = change(envelope, body=envelope.body[: sizes[keep]])
    # The other neighbour's is good: all are answered together.
    scene.refuses(scene.box[2 - sender], cut, sender=sender, match="")


@pytest.mark.parametrize("encryption", ["simulated", "paillier"])
@pytest.mark.parametrize("sender", [0, 2])
@pytest.mark.parametrize("value_bits", [0, 1000, 2**16 - 1])
@pytest.mark.parametrize("stage", ["requests", "replies"])
def test_slots_of_a_width_that_was_not_agreed(stage, value_bits, sender, encryption):
    scene = Scene(stage, encryption)
    lie = rewrite(scene.box[sender], value_bits=value_bits)
    if stage == "requests" and value_bits == 0:  # too narrow, as far as it can be told
        answers = scene.agent.advance([scene.box[2 - sender], lie]).envelopes
        assert [(e.receiver, e.kind) for e in answers] == [
            (2 - sender, REPLY),
            (sender, WIDEN),
        ]
        return
    scene.refuses(scene.box[2 - sender], lie, sender=sender, match="")


@pytest.mark.parametrize("value_bits", [1000, 2**16 - 1])
def test_a_wish_for_slots_that_no_key_holds(value_bits):
    scene = Scene("replies")
    body = Message(WIDEN, 0, value_bits).to_bytes()
    widen = change(scene.box[2], kind=WIDEN, body=body)
    scene.refuses(widen, sender=2, match=f"values of {value_bits} bits")


def test_a_wish_for_wider_slots_holds_no_numbers():
    scene = Scene("replies")
    widen = change(scene.box[2], kind=WIDEN)
    scene.refuses(widen, sender=2, match="a widen of round .* holds numbers")
    scene.goes_on()


@pytest.mark.parametrize("sender", [0, 2])
def test_numbers_in_a_round_that_exchanges_none(sender):
    """Answering them would show one more masked difference."""
    scene = Scene("resting")
    numbers = scene.past(sender, REQUEST).body
    request = change(scene.box[sender], body=numbers)
    scene.refuses(
        scene.box[2 - sender],
        request,
        sender=sender,
        match=f"a request of round {request.round} holds numbers",
    )


@pytest.mark.parametrize("scale", [-1.0, float("inf"), float("nan")])
def test_a_scale_that_nobody_can_have_agreed_on(scale):
    scene = Scene("requests")
    lie = rewrite(scene.box[0], scale=scale)
    scene.refuses(lie, sender=0, match=f"request with scale {scale}")
    scene.goes_on()


@pytest.mark.parametrize("key_size", [64, 254, 512])
def test_a_key_of_another_size(key_size):
    scene = Scene("keys", "paillier")
    payload = public_payload(cipher(key_size, number=7))
    key = change(scene.box[2], body=Message(KEY, 0, payload=payload).to_bytes())
    match = f"a key of {key_size} bits, agreed are {KEY_SIZE}"
    scene.refuses(scene.box[0], key, sender=2, match=match)


def test_what_is_no_key():
    scene = Scene("keys", "paillier")
    body = scene.box[2].body
    key = change(scene.box[2], body=body[:HEADER] + b"\xff" * (len(body) - HEADER))
    scene.refuses(key, sender=2, match="is no public key")


@pytest.mark.parametrize("sender", [0, 2])
@pytest.mark.parametrize("stage", ["requests", "replies"])
def test_what_was_made_under_another_key(stage, sender):
    """Also where several requests are answered together the right one is named."""
    scene = Scene(stage, "paillier")
    genuine = Message.from_bytes(scene.box[sender].body, REQUEST, 0)
    layout = SlotLayout(K * F, genuine.value_bits, 12, "entrywise", KEY_SIZE)
    payload = cipher(KEY_SIZE, number=9).request([0] * K * F, layout)
    wrong = rewrite(scene.box[sender], payload=payload)
    scene.refuses(
        scene.box[2 - sender],
        wrong,
        sender=sender,
        match="message for key",
        error=WrongKeyError,
    )


@pytest.mark.parametrize("sender", [0, 2])
@pytest.mark.parametrize("stage", ["requests", "replies"])
def test_numbers_that_are_no_ciphertexts(stage, sender):
    scene = Scene(stage, "paillier")
    body = scene.box[sender].body
    zeros = change(scene.box[sender], body=body[:-200] + bytes(200))
    scene.refuses(scene.box[2 - sender], zeros, sender=sender, match="")


def test_two_corrupt_requests_name_one_of_their_senders():
    scene = Scene("requests", "paillier")
    bad = [change(scene.box[i], body=scene.box[i].body[:-1]) for i in (0, 2)]
    scene.refuses(*bad, sender=0, match="bytes")


def test_an_envelope_is_as_long_as_it_says():
    """What crosses a wire here: the header of an envelope and of a message."""
    scene = Scene("resting")
    assert scene.box[0].n_bytes == ENVELOPE_BYTES + HEADER
