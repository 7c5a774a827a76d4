"""Agents that stay in worker processes while their envelopes travel."""

from concurrent.futures.process import BrokenProcessPool

import pytest

from skppdnmf._agent import Departure, Step
from skppdnmf._federation.workers import Seat, Workers, places
from skppdnmf.exceptions import AgentLost, CorruptedMessageError


class Counter:
    """An agent that counts its turns and says in which process it takes them."""

    def __init__(self, number):
        self.number = number
        self.turns = 0
        self.asked = False

    def start(self):
        return Step([self.number])

    def advance(self, arrived):
        import os

        if "lost" in arrived:
            raise AgentLost("gone")
        if "end" in arrived:
            os._exit(1)
        if "fault" in arrived:
            raise ZeroDivisionError("a fault")
        self.turns += 1
        return Step([os.getpid(), self.turns, *arrived], None, self.asked)

    def depart(self, departure):
        if departure.number == 2:
            raise CorruptedMessageError("refused", sender=1)
        return Step(["left", *departure.agents])

    def stop(self):
        self.asked = True


@pytest.mark.parametrize(
    ("loads", "n_workers", "expected"),
    [
        ([1, 1, 1, 1], 2, [0, 1, 0, 1]),
        ([3, 1, 2, 2], 2, [0, 0, 1, 1]),
        ([5, 1, 1, 1], 2, [0, 1, 1, 1]),
        ([1], 1, [0]),
    ],
)
def test_workers_have_about_the_same_to_do(loads, n_workers, expected):
    assert places(loads, n_workers) == expected


def test_agents_stay_where_they_are():
    import os

    with Workers(2, [1.0, 1.0, 1.0]) as workers:
        answers = workers([(Counter(k), None, False) for k in range(3)])
        seats = [seat for seat, *_ in answers]
        assert all(isinstance(seat, Seat) for seat in seats)
        assert [step.envelopes for _, step, _ in answers] == [[0], [1], [2]]
        first = workers([(seat, ["a"], False) for seat in seats])
        second = workers([(seat, ["b"], False) for seat in seats])
        homes = [step.envelopes[0] for _, step, _ in first]
        assert homes == [step.envelopes[0] for _, step, _ in second]
        assert homes[0] == homes[2] != homes[1]
        assert os.getpid() not in homes
        assert [step.envelopes[1:] for _, step, _ in second] == [[2, "b"]] * 3
        # A turn of some of them only, in another order.
        (_, step, _), (_, other, _) = workers(
            [(seats[2], [], False), (seats[0], [], False)]
        )
        assert [step.envelopes[:2], other.envelopes[:2]] == [[homes[2], 3]] * 2
        seats[1].stop()
        assert workers([(seats[1], [], False)])[0][1].finished
        assert seats[1].depart(Departure(1, (0,))).envelopes == ["left", 0]
        with pytest.raises(CorruptedMessageError, match="refused") as caught:
            seats[1].depart(Departure(2, (0,)))
        assert caught.value.sender == 1
        _, step, error = workers([(seats[0], ["lost"], True)])[0]
        assert isinstance(error, AgentLost)
        assert step.envelopes == []
        with pytest.raises(ZeroDivisionError, match="a fault"):
            workers([(seats[0], ["fault"], True)])
    # The run is over: its agents are gone, the processes are not.
    with pytest.raises(KeyError):
        workers([(seats[0], [], False)])
    with Workers(2, [1.0]) as again:
        seat = again([(Counter(0), None, False)])[0][0]
        assert again([(seat, [], False)])[0][1].envelopes[0] in homes


def test_a_process_that_ends_takes_its_fit_with_it_and_no_other():
    with (  # noqa: PT012
        pytest.raises(BrokenProcessPool),
        Workers(1, [1.0]) as workers,
    ):
        seat = workers([(Counter(0), None, False)])[0][0]
        workers([(seat, ["end"], False)])
    with Workers(1, [1.0]) as workers:
        assert workers([(Counter(0), None, False)])[0][1].envelopes == [0]
