"""Sites and a relay without FLARE: results, refusals, and what stays on the disk."""

import json
import re

import numpy as np
import pytest
from _sites import (
    NAMES,
    SIZES,
    events,
    federate,
    last,
    make_job,
    make_sites,
    samples,
    split,
)
from numpy.testing import assert_allclose, assert_array_equal

from skppdnmf import PrivateDistributedNMF
from skppdnmf._agent import Envelope
from skppdnmf._sealing.credentials import Credentials
from skppdnmf._sealing.identity import Identity
from skppdnmf.exceptions import FederationError
from skppdnmf.flare import load
from skppdnmf.flare.frames import Answer, join

SUMS = {"protocol": "secure-sum", "max_iter": 8, "tol": 0, "random_state": 0}
CONSENSUS = {
    "protocol": "consensus",
    "encryption": "simulated",
    "max_iter": 3,
    "tol": 0,
    "random_state": 0,
}
REHEARSAL = {"protocols": ["secure-sum", "consensus"], "unprotected": True}
ALL_REHEARSE = dict.fromkeys(NAMES, REHEARSAL)


def job(parameters=SUMS, n_components=3, **given):
    seeded = parameters["protocol"] == "consensus"
    estimator = PrivateDistributedNMF(n_components, **parameters)
    return make_job(estimator, seeded_masks=seeded, **given)


def fails(run, match):
    with pytest.raises(FederationError, match=match):
        run.to_the_end()


def in_one_process(X, **parameters):
    return PrivateDistributedNMF(3, partition=list(SIZES), **parameters).fit(X)


def losing(lost, after):
    """Have a site be gone after some of its turns."""
    turns = []

    def meddle(name, method, given, call):
        if name == lost and method != "offer":
            turns.append(method)
            if len(turns) > after:
                raise TimeoutError("gone")
        return call(*given)

    return meddle


@pytest.mark.parametrize(
    "parameters",
    [
        SUMS,
        {**SUMS, "adjacency": "path", "alpha_W": 0.01, "n_init": 2},
        {**SUMS, "normalize": "max"},
        CONSENSUS,
    ],
    ids=["sums", "path", "normalised", "consensus"],
)
def test_bit_for_bit_as_in_one_process(tmp_path, parameters):
    X = samples()
    root = make_sites(tmp_path / "sites", X, ALL_REHEARSE)
    run, direct = federate(root, job(parameters), tmp_path / "relay")
    run.to_the_end()
    state = run.progress()
    assert state["ended"] == "finished"
    model = in_one_process(X, **parameters)
    for k, (name, folder) in enumerate(direct.results(state["run"]).items()):
        here = load(folder)
        expected = model.agent_components_[k]
        if "normalize" in parameters:
            expected = model.components_
        assert_array_equal(here.components_, expected)
        W = np.load(folder / "right_factor.npy")
        assert_array_equal(W, here.transform(split(X)[k]))
        assert_array_equal(here.adjacency_, model.adjacency_)
        done = last(root, name)
        assert (done["event"], done["rows"], done["K"]) == ("finished", SIZES[k], 3)
        assert done["members"] == list(NAMES)
        assert done["exchanges"] == here.n_exchanges_ == model.n_exchanges_
        signed = json.loads((folder / "agreement.json").read_text())
        assert len(signed["signatures"]) == len(NAMES)
    assert not (tmp_path / "relay" / "components.npz").exists()


def test_sites_sign_the_keys_of_their_masks_and_all_that_ends_a_run(
    tmp_path, monkeypatch
):
    """A tree parent could swap keys of masks that are not signed."""
    signed, genuine = set(), Credentials.sign

    def sign(self, purpose, *fields):
        signed.add((self.number, purpose))
        return genuine(self, purpose, *fields)

    monkeypatch.setattr(Credentials, "sign", sign)
    root = make_sites(tmp_path / "sites", samples())
    run, _ = federate(root, job(), tmp_path / "relay")
    run.to_the_end()
    purposes = b"hello", b"mask key", b"agreement"
    assert signed == {(k, one) for k in range(len(NAMES)) for one in purposes}


