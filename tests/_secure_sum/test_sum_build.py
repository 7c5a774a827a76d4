"""Agents are built from public facts and their own data, each wherever it likes."""

import multiprocessing

import numpy as np
import pytest
from _public_facts import build, facts_of, public_facts

from skppdnmf._agent import Departure


@pytest.fixture(scope="module")
def elsewhere():
    """Another process, which has nothing of this one."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        yield pool


@pytest.mark.parametrize("n_agents", [2, 5, 30])
def test_agents_in_other_processes_and_with_other_data_agree(elsewhere, n_agents):
    here = public_facts(n_agents, random_state=3, data_seed=0, number=0)
    there = elsewhere.apply(public_facts, (n_agents, 3, 1, n_agents - 1))
    assert here == there


@pytest.mark.parametrize("name", ["keys", "trees", "starts"])
def test_another_seed_is_another_run(name):
    facts = [public_facts(30, random_state=s, data_seed=0, number=0) for s in (3, 4)]
    assert facts[0][name] != facts[1][name]


def test_data_and_sizes_have_no_effect():
    one, other = (build(9, 5, data_seed, graph="complete") for data_seed in (0, 1))
    assert {agent.X.shape for agent in one} != {agent.X.shape for agent in other}
    facts = facts_of(one[0], leaving=(4, 2))
    for agent in (*one, *other):
        assert facts_of(agent, leaving=(4, 2)) == facts


def test_agents_of_separate_builds_work_together():
    """As parties of a network do, who build nobody but themselves."""
    agents = [build(4, 2, data_seed=i, graph="complete")[i] for i in range(4)]
    boxes = [[] for _ in agents]
    last = {}
    steps = [(i, agent.start()) for i, agent in enumerate(agents)]
    gone = set()
    for turn in range(200):
        for _, step in steps:
            for envelope in step.envelopes:
                boxes[envelope.receiver].append(envelope)
        if turn == 8:
            gone = {3}
            steps = [(i, agents[i].depart(Departure(1, (3,)))) for i in range(3)]
            continue
        steps = []
        for i in sorted(set(range(4)) - gone):
            arrived, boxes[i] = boxes[i], []
            steps.append((i, agents[i].advance(arrived)))
            if steps[-1][1].report is not None:
                last[i] = steps[-1][1].report
    assert {last[i].final for i in range(3)} == {True}
    for i in range(3):
        np.testing.assert_array_equal(last[i].H, last[0].H)
