from evaluations.judge.retrying import Patience

PATIENCE = Patience(first_seconds=1, most_seconds=60, tries=8, tries_when_busy=60)


def test_waits_double_up_to_a_bound_and_are_spread_from_half_to_one_and_a_half() -> None:
    assert [PATIENCE.wait(tried, None, 0.5) for tried in (1, 2, 3, 7, 8, 5000)] == [1, 2, 4, 60, 60, 60]
    assert [PATIENCE.wait(2, None, draw) for draw in (0.0, 1.0)] == [1, 3]


def test_a_wait_that_the_server_asked_for_is_never_cut_short() -> None:
    assert [PATIENCE.wait(1, 20.0, draw) for draw in (0.0, 1.0)] == [20, 22]
    assert PATIENCE.wait(1, 0.0, 1.0) == 0


def test_faults_are_bounded_sooner_than_a_server_that_is_merely_busy() -> None:
    assert not PATIENCE.is_over(7)
    assert PATIENCE.is_over(8)
    assert PATIENCE.is_over(5, unreachable=True)
    assert not PATIENCE.is_over(8, busy=True)
    assert PATIENCE.is_over(60, busy=True)