def test_the_error_of_all_samples_is_that_of_one_process(tmp_path):
    X = samples()
    root = make_sites(tmp_path / "sites", X)
    run, direct = federate(root, job(), tmp_path / "relay")
    run.to_the_end()
    here = load(direct.results(run.progress()["run"])["site-1"])
    error = in_one_process(X, **SUMS).history_["shared_error"]
    assert error[-1] < error[0]
    assert_allclose(here.history_["shared_error"], error, rtol=0.02)
    assert run.progress()["error"] is None  # a submitter who gets nothing


def test_components_go_to_the_submitter_where_all_allow_it(tmp_path):
    X = samples()
    allowed = {name: {"components_to_submitter": True} for name in NAMES}
    spec = job(return_components=True)
    root = make_sites(tmp_path / "sites", X, allowed)
    run, _ = federate(root, spec, tmp_path / "relay")
    run.to_the_end()
    model = load(tmp_path / "relay" / "components.npz")
    assert_array_equal(model.components_, in_one_process(X, **SUMS).components_)
    assert 0 < run.progress()["error"] < 1
    del allowed["site-1"]
    root = make_sites(tmp_path / "others", X, allowed)
    run, _ = federate(root, spec, tmp_path / "relay2")
    fails(run, "site-1: PolicyError: .*components_to_submitter=false")
    assert not (tmp_path / "relay2" / "components.npz").exists()


@pytest.mark.parametrize(
    ("policy", "parameters", "reason"),
    [
        ({"protocols": ["consensus"]}, SUMS, "protocols=.'consensus'.: the job has"),
        ({"min_sites": 5}, SUMS, "min_sites=5: the job has 4"),
        ({"max_components": 2}, SUMS, "max_components=2: the job has n_components=3"),
        ({"max_n_init": 2}, {**SUMS, "n_init": 3}, "max_n_init=2"),
        ({"max_iterations": 7}, SUMS, "max_iterations=7"),
        ({"protocols": ["consensus"]}, CONSENSUS, "unprotected=false"),
        ({"components_to_submitter": False}, SUMS, "components_to_submitter=false"),
        ({"min_sites": 4}, SUMS, "min_sites=4: the job goes on with min_sites=3"),
    ],
)
def test_a_policy_refuses_before_any_data_are_read(
    tmp_path, policy, parameters, reason
):
    asked = "components_to_submitter" in policy
    root = make_sites(tmp_path / "sites", None, {**ALL_REHEARSE, "site-3": policy})
    if asked:  # allowed at the others
        for name in NAMES[:2] + NAMES[3:]:
            file = root / name / "skppdnmf.toml"
            file.write_text(file.read_text() + "components_to_submitter = true\n")
    # What is not there cannot have been read.
    for name in NAMES:
        (root / name / "cohort.npy").unlink()
    spec = job(parameters, return_components=asked)
    run, _ = federate(root, spec, tmp_path / "relay")
    fails(run, f"site-3: PolicyError: site-3 refuses the job: .*{reason}")
    assert last(root, "site-3")["event"] == "failed"
    for name in ("site-1", "site-2", "site-4"):
        assert "PolicyError" in last(root, name)["error"]
        assert "begun" not in [one["event"] for one in events(root, name)]


def test_too_few_samples_of_others_end_it_before_any_product_is_summed(tmp_path):
    sent = []
    policy = {"site-2": {"min_other_samples_per_component": 30}}
    root = make_sites(tmp_path / "sites", None, policy)
    run, _ = federate(
        root, job(), tmp_path / "relay", tap=lambda _, one: sent.append(one)
    )
    assert sum(SIZES) - SIZES[1] == 89  # less than 3 x 30
    fails(run, "site-2 goes on no further: min_other_samples_per_component=30")
    # A masked summand with products takes thousands of bytes.
    assert max(one.n_bytes for one in sent if one.sender == 1) < 3000


