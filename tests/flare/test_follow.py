"""Following a run over a connection that comes and goes."""

import json

import pytest

from skppdnmf.exceptions import FederationError
from skppdnmf.flare import follow as module
from skppdnmf.flare.follow import follow


class Session:
    """A server that answers as it is told; None is no answer."""

    def __init__(self, statuses, folder):
        self._statuses = iter(statuses)
        self._folder = folder

    def get_job_status(self, job_id):
        status = next(self._statuses)
        if status is None:
            raise ConnectionError("no answer")
        return status

    def do_app_command(self, job_id, topic, data):
        return {"iteration": 3}

    def download_job_result(self, job_id):
        return str(self._folder)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(
        module.time, "sleep", lambda s: clock.__setitem__(0, clock[0] + s)
    )
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])


def test_a_server_that_is_away_for_a_while_is_asked_again(tmp_path):
    (tmp_path / "outcome.json").write_text(json.dumps({"ended": "finished"}))
    statuses = [None, "RUNNING", *[None] * 10, "RUNNING", "FINISHED:COMPLETED"]
    shown = []
    outcome = follow(Session(statuses, tmp_path), "7", shown.append)
    assert (outcome["ended"], outcome["status"]) == ("finished", statuses[-1])
    assert shown[0] == {"iteration": 3}


def test_a_server_that_stays_away_is_named(tmp_path):
    with pytest.raises(FederationError, match="job 7: the server has not answered"):
        follow(Session(["RUNNING", *[None] * 99], tmp_path), "7", lambda _: None)


def test_a_job_that_leaves_no_outcome_is_what_flare_says(tmp_path):
    session = Session(["FINISHED:EXECUTION_EXCEPTION"], tmp_path)
    ended = follow(session, "7", lambda _: None)["ended"]
    assert ended == "FLARE ended the job: FINISHED:EXECUTION_EXCEPTION"
