"""The protocols by name, and what a fit asks of each."""

import inspect
from typing import get_type_hints

import numpy as np
import pytest
from sklearn.utils._param_validation import StrOptions

from skppdnmf import PrivateDistributedNMF
from skppdnmf._agent import ENVELOPE_BYTES, Agent, Departure, Envelope, Report, Step
from skppdnmf._consensus.messages import KIND_NAMES, Message
from skppdnmf._data.graph import make_network
from skppdnmf._data.partition import split_samples
from skppdnmf._federation.local import run_local
from skppdnmf._fit.protocols import PROTOCOLS, protocol_of
from skppdnmf._fit.seeds import common_start, draw_seeds
from skppdnmf._protocol import Cost, FitProtocol, Hooks, Plan, Setting
from skppdnmf._sealing.credentials import LocalCredentials
from skppdnmf._secure_sum.messages import SUM_KIND_NAMES, SumMessage

MESSAGES = {
    "consensus": (Message, KIND_NAMES),
    "secure-sum": (SumMessage, SUM_KIND_NAMES),
}
SIZES = (5, 0, 3, 9)
RUN = bytes(range(16))


@pytest.fixture(params=MESSAGES)
def protocol(request):
    return PROTOCOLS[request.param]


def setting_of(protocol, n_agents=4, **parameters):
    estimator = PrivateDistributedNMF(
        **{
            "n_components": 2,
            "protocol": protocol.name,
            "encryption": "simulated",
            "max_iter": 3,
            "tol": 0,
            "random_state": 0,
            **parameters,
        }
    )
    seeds = draw_seeds(0)
    scaling = protocol.start_scaling(estimator)
    start = common_start(estimator.init, 2, 6, seeds.start, scaling)
    return Setting(estimator, make_network("ring", n_agents, 0), start, seeds)


def parts_of(sizes=SIZES):
    rng = np.random.default_rng(0)
    return [rng.exponential(size=(size, 6)) for size in sizes]


def build(protocol, hooks=None, sizes=SIZES, **parameters):
    setting = setting_of(protocol, len(sizes), **parameters)
    names = [f"agent {k}" for k in range(len(sizes))]
    plan = protocol.plan(setting)
    return plan.build(parts_of(sizes), names, RUN, hooks or Hooks()), names


def test_protocols_are_those_that_the_estimator_allows():
    constraint = PrivateDistributedNMF._parameter_constraints["protocol"]
    (options,) = (one for one in constraint if isinstance(one, StrOptions))
    assert options.options == set(PROTOCOLS)
    assert set(MESSAGES) == {
        name for name, protocol in PROTOCOLS.items() if protocol.has_agents
    }
    for name, protocol in PROTOCOLS.items():
        assert protocol.name == name
        assert protocol_of(PrivateDistributedNMF(protocol=name)) is protocol
    codes = [protocol.code for protocol in PROTOCOLS.values()]
    assert len(set(codes)) == len(codes)
    assert all(0 < code < 256 for code in codes)  # of the header's one byte


def members(contract):
    return {
        name: value
        for name, value in vars(contract).items()
        if inspect.isfunction(value) and not name.startswith("_")
    }


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
def test_each_satisfies_the_contract(protocol):
    for name, kind in get_type_hints(FitProtocol).items():
        assert isinstance(getattr(protocol, name), kind)
    for name, asked in members(FitProtocol).items():
        expected = list(inspect.signature(asked).parameters)[1:]
        found = inspect.signature(getattr(protocol, name)).parameters
        assert list(found) == expected, name
        assert get_type_hints(getattr(protocol, name)) == get_type_hints(asked), name


def test_each_has_agents_that_satisfy_theirs(protocol):
    agents, _ = build(protocol)
    for agent in agents:
        for name, asked in members(Agent).items():
            expected = list(inspect.signature(asked).parameters)[1:]
            found = inspect.signature(getattr(agent, name)).parameters
            assert list(found) == expected, name


def test_plans_are_ready_to_be_run(protocol):
    setting = setting_of(protocol)
    plan = protocol.plan(setting)
    assert isinstance(plan, Plan)
    assert plan.starts.shape[1:] == setting.start.shape
    np.testing.assert_array_equal(plan.starts[0], setting.start)
    assert plan.backend in ("threads", "processes")
    assert plan.on_dropout in ("raise", "continue", None)
    agents, names = build(protocol)
    assert len(agents) == len(names) == len(SIZES)
    outcome = run_local(agents, names, on_dropout=plan.on_dropout, serialise=True)
    assert [report.iteration for report in outcome.reports] == [3] * len(SIZES)
    assert all(report.final for report in outcome.reports)