def test_another_version_is_refused_by_name(tmp_path):
    root = make_sites(tmp_path / "sites")
    spec = job()
    old = json.dumps({**json.loads(spec.to_text()), "version": "0.9"})

    def meddle(name, method, given, call):
        if name == "site-2" and method == "offer":
            call.__self__._text = old
        return call(*given)

    run, _ = federate(root, spec, tmp_path / "relay", meddle)
    fails(run, "site-2: ProtocolVersionError: .*'0.9', this site has '1.")
    assert "ProtocolVersionError" in last(root, "site-1")["error"]


@pytest.mark.parametrize("fault", ["missing", "nan", "negative", "other"])
def test_faulty_data_end_the_run_and_their_values_stay_at_home(tmp_path, fault):
    data = split(samples())[2].copy()
    data[3, 4] = {"nan": np.nan, "negative": -123.456}.get(fault, 1.0)
    root = make_sites(tmp_path / "sites", None, data={"site-3": data})
    file = root / "site-3" / "cohort.npy"
    if fault == "missing":
        file.unlink()
    elif fault == "other":
        file.write_bytes(b"words, and no array")
    run, _ = federate(root, job(), tmp_path / "relay")
    fails(run, "site-3: CommandError: site-3 cannot go on; its own log says why")
    own = last(root, "site-3")["error"]
    assert re.search("no such file|missing|negative|cannot be read", own)
    for name in ("site-1", "site-2", "site-4"):
        error = last(root, name)["error"]
        assert "CommandError" in error
        assert "123.456" not in error
        assert "cohort" not in error


@pytest.mark.parametrize(
    ("columns", "match"),
    [
        (["a", "x", "c"], "column 1, '[bx]' here, has another name there; 3 features"),
        (["a", "b"], "(2 features here, 3|3 features here, 2) there"),
    ],
)
@pytest.mark.parametrize("named", [True, False])
def test_the_first_feature_that_differs_is_named(tmp_path, columns, match, named):
    policies = {name: {"share_feature_names": named} for name in NAMES}
    root = make_sites(tmp_path / "sites", None, policies)
    rng = np.random.default_rng(0)
    for name in NAMES:
        here = columns if name == "site-4" else ["a", "b", "c"]
        rows = [here, *rng.integers(1, 9, size=(9, len(here))).tolist()]
        text = "\n".join(",".join(map(str, row)) for row in rows)
        (root / name / "cohort.csv").write_text(text + "\n")
        file = root / name / "skppdnmf.toml"
        file.write_text(file.read_text().replace("cohort.npy", "cohort.csv"))
    run, _ = federate(root, job(n_components=2), tmp_path / "relay")
    if not named:
        match = match.replace(", '[bx]' here,", "")
    fails(run, f"FeatureMismatchError: .*{match}")


def checkpoint(folder):
    with np.load(folder / "checkpoint.npz") as archive:
        return dict(archive)


@pytest.mark.parametrize("after", range(9, 15))
def test_a_run_that_died_starts_again_from_its_checkpoint(tmp_path, after):
    """Wherever it was cut off: from the last left factor that all have."""
    X = samples()
    root = make_sites(tmp_path / "sites", X)
    run, direct = federate(root, job(), tmp_path / "relay", losing("site-2", after))
    fails(run, "site-2 cannot be reached")
    died = run.progress()["run"]
    kept = [checkpoint(folder) for folder in direct.results(died).values()]
    iterations = [int(one["iteration"]) for one in kept]
    assert max(iterations) - min(iterations) <= 1
    left = kept[iterations.index(min(iterations))]["components"]
    for one, iteration in zip(kept, iterations, strict=True):
        same = one["components" if iteration == min(iterations) else "before"]
        assert_array_equal(same, left)
    for name in ("site-1", "site-3", "site-4"):
        assert "cannot be reached" in last(root, name)["error"]
    run, direct = federate(root, job(resume=died), tmp_path / "relay2")
    run.to_the_end()
    assert run.progress()["run"] != died
    resumed = load(direct.results(run.progress()["run"])["site-3"])
    expected = in_one_process(X, **{**SUMS, "init": left})
    assert_array_equal(resumed.components_, expected.components_)


