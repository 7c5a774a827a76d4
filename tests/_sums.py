"""Helpers shared by the tests of the secure sum."""

import warnings
from contextlib import contextmanager

import networkx as nx
import numpy as np
from _helpers import RUN
from scipy import stats

from skppdnmf import PrivateDistributedNMF
from skppdnmf import _keystream as keystream
from skppdnmf._agent import Departure, Envelope
from skppdnmf._data.graph import make_network
from skppdnmf._nmf.penalties import right_penalty
from skppdnmf._protocol import call, nobody
from skppdnmf._secure_sum.agent import SumAgent
from skppdnmf._secure_sum.left_factor import LeftPath
from skppdnmf._secure_sum.settings import PathSettings
from skppdnmf._secure_sum.tree import SpanningTrees
from skppdnmf.exchange import SUM_UP, SecureSum, SumMessage, make_key_graph

# What is uniform has a smaller p-value about once in 10**12 tests.
RARE = 1e-12


def make_sums(n_agents, graph="random", degree=None, seed=0, credentials=nobody):
    """Every agent's side of the secure sum, all pairs sharing keys by default."""
    network = make_network(graph, n_agents, seed) if isinstance(graph, str) else graph
    trees = SpanningTrees(network)
    keys = [np.empty(0, dtype=np.intp)]
    if n_agents > 1:
        degree = n_agents - 1 if degree is None else degree
        keys = make_key_graph(n_agents, degree, np.random.default_rng(seed))
    return [
        SecureSum(i, f"agent {i}", trees, keys, credentials=credentials(i))
        for i in range(n_agents)
    ]


def model(n_components=3, **given):
    """An estimator with few iterations."""
    parameters = {
        "protocol": "secure-sum", "partition": 5, "max_iter": 12, "tol": 0,
        "random_state": 0, "n_jobs": 1,
    }  # fmt: skip
    return PrivateDistributedNMF(n_components, **{**parameters, **given})


def error_of(fitted, X):
    """Error of the factorisation, relative to the data."""
    return fitted.reconstruction_err_ / np.linalg.norm(X)


def words_of(rng, n_words):
    """Words of all magnitudes."""
    return rng.integers(0, 2**64, n_words, dtype=np.uint64)


def over_a_wire(message):
    """The message as its receiver reads it."""
    return SumMessage.from_bytes(message.to_bytes(), message.kind, message.step)


def carry(sums, summands, rng=None):
    """Run the sums of ``summands[step][agent]``; messages go as bytes.

    With `rng` one agent at a time takes some of its messages in any order.

    Returns
    -------
    totals : list of lists of Total
        What each agent has learnt.
    sent : list of (int, int, SumMessage)
        Senders, receivers and messages.
    """
    totals = [[] for _ in sums]
    boxes = [[] for _ in sums]
    sent = []

    def post(i, letters):
        for receiver, message in letters:
            sent.append((i, receiver, message))
            boxes[receiver].append((i, over_a_wire(message)))

    def deliver(i, arrived):
        letters, total = sums[i].advance(arrived)
        post(i, letters)
        while total is not None:
            totals[i].append(total)
            if len(totals[i]) == len(summands):
                sums[i].end()
                break
            post(i, sums[i].begin(summands[len(totals[i])][i]))
            letters, total = sums[i].advance([])
            post(i, letters)

    for i, one in enumerate(sums):
        post(i, one.start(summands[0][i]))
    idle = 0
    while any(len(learnt) < len(summands) for learnt in totals):
        before = len(sent), sum(map(len, totals))
        turn = range(len(sums)) if rng is None else [int(rng.integers(len(sums)))]
        for i in turn:
            n_taken = len(boxes[i])
            if rng is not None:
                boxes[i] = [boxes[i][k] for k in rng.permutation(n_taken)]
                n_taken = int(rng.integers(n_taken + 1))
            arrived, boxes[i] = boxes[i][:n_taken], boxes[i][n_taken:]
            deliver(i, arrived)
        idle = idle + 1 if before == (len(sent), sum(map(len, totals))) else 0
        assert idle < 200 * len(sums), "no agent can go on"
    return totals, sent