def test_agents_answer_in_steps_of_sealed_envelopes(protocol):
    message, kinds = MESSAGES[protocol.name]
    agents, names = build(protocol)
    seen = []
    run_local(agents, names, tap=lambda turn, envelope: seen.append(envelope))
    assert seen
    for envelope in seen:
        assert isinstance(envelope, Envelope)
        assert isinstance(envelope.body, message)
        assert (envelope.run, envelope.protocol) == (RUN, protocol.code)
        assert envelope.kind in range(len(kinds))
        assert envelope.sender != envelope.receiver
        assert envelope.n_bytes == len(envelope.to_bytes()) > ENVELOPE_BYTES
    fresh, _ = build(protocol)
    for agent in fresh:
        step = agent.start()
        assert isinstance(step, Step)
        assert (step.report, step.finished) == (None, False)
        assert agent.advance([])._replace(settled=False) == Step([])


def test_envelopes_of_one_protocol_are_refused_by_the_others():
    agents = {name: build(PROTOCOLS[name])[0] for name in MESSAGES}
    sent = {name: [a.start() for a in party] for name, party in agents.items()}
    for name, steps in sent.items():
        for other in MESSAGES:
            if other == name:
                continue
            for envelope in (e for step in steps for e in step.envelopes):
                receiver = agents[other][envelope.receiver]
                with pytest.raises(ValueError, match="of protocol") as caught:
                    receiver.advance([envelope])
                assert caught.value.sender == envelope.sender


def test_one_that_is_asked_to_stop_ends_the_fit_of_all(protocol):
    for who in range(len(SIZES)):
        agents, names = build(protocol, max_iter=200)
        asked = []

        def ask(turn, envelope, agents=agents, asked=asked, who=who):
            if turn == 40 and not asked:
                asked.append(agents[who].stop())

        outcome = run_local(agents, names, tap=ask)
        (iteration,) = {report.iteration for report in outcome.reports}
        assert asked
        assert iteration < 40
        assert all(report.final for report in outcome.reports)
        assert not outcome.converged


@pytest.mark.parametrize("observed", [True, False])
def test_only_the_observer_is_told_what_others_may_not_know(protocol, observed):
    agents, names = build(protocol, Hooks(observed=observed))
    seen = []

    def observer(reports, n_bytes):
        seen.extend(reports)
        return False

    run_local(agents, names, observer=observer)
    assert len(seen) == 3 * len(SIZES)
    told = {report.witness is not None for report in seen}
    # Under one copy for all there is nothing more to tell.
    assert told == {observed and not protocol.agrees}
    assert all(isinstance(report, Report) for report in seen)


def test_what_agrees_agrees_to_the_last_bit(protocol):
    agents, names = build(protocol)
    outcome = run_local(agents, names)
    first, *others = [report.H for report in outcome.reports]
    assert all(np.array_equal(H, first) for H in others) == protocol.agrees


def test_who_cannot_do_without_others_says_so(protocol):
    plan = protocol.plan(setting_of(protocol))
    agents, _ = build(protocol)
    for agent in agents:
        agent.start()
    if plan.on_dropout is None:
        with pytest.raises(RuntimeError, match=r"agent 0.*have left"):
            agents[0].depart(Departure(1, (2,)))
    else:
        assert isinstance(agents[0].depart(Departure(1, (2,))), Step)


def test_costs_are_counted_without_data(protocol):
    setting = setting_of(protocol)
    cost = protocol.cost(setting, None)
    assert isinstance(cost, Cost)
    assert cost.exchanges > 0
    assert cost.seconds == 0
    _, names = build(protocol)
    agents, _ = build(protocol, Hooks(credentials=LocalCredentials(names, RUN)))
    assert run_local(agents, names).traffic.total_bytes == cost.bytes


def test_remarks_and_advice_are_texts(protocol):
    setting = setting_of(protocol)
    estimator = setting.estimator.set_params(partition=3)
    fitted = estimator.fit(parts_of([9])[0])
    assert isinstance(protocol.advice(fitted), str)
    agents, names = build(protocol)
    reports = run_local(agents, names).reports
    assert all(isinstance(one, str) for one in protocol.remarks(fitted, reports))
    partition = split_samples(30, [10, 10, 10])
    network = make_network("path", 3, 0)
    for message in protocol.privacy(estimator, network, partition, 2):
        assert isinstance(message, str)


def test_one_agent_alone_sends_nothing(protocol):
    agents, names = build(protocol, sizes=(7,))
    outcome = run_local(agents, names)
    assert outcome.traffic.total_bytes == 0
    assert protocol.cost(setting_of(protocol, 1), None).bytes == 0
