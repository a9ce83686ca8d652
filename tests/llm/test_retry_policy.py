import pytest

from evaluations.llm.retry_policy import RetryPolicy

PATIENCE = RetryPolicy(first_seconds=1, most_seconds=60, tries=8, tries_when_busy=60)


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


def test_after_a_timeout_a_slow_server_has_as_long_again_and_twice_as_long_the_next_time() -> None:
    assert [PATIENCE.wait_after_timeout(times, 120.0, 0.0) for times in (1, 2, 3)] == [120, 240, 480]
    assert PATIENCE.wait_after_timeout(1, 120.0, 1.0) == pytest.approx(132)


def test_the_first_wait_after_a_timeout_is_ten_minutes_at_most() -> None:
    assert PATIENCE.wait_after_timeout(1, 3600.0, 0.0) == 600


def test_few_timeouts_are_enough() -> None:
    assert not PATIENCE.is_over(2, timed_out=True)
    assert PATIENCE.is_over(3, timed_out=True)