class Summing:
    """A side of the secure sum that brings its summands until all are summed."""

    def __init__(self, one, summands):
        self.one = one
        self.summands = summands
        self.totals = []
        self.begun = 0
        self.over = False

    def start(self):
        self.begun += 1
        return self._addressed(self.one.start(self.summands[0]))

    def advance(self, arrived):
        return self._take(*self.one.advance(arrived))

    def depart(self, departure):
        return self._take(*self.one.drop(*departure.agents))

    def stop(self):
        self.one.stop()

    def _addressed(self, letters):
        return [
            (receiver, (self.one.number, over_a_wire(message)))
            for receiver, message in letters
        ]

    def _take(self, letters, total):
        letters = list(letters)
        while total is not None or self.one.awaits_summand:
            assert not self.over, "a sum after the last"
            if total is not None:
                self.totals.append(total)
                self.over = total.last or len(self.totals) == len(self.summands)
                if self.over:
                    self.one.end()
                    break
                self.begun += 1
            letters += self.one.begin(self.summands[len(self.totals)])
            more, total = self.one.advance([])
            letters += more
        return self._addressed(letters)


class Reporting:
    """An agent of the secure sum that keeps its reports; envelopes go as bytes."""

    def __init__(self, agent):
        self.agent = agent
        self.reports = []
        self.over = False

    def start(self):
        return self._take(self.agent.start())

    def advance(self, arrived):
        return self._take(self.agent.advance(arrived))

    def depart(self, departure):
        return self._take(self.agent.depart(departure))

    def stop(self):
        self.agent.stop()

    def _take(self, step):
        if step.report is not None:
            assert not self.over, "a report after the last"
            self.reports.append(step.report)
        self.over = step.finished
        return [
            (envelope.receiver, Envelope.from_bytes(envelope.to_bytes()))
            for envelope in step.envelopes
        ]


class RandomOrder:
    """Lets one party a move go on; messages and news travel as they like.

    All are told of departures in the same order, each at its own time. With the
    network nobody leaves who would part the others.
    """

    def __init__(self, parties, rng, network=None):
        self.parties = parties
        self.rng = rng
        self.links = network and nx.from_numpy_array(network.adjacency)
        self.boxes = [[] for _ in parties]
        self.present = set(range(len(parties)))
        self.departures = []
        self.told = [0] * len(parties)
        self.moves = 0

    def post(self, sent):
        for receiver, message in sent:
            self.boxes[receiver].append(message)

    def move(self):
        i = int(self.rng.choice(sorted(self.present)))
        if self.told[i] < len(self.departures) and self.rng.random() < 0.4:
            self.told[i] += 1
            self.post(self.parties[i].depart(self.departures[self.told[i] - 1]))
            return
        order = self.rng.permutation(len(self.boxes[i]))
        n_taken = int(self.rng.integers(len(order) + 1))
        arrived = [self.boxes[i][k] for k in order[:n_taken]]
        self.boxes[i] = [self.boxes[i][k] for k in sorted(order[n_taken:])]
        self.post(self.parties[i].advance(arrived))

    def leave(self, group):
        """Those of a group leave that are there, if the others can go on."""
        group = sorted(self.present & set(group))
        left = self.present - set(group)
        parted = self.links and left and not nx.is_connected(self.links.subgraph(left))
        if group and left and not parted:
            self.present = left
            self.departures.append(Departure(len(self.departures) + 1, tuple(group)))

    def run(self, leaving=(), asking=(), ask=None):
        """Groups leave, and are asked to stop, at these moves: ``(move, group)``."""
        for party in self.parties:
            self.post(party.start())
        while not self.over():
            for moment, group in leaving:
                if moment == self.moves:
                    self.leave(group)
            for moment, group in asking:
                for i in self.present & set(group) if moment == self.moves else ():
                    ask(i)
                    self.parties[i].stop()
            self.move()
            self.moves += 1
            assert self.moves < 50_000, "no agent can go on"

    def over(self):
        return all(
            self.parties[i].over and self.told[i] == len(self.departures)
            for i in self.present
        )


def exact_sum(summands):
    """The sum by whole numbers, modulo 2**64."""
    return [sum(map(int, column)) % 2**64 for column in zip(*summands, strict=True)]


def own_parts(sent, n_agents, step, epoch=0):
    """What each agent but the root adds to what it receives in a sum: its masked part.

    Everything that crosses a link on the way up is a sum of these.
    """
    received = dict.fromkeys(range(n_agents), 0)
    given = {}
    for i, j, message in sent:
        if (message.kind, message.epoch, message.step) == (SUM_UP, epoch, step):
            received[j] = message.words + received[j]
            given[i] = message.words
    return {i: words - received[i] for i, words in given.items()}