def keep(root, run, **kept):
    for name in NAMES:
        folder = root / name / "results" / run
        folder.mkdir(parents=True)
        H = np.ones((3, 12))
        np.savez(folder / "checkpoint.npz", components=H, before=H, iteration=5)
    for name, arrays in kept.items():
        file = root / name / "results" / run / "checkpoint.npz"
        file.unlink()
        if arrays is not None:
            np.savez(file, **arrays)


@pytest.mark.parametrize(
    ("kept", "match"),
    [
        ({"components": 1 + np.eye(3, 12), "iteration": 5}, "FactsMismatch.*starts"),
        ({"components": np.ones((3, 12)), "iteration": 2}, "ends with iteration 5; a"),
        (None, "site-4: resume='abab.*has left no checkpoint here"),
    ],
    ids=["others", "far behind", "none"],
)
def test_sites_with_other_checkpoints_do_not_begin(tmp_path, kept, match):
    root = make_sites(tmp_path / "sites")
    keep(root, "ab" * 16, **{"site-4": kept})
    run, _ = federate(root, job(resume="ab" * 16), tmp_path / "relay")
    fails(run, match)


def test_a_relay_cannot_have_sites_start_from_different_iterations(tmp_path):
    root = make_sites(tmp_path / "sites")
    H = np.ones((3, 12))
    keep(root, "ab" * 16)
    archive = {"components": H, "before": H + np.eye(3, 12), "iteration": 5}
    keep(root, "cd" * 16, **dict.fromkeys(NAMES, archive))

    def meddle(name, method, given, call):
        if name == "site-2" and method == "prepare":
            return call(b'{"iteration": 4}')
        return call(*given)

    run, _ = federate(root, job(resume="cd" * 16), tmp_path / "relay", meddle)
    fails(run, "FactsMismatchError: .*starts")


def test_a_consensus_that_died_has_nothing_to_start_again_from():
    with pytest.raises(ValueError, match="protocol='consensus': each site has a left"):
        job(CONSENSUS, resume="ab" * 16).estimator()


def test_the_others_go_on_without_one_that_is_lost(tmp_path):
    root = make_sites(tmp_path / "sites")
    spec = job({**SUMS, "on_dropout": "continue"})
    run, direct = federate(root, spec, tmp_path / "relay", losing("site-4", 8))
    run.to_the_end()
    state = run.progress()
    assert (state["ended"], state["sites"]) == ("finished", list(NAMES[:3]))
    folders = direct.results(state["run"])
    first, *others = [load(folders[name]).components_ for name in NAMES[:3]]
    for H in others:
        assert_array_equal(H, first)
    for name in NAMES[:3]:
        (gone,) = [one for one in events(root, name) if one["event"] == "departed"]
        assert gone["sites"] == ["site-4"]
        assert last(root, name)["members"] == list(NAMES[:3])
    assert (folders["site-4"] / "checkpoint.npz").exists()
    assert not (folders["site-4"] / "components.npz").exists()


def test_they_do_not_go_on_with_fewer_than_the_job_or_a_policy_wants(tmp_path):
    root = make_sites(tmp_path / "sites", None, {"site-1": {"min_sites": 4}})
    spec = job({**SUMS, "on_dropout": "continue"}, min_sites=4)
    run, _ = federate(root, spec, tmp_path / "relay", losing("site-4", 8))
    fails(run, "3 sites are left, fewer than min_sites=4")
    run, _ = federate(root, job(min_sites=3), tmp_path / "relay")
    fails(run, "min_sites=4: the job goes on with min_sites=3")


