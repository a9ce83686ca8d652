"""Win rates as a matrix, and where a judge errs."""

from evaluations.stats.estimates import Estimate, undefined_estimate
from evaluations.stats.simultaneous_intervals import Claim
from evaluations.stats.win_rates import PairWinRate, WinRate
from evaluations.templatetags.win_rates import MAX_MATRIX_CANDIDATES, as_matrix, can_err, errors


def rate(
    judge: float | None, corrected: tuple[float, float, float] | None = None, claim: Claim = Claim.NONE
) -> WinRate:
    """``corrected``: low, value, high."""
    by_judge = undefined_estimate("It says nothing.") if judge is None else Estimate(judge, 100)
    found = undefined_estimate("Nobody reviewed.")
    if corrected:
        found = Estimate(corrected[1], 40).with_interval(corrected[0], corrected[2], "t over 40 clusters")
    return WinRate(found, by_judge, found, 100, 0, 0, None, None, claim)


def test_a_matrix_has_each_pair_both_ways_and_nothing_where_two_never_met() -> None:
    pairs = [PairWinRate("a", "b", rate(0.7)), PairWinRate("b", "c", rate(0.4))]
    rows = dict(as_matrix(pairs) or [])
    said = {
        (row, column): round(cell.judge.value, 6)
        for row, cells in rows.items()
        for column, cell in cells
        if cell and cell.judge.value is not None
    }
    assert said == {("a", "b"): 0.7, ("b", "a"): 0.3, ("b", "c"): 0.4, ("c", "b"): 0.6}
    assert [column for column, cell in rows["a"] if cell is None] == ["a", "c"]


def test_a_judge_errs_where_that_is_shown_over_all_models_and_not_where_one_interval_leaves_it_out() -> None:
    rates = {
        "high": rate(0.61, (0.45, 0.5, 0.6), Claim.ABOVE),
        "outside": rate(0.61, (0.45, 0.5, 0.6)),
        "low": rate(0.4, (0.45, 0.5, 0.6), Claim.BELOW),
        "silent": rate(None, (0.45, 0.5, 0.6)),
        "unreviewed": rate(0.9),
    }
    assert [(one.candidate, one.is_too_high) for one in errors(rates)] == [("high", True), ("low", False)]
    assert can_err(rates)


def test_a_matrix_of_too_many_is_none() -> None:
    pairs = [PairWinRate("a", f"{number}", rate(0.7)) for number in range(MAX_MATRIX_CANDIDATES)]
    assert as_matrix(pairs) is None


def test_without_an_interval_nothing_is_said_of_errors() -> None:
    rates = {"unreviewed": rate(0.9), "silent": rate(None, (0.45, 0.5, 0.6))}
    assert not errors(rates)
    assert not can_err(rates)
