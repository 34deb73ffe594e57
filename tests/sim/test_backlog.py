"""What is taken in later."""

from podium.sim.backlog import MOST, Backlog


def test_calls_are_made_in_their_order_when_somebody_wants_to_know() -> None:
    told: list[tuple[int, str]] = []
    backlog: Backlog[int, str] = Backlog(lambda number, text: told.append((number, text)))

    backlog.put(1, "a")
    backlog.put(2, "b")
    assert (told, len(backlog)) == ([], 2)

    backlog.clear()
    backlog.clear()
    assert (told, len(backlog)) == ([(1, "a"), (2, "b")], 0)


def test_so_many_wait_at_most() -> None:
    told: list[int] = []
    backlog: Backlog[int] = Backlog(told.append)

    for number in range(2 * MOST + 1):
        backlog.put(number)
        assert len(backlog) < MOST

    assert told == list(range(2 * MOST))
