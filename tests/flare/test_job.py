"""What a job asks of a site's policy."""

import json

import pytest

from skppdnmf import PrivateDistributedNMF
from skppdnmf.flare.job import JobSpec, parameters_of


def spec(seeded_masks=False, **parameters):
    model = PrivateDistributedNMF(3, random_state=0, **parameters)
    return JobSpec(parameters_of(model), "cohort", 3, 60.0, False, seeded_masks)


@pytest.mark.parametrize(
    ("parameters", "protected"),
    [
        ({}, True),
        ({"encryption": "bfv"}, True),
        ({"encryption": "bfv", "seeded_masks": True}, False),
        ({"key_size": 1024}, False),
        ({"encryption": "simulated"}, False),
        ({"encryption": None}, False),
        ({"protocol": "secure-sum", "encryption": None}, True),
    ],
)
def test_what_counts_as_protected(parameters, protected):
    assert spec(**parameters).asked(4).protected is protected


def test_a_protocol_without_envelopes_is_refused_on_both_ends():
    with pytest.raises(ValueError, match="protocol='mpc' sends no envelopes"):
        spec(protocol="mpc")
    text = json.loads(spec().to_text())
    text["parameters"]["protocol"] = "mpc"
    with pytest.raises(ValueError, match="protocol='mpc' sends no envelopes"):
        JobSpec.from_text(json.dumps(text)).asked(4)
