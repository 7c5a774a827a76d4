"""Mutated messages end in named errors; `fuzz.py` tries as long as one likes."""

import io
import random
import re

import fuzz
import pytest

from skppdnmf._federation import local

N_SUBJECTS = 16
N_EACH = 15


@pytest.mark.parametrize("seed", [0, 1])
def test_what_is_mutated_is_refused_by_name(seed):
    out = io.StringIO()
    counts = fuzz.fuzz(seed, cases=N_EACH * N_SUBJECTS, out=out)
    assert len(counts) == N_SUBJECTS
    assert not any(found[fuzz.UNNAMED] for found in counts.values()), out.getvalue()
    for name, found in counts.items():
        assert found.total() == N_EACH
        assert found[fuzz.REFUSED] >= 1, name
    # Where nothing is sealed, totals that can be true are taken; most others
    # are refused.
    sums = [found for name, found in counts.items() if "sums" in name]
    unnoticed = sum(found[fuzz.UNNOTICED] for found in sums)
    assert unnoticed < sum(found[fuzz.REFUSED] for found in sums)
    assert any(counts[name][fuzz.WENT_ON] for name in counts if "sums" in name)


def test_an_error_without_a_name_is_found(monkeypatch):
    """The positive control: without one of the checks at the door."""

    def deliver(envelopes, sender, names, inboxes, here):
        for envelope in envelopes:
            inboxes[envelope.receiver].append(envelope)

    monkeypatch.setattr(local, "_deliver", deliver)
    nobody = (lambda data, _: data[:28] + b"\xff\xff\xff\xff" + data[32:],)
    monkeypatch.setattr(fuzz, "MUTATIONS", nobody)
    out = io.StringIO()
    counts = fuzz.fuzz(0, cases=2 * N_SUBJECTS, out=out)
    assert any(found[fuzz.UNNAMED] for found in counts.values())
    assert "IndexError" in out.getvalue()
    case = int(re.search(r"case (\d+) of seed 0", out.getvalue())[1])
    [again] = [
        found for found in fuzz.fuzz(0, 1, first=case, out=out).values() if found
    ]
    assert again[fuzz.UNNAMED] == 1


@pytest.mark.parametrize("mutation", fuzz.MUTATIONS)
def test_mutations_are_of_bytes_and_reproducible(mutation):
    data = bytes(range(200))
    for seed in range(20):
        changed = mutation(data, random.Random(seed))
        assert isinstance(changed, bytes)
        assert changed == mutation(data, random.Random(seed))
        assert fuzz.mutate(data, random.Random(seed)) != data
    assert any(mutation(data, random.Random(seed)) != data for seed in range(20))


def test_the_command_prints_counts(capsys):
    assert fuzz.main(["--cases", "16", "--seed", "3"]) == 0
    printed = capsys.readouterr().out
    for word in (*fuzz.OUTCOMES, *fuzz.RUNS, "nothing authenticates them"):
        assert word in printed