def test_a_relay_that_falls_silent_is_noted(tmp_path):
    root = make_sites(tmp_path / "sites")
    _, direct = federate(root, job(), tmp_path / "relay")
    party = direct.parties["site-1"]
    party.offer(json.dumps({"run": "cd" * 16, "sites": list(NAMES)}).encode())
    party.prepare()
    assert not party.watch(60)
    assert party.watch(0)
    assert "RelayLostError: site-1 has heard nothing" in last(root, "site-1")["error"]
    answer = Answer.from_bytes(party.start())
    assert "RelayLostError" in answer.failure.message


def test_a_run_is_not_run_twice(tmp_path):
    root = make_sites(tmp_path / "sites")
    order = json.dumps({"run": "cd" * 16, "sites": list(NAMES)}).encode()
    _, direct = federate(root, job(), tmp_path / "relay")
    assert Answer.from_bytes(direct.parties["site-1"].offer(order)).failure is None
    assert Answer.from_bytes(direct.parties["site-1"].prepare()).failure is None
    _, direct = federate(root, job(), tmp_path / "relay")
    answer = Answer.from_bytes(direct.parties["site-1"].offer(order))
    assert "has been here before" in answer.failure.message


def test_a_stranger_is_refused_before_data_are_read(tmp_path):
    root = make_sites(tmp_path / "sites")
    file = root / "site-2" / "skppdnmf.toml"
    lines = [line for line in file.read_text().splitlines() if "site-4" not in line]
    file.write_text("\n".join(lines))
    run, _ = federate(root, job(), tmp_path / "relay")
    fails(run, "site-2 has no key of site-4 in its roster: skppdnmf site trust")


def test_a_key_of_somebody_else_is_refused(tmp_path):
    root = make_sites(tmp_path / "sites")
    (root / "site-4" / "identity.pem").unlink()
    Identity.new().save(root / "site-4" / "identity.pem")
    run, _ = federate(root, job(), tmp_path / "relay")
    fails(run, "ForgedMessageError|FactsMismatchError")


def test_the_relay_has_nothing_of_data_keys_factors_and_totals(tmp_path):
    """Everything that it was given, and all that it wrote, is searched."""
    X = samples()
    root = make_sites(tmp_path / "sites", X)
    seen = []

    def meddle(name, method, given, call):
        answer = call(*given)
        seen.extend([*given, answer])
        return answer

    run, direct = federate(root, job(), tmp_path / "relay", meddle)
    run.to_the_end()
    written = [file.read_bytes() for file in (tmp_path / "relay").iterdir()]
    everything = b"\0".join([*seen, *written])
    model = in_one_process(X, **SUMS)
    folders = direct.results(run.progress()["run"])
    secrets = [
        *(part[0, 0].tobytes() for part in split(X)),
        *(value.tobytes() for value in model.components_.ravel() if value),
        *(
            np.load(one / "right_factor.npy").max().tobytes()
            for one in folders.values()
        ),
        *((root / name / "identity.pem").read_bytes()[40:70] for name in NAMES),
        str(X[0, 0]).encode(),
        str(model.components_[0, 0]).encode(),
    ]
    assert not [secret for secret in secrets if secret in everything]
    # The same search finds what is there.
    name = run.progress()["run"]
    assert bytes.fromhex(name) in everything
    assert name.encode() in everything


def test_answers_that_are_none_are_refused():
    for data in (b"", b"words that are none", b"SKPF" + bytes(5)):
        with pytest.raises(ValueError, match="no answer"):
            Answer.from_bytes(data)
    envelope = Envelope(bytes(16), 1, 0, 1, 2, 3, b"body")
    whole = Answer([join([envelope])], 3, 4, 0.5, True).to_bytes()
    assert Answer.from_bytes(whole).iteration == 3
    with pytest.raises(ValueError, match="claims"):
        Answer.from_bytes(whole[:-1])
