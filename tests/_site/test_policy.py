"""What a policy allows, and the reasons by which it refuses."""

from dataclasses import replace

import pytest

from skppdnmf._site.policy import Job, Policy
from skppdnmf.exceptions import FederationError, PolicyError

POLICY = Policy(
    protocols=("secure-sum",),
    min_sites=3,
    max_components=10,
    max_n_init=4,
    max_iterations=50,
    min_other_samples_per_component=20,
)
JOB = Job("secure-sum", n_sites=3, n_components=10, n_init=4, max_iter=50)


def test_a_job_at_all_limits_is_allowed():
    POLICY.check(JOB)
    POLICY.check_samples(200, 10)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"protocol": "consensus"}, "protocols=['secure-sum']: the job has 'consensu"),
        ({"n_sites": 2}, "min_sites=3: the job has 2"),
        ({"n_components": 11}, "max_components=10: the job has n_components=11"),
        ({"n_init": 5}, "max_n_init=4: the job has n_init=5"),
        ({"max_iter": 51}, "max_iterations=50: the job has max_iter=51"),
        ({"protected": False}, "unprotected=false"),
    ],
)
def test_each_rule_refuses_alone_and_names_both_values(change, rule):
    (refusal,) = POLICY.refusals(replace(JOB, **change))
    assert rule in refusal
    with pytest.raises(PolicyError):
        POLICY.check(replace(JOB, **change))


def test_all_broken_rules_are_named():
    job = Job("consensus", 2, 11, 5, 51, protected=False)
    with pytest.raises(FederationError) as caught:
        POLICY.check(job)
    for rule in ("protocols", "min_sites", "max_components", "max_n_init"):
        assert rule in str(caught.value)


def test_rehearsals_are_taken_where_allowed():
    replace(POLICY, unprotected=True).check(replace(JOB, protected=False))


def test_too_few_samples_of_others_without_their_number():
    """How many the others have is not for everybody who reads the error."""
    with pytest.raises(PolicyError, match="min_other_samples_per_component=20") as one:
        POLICY.check_samples(199, 10)
    assert "199" not in str(one.value)