def p_uniform(words):
    """The least p-value of all bytes being uniform, and of each bit being fair."""
    data = np.ascontiguousarray(np.concatenate(words), dtype="<u8")
    by_place = data.view(np.uint8).reshape(-1, 8)
    counts = np.bincount(by_place.ravel(), minlength=256)
    mean = counts.mean()
    bytes_p = stats.chi2.sf(((counts - mean) ** 2).sum() / mean, 255)
    ones = np.unpackbits(by_place, axis=1).sum(axis=0)
    deviation = np.abs(ones - len(data) / 2).max()
    bits_p = 2 * np.exp(-2 * deviation**2 / len(data))  # Hoeffding's bound
    return min(float(bytes_p), float(bits_p))


def path_settings(n_agents, alpha_W=0.0, alpha_H=0.0, l1_ratio=0.0, **given):
    """Settings of a path, for six features unless told otherwise."""
    n_features = given.pop("n_features", 6)
    settings = {"max_iter": 12, "tol": 0.0, "n_max": 1e6}
    return PathSettings(
        n_agents=n_agents,
        right_penalty=right_penalty(alpha_W, l1_ratio, n_features),
        left_alpha=alpha_H,
        l1_ratio=l1_ratio,
        **{**settings, **given},
    )


def make_sum_agents(
    parts,
    starts,
    graph="random",
    compute=call,
    degree=None,
    credentials=nobody,
    **given,
):
    """Agents of the secure sum, which compute what is common each by itself."""
    settings = path_settings(len(parts), n_features=starts.shape[-1], **given)
    network = make_network(graph, len(parts), 0) if isinstance(graph, str) else graph
    sums = make_sums(len(parts), network, degree, credentials=credentials)
    return [
        SumAgent(
            i,
            [f"agent {k}" for k in range(len(parts))],
            part,
            LeftPath(starts, settings),
            sums[i],
            network.neighbours[i].tolist(),
            RUN,
            compute,
        )
        for i, part in enumerate(parts)
    ]


@contextmanager
def ignored(category):
    """No warnings of this category."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category)
        yield


class KeyStreams:
    """Takes note of every mask stream that is expanded: seed, counter and words."""

    def __init__(self, monkeypatch):
        self.used = []
        genuine = keystream.Cipher
        streams = self

        class Recorded:
            def __init__(self, algorithm, mode):
                self.key = algorithm.key
                self.cipher = genuine(algorithm, mode)
                self._note(mode.nonce)

            def _note(self, nonce):
                self.words = []
                streams.used.append((self.key, nonce, self.words))

            def encryptor(self):
                self.encryptor_ = self.cipher.encryptor()
                return self

            def reset_nonce(self, nonce):
                self.encryptor_.reset_nonce(nonce)
                self._note(nonce)

            def update_into(self, data, target):
                n_bytes = self.encryptor_.update_into(data, target)
                given = np.frombuffer(bytes(data), dtype="<u8")
                taken = np.frombuffer(bytes(target[:n_bytes]), dtype="<u8")
                self.words.append(given ^ taken)
                return n_bytes

        monkeypatch.setattr(keystream, "Cipher", Recorded)

    def check(self):
        """Each stream by the two ends of one pair, and no word in two streams.

        By one of them where they share a process, which leaves it to the other; and of
        a total that was sent to an agent that has dropped out.
        """
        ends, links = {}, {}
        for key, nonce, words in self.used:
            # Messages on links are numbered; masks start anywhere.
            kind = ends if any(nonce[8:]) else links
            kind.setdefault((key, nonce), []).append(np.concatenate(words))
        assert links
        assert not {key for key, _ in links} & {key for key, _ in ends}
        assert set(map(len, ends.values())) <= {1, 2}
        assert set(map(len, links.values())) <= {1, 2}
        for one, *others in [*ends.values(), *links.values()]:
            for other in others:
                np.testing.assert_array_equal(one, other)
        once = [words[0] for words in (*ends.values(), *links.values())]
        _, counts = np.unique(np.concatenate(once), return_counts=True)
        assert set(counts) == {1}
        return ends
